"""A tenant's data key, wrapped by the master key.

``_freezeframe/keys/N.json`` holds it; the newest record counts. The key itself never changes, so
rotating the master key writes one small record a tenant and no file anew. Without the records all
that was ever sealed is gone for good: deleting a tenant begins with them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from freezeframe.errors import CorruptLog, SealingUnavailable
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.directory.paths import KEYS_FOLDER, key_file, tenant_of
from freezeframe.store.encryption.cipher import unwrap, wrap
from freezeframe.store.encryption.master_key import KEY_BYTES, MasterKey, accepted_master_keys


@dataclass(frozen=True, slots=True)
class DataKey:
    """A tenant's data key, and the tenant identity bound to its sealed files."""

    secret: bytes = field(repr=False)
    tenant: str

    def digest(self, content_sha256: bytes) -> str:
        """A keyed digest of content, which reveals nothing without the key."""
        return hmac.new(self.secret, b"content\0" + content_sha256, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class _Record:
    number: int
    tenant: str
    master: str
    wrapped: bytes

    def to_bytes(self) -> bytes:
        record = {
            "tenant": self.tenant,
            "masterKey": self.master,
            "dataKey": base64.b64encode(self.wrapped).decode(),
        }
        return json.dumps(record).encode() + b"\n"


def data_key(storage: Storage, settings: Settings, *, create: bool = False) -> DataKey:
    """The tenant's data key; ``create`` makes one if absent, and exactly one concurrent creator wins."""
    masters = accepted_master_keys(settings)
    records = _records(storage)
    if not records and create:
        record = _wrap(0, DataKey(secrets.token_bytes(KEY_BYTES), _identity(storage)), masters[0])
        # Another process may seal this tenant's first file concurrently.
        with suppress(FileExistsError):
            storage.put_if_absent(key_file(0), record.to_bytes())
        records = _records(storage)
    known = {record.master for record in records}
    fitting = next((master for master in masters if master.fingerprint in known), masters[0])
    return _unwrap(storage, records, fitting)


def rewrap(storage: Storage, old: MasterKey, new: MasterKey) -> bool:
    """Wrap the tenant's data key with another master key; False where the tenant has none.

    A crash on the way leaves both records or the new one; either way the key can be had, and calling
    again finishes.
    """
    records = _records(storage)
    if not records:
        return False
    if records[-1].master != new.fingerprint:
        record = _wrap(records[-1].number + 1, _unwrap(storage, records, old), new)
        try:
            storage.put_if_absent(key_file(record.number), record.to_bytes())
        except FileExistsError:
            return rewrap(storage, old, new)
        records = _records(storage)
    _unwrap(storage, records[-1:], new)  # proved before the old records go
    for record in records[:-1]:
        storage.delete(key_file(record.number))
    return True


def _wrap(number: int, key: DataKey, master: MasterKey) -> _Record:
    return _Record(number, key.tenant, master.fingerprint, wrap(key.secret, master.secret, key.tenant))


def _unwrap(storage: Storage, records: list[_Record], master: MasterKey) -> DataKey:
    mine = [record for record in records if record.master == master.fingerprint]
    if not records:
        raise SealingUnavailable(
            "This tenant has no data key.",
            cause="Nothing was ever sealed for it, or its key was deleted.",
            remedy="Seal a file first; what was sealed under a deleted key can no longer be had.",
        )
    secret = unwrap(mine[-1].wrapped, master.secret, mine[-1].tenant) if mine else None
    if secret is None:
        raise SealingUnavailable(
            "The tenant's data key cannot be unwrapped.",
            cause=f"It is under the master key {records[-1].master}, not under {master.fingerprint}.",
            remedy="Set the master key that it is under, or rotate to this one with both at hand.",
        )
    expected = tenant_of(storage.root)
    if expected and mine[-1].tenant != expected:
        raise SealingUnavailable(
            "The data key found here is another tenant's.",
            cause="Its record was copied from another tenant's folder.",
            remedy="Restore this tenant's own key record from a backup.",
        )
    return DataKey(secret, mine[-1].tenant)


def _records(storage: Storage) -> list[_Record]:
    """The tenant's wrapped keys, the newest last."""
    while True:
        names = [status.name for status in storage.list_from(KEYS_FOLDER)]
        found = [record for name in names if (record := _read(storage, name)) is not None]
        if found or not names:
            return sorted(found, key=lambda record: record.number)
        # A rotation deleted all that were listed, so it has written a newer one: list again.


def _read(storage: Storage, name: str) -> _Record | None:
    """The record; None where a rotation deleted it since it was listed."""
    try:
        return _parse(name, storage.read(f"{KEYS_FOLDER}/{name}"))
    except FileNotFoundError:
        return None


def _parse(name: str, content: bytes) -> _Record:
    try:
        record = json.loads(content)
        return _Record(
            int(name.removesuffix(".json")),
            str(record["tenant"]),
            str(record["masterKey"]),
            base64.b64decode(record["dataKey"], validate=True),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLog(
            f"The key record {name!r} cannot be read.",
            cause=f"It is damaged ({error}).",
            remedy="Restore it from a backup: sealed files cannot be opened without it.",
            file=name,
        ) from error


def _identity(storage: Storage) -> str:
    # A store never renames a tenant's folder; the owner of a standalone directory may move it.
    return tenant_of(storage.root) or uuid.uuid4().hex
