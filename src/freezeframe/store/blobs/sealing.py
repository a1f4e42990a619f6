"""Encryption of sealed files: the master key, a tenant's data key, and the cipher."""

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
import shlex
import stat
import subprocess
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from freezeframe.errors import CorruptData, CorruptLog, SealingUnavailable
from freezeframe.identifiers import FilePath
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import reads_of
from freezeframe.store.model.directory import KEYS_FOLDER, key_file, tenant_of

# Sealed files are AES-256-GCM in chunks, bound to tenant, version and path:
#
#     magic line | version id, 16 bytes | piece | piece | …
#
# A piece is up to 1 MiB of plaintext and its tag. A file's key is derived from the tenant's data key and the
# random version id, so the nonce can be a counter: the piece's number, and whether it is the last. Pieces
# therefore cannot be swapped, left out or cut off.

PIECE_BYTES = 1024 * 1024
_MAGIC = b"FREEZEFRAME-SEAL-1\n"
_VERSION_ID_BYTES = 16
_TAG_BYTES = 16
_COUNTER_BYTES = 11
_INFO = b"freezeframe sealed file 1"


def seal(content: Iterable[bytes], data_key: bytes, tenant: str, path: FilePath) -> Iterator[bytes]:
    """Encrypt ``content`` in chunks; two encryptions of the same bytes differ."""
    version_id = secrets.token_bytes(_VERSION_ID_BYTES)
    cipher, context = _cipher(data_key, version_id), _context(tenant, version_id, path)
    yield _MAGIC + version_id
    waiting = b""
    number = 0
    for piece in _split(content, PIECE_BYTES):
        if number:
            yield cipher.encrypt(_nonce(number - 1, is_last=False), waiting, context)
        waiting = piece
        number += 1
    yield cipher.encrypt(_nonce(max(number - 1, 0), is_last=True), waiting, context)


def unseal(sealed: Iterable[bytes], data_key: bytes, tenant: str, path: FilePath) -> Iterator[bytes]:
    """Decrypt a sealed file; each chunk is authenticated before it is returned."""
    pieces = _split(sealed, PIECE_BYTES + _TAG_BYTES, len(_MAGIC) + _VERSION_ID_BYTES)
    head = next(pieces, b"")
    if not head.startswith(_MAGIC) or len(head) != len(_MAGIC) + _VERSION_ID_BYTES:
        raise _broken(path, "It does not have the format of sealed files.")
    version_id = head[len(_MAGIC) :]
    cipher, context = _cipher(data_key, version_id), _context(tenant, version_id, path)
    waiting, number = next(pieces, b""), 0
    try:
        for piece in pieces:
            yield cipher.decrypt(_nonce(number, is_last=False), waiting, context)
            waiting, number = piece, number + 1
        yield cipher.decrypt(_nonce(number, is_last=True), waiting, context)
    except InvalidTag:
        raise _broken(
            path, "It was changed, cut off, or sealed for another tenant, path or data key."
        ) from None


def wrap(secret: bytes, key: bytes, context: str) -> bytes:
    """Encrypt ``secret`` with ``key``, bound to ``context``: nonce and ciphertext."""
    nonce = secrets.token_bytes(12)
    return nonce + AESGCM(key).encrypt(nonce, secret, context.encode())


def unwrap(wrapped: bytes, key: bytes, context: str) -> bytes | None:
    """Decrypt a wrapped secret; None for a wrong key, context or damaged bytes."""
    try:
        return AESGCM(key).decrypt(wrapped[:12], wrapped[12:], context.encode())
    except (InvalidTag, ValueError):
        return None


def _split(content: Iterable[bytes], size: int, first: int | None = None) -> Iterator[bytes]:
    """Split bytes into chunks of ``size`` (``first``: size of the first chunk); the last may be shorter."""
    held = bytearray()
    wanted = size if first is None else first
    for chunk in content:
        held += chunk
        while len(held) >= wanted:
            yield bytes(held[:wanted])
            del held[:wanted]
            wanted = size
    if held:
        yield bytes(held)


def _cipher(data_key: bytes, version_id: bytes) -> AESGCM:
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=version_id, info=_INFO).derive(data_key))


def _context(tenant: str, version_id: bytes, path: FilePath) -> bytes:
    return json.dumps([tenant, version_id.hex(), str(path)]).encode()


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(_COUNTER_BYTES, "big") + (b"\1" if is_last else b"\0")


def _broken(path: FilePath, cause: str) -> CorruptData:
    return CorruptData(
        f"The sealed file {str(path)!r} cannot be opened.",
        cause=cause,
        remedy="Restore an older version of it, or the tenant's directory from a backup.",
        path=str(path),
    )


# The master key wraps the tenants' data keys. It comes from a file that only its owner can read or from a
# command: 32 random bytes, raw, hex or base64. freezeframe never stores it.

KEY_BYTES = 32
_COMMAND_SECONDS_MAX = 30
_FILE_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class MasterKey:
    """32 secret bytes, never part of a message; ``fingerprint`` identifies a key without revealing it."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise _unavailable(
                "The master key cannot be used.", f"It has {len(self.secret)} bytes instead of {KEY_BYTES}."
            )

    @property
    def fingerprint(self) -> str:
        """16 hex digits that identify the key."""
        return hashlib.sha256(b"freezeframe master key\0" + self.secret).hexdigest()[:16]


def master_key(settings: Settings) -> MasterKey:
    """Return the master key configured in the settings."""
    if settings.master_key_file is not None and settings.master_key_command:
        raise _unavailable(
            "There are two master keys.", "Both master_key_file and master_key_command are set."
        )
    if settings.master_key_file is not None:
        return read_master_key(settings.master_key_file)
    if settings.master_key_command:
        return MasterKey(_decode(_answer(settings.master_key_command)))
    raise _unavailable("Sealing needs a master key.", "No master key is set.")


def accepted_master_keys(settings: Settings) -> tuple[MasterKey, ...]:
    """Return the master key, and the second one that is accepted during a rotation."""
    other = settings.master_key_file_other
    return (master_key(settings), *(() if other is None else (read_master_key(other),)))


def read_master_key(path: Path) -> MasterKey:
    """Return the master key in a file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _unavailable("The master key cannot be read.", str(error)) from error
    try:
        # The check uses the open file, so that it applies to the bytes read.
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _unavailable("The master key cannot be read.", f"{path} is not a plain file.")
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SealingUnavailable(
                "The master key may not be secret, so it is not used.",
                cause=f"{path} has the mode {stat.S_IMODE(status.st_mode):04o}: other users can read it.",
                remedy=f"Run: chmod 600 {path}.",
            )
        with reads_of(str(path)):
            return MasterKey(_decode(os.read(handle, _FILE_BYTES_MAX)))
    finally:
        os.close(handle)


def _answer(command: str) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own command, without a shell
            shlex.split(command), capture_output=True, check=True, timeout=_COMMAND_SECONDS_MAX
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        # The command's output may hold the key, so the message has only its exit status.
        raise _unavailable("The master key's command failed.", type(error).__name__) from None
    return done.stdout


def _decode(content: bytes) -> bytes:
    if len(content) == KEY_BYTES:
        return content
    text = content.strip()
    try:
        if len(text) == KEY_BYTES * 2:
            return bytes.fromhex(text.decode("ascii"))
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise _unavailable(
            "The master key cannot be used.", "It is neither raw nor hex nor base64."
        ) from None


def _unavailable(problem: str, cause: str) -> SealingUnavailable:
    return SealingUnavailable(
        problem,
        cause=cause,
        remedy="Set FREEZEFRAME_MASTER_KEY_FILE to a file of mode 0600 with 32 random bytes "
        "(openssl rand -base64 32), or FREEZEFRAME_MASTER_KEY_COMMAND to a command that prints them.",
    )


# ``_freezeframe/keys/N.json`` holds the wrapped data key; the newest record counts. The key never changes, so
# rotating the master key writes one small record a tenant. Without the records no sealed file can be opened:
# deleting a tenant begins with them.


@dataclass(frozen=True, slots=True)
class DataKey:
    """A tenant's data key, and the tenant identity bound to its sealed files."""

    secret: bytes = field(repr=False)
    tenant: str

    def digest(self, content_sha256: bytes) -> str:
        """Return a keyed digest of content, which reveals nothing without the key."""
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


_unkept: WeakKeyDictionary[Storage, DataKey] = WeakKeyDictionary()
"""Keys that dry runs made for tenants without one, in this process's memory only."""


def data_key(storage: Storage, settings: Settings, *, create: bool = False, is_kept: bool = True) -> DataKey:
    """Return the tenant's data key; ``create`` makes it if absent, and a single concurrent creator wins.

    Without ``is_kept`` a new one stays in this process's memory, found there until the tenant has a key.
    """
    masters = accepted_master_keys(settings)
    records = _records(storage)
    if not records and create and not is_kept:
        return _unkept.setdefault(storage, DataKey(secrets.token_bytes(KEY_BYTES), _identity(storage)))
    if not records and not create and storage in _unkept:
        return _unkept[storage]
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
    """Wrap the tenant's data key with another master key; return False if the tenant has none.

    A crash leaves both records or the new one; the key is available in both cases, and a second call
    finishes the rotation.
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
            remedy="Seal a file first; files that were sealed with a deleted key are lost.",
        )
    secret = unwrap(mine[-1].wrapped, master.secret, mine[-1].tenant) if mine else None
    if secret is None:
        raise SealingUnavailable(
            "The tenant's data key cannot be unwrapped.",
            cause=f"It is under the master key {records[-1].master}, not under {master.fingerprint}.",
            remedy="Set that master key, or rotate to the new one with both keys set.",
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
    """Return the tenant's wrapped keys, the newest last."""
    while True:
        names = [status.name for status in storage.list_from(KEYS_FOLDER)]
        found = [record for name in names if (record := _read(storage, name)) is not None]
        if found or not names:
            return sorted(found, key=lambda record: record.number)
        # A rotation deleted all that were listed, so it has written a newer one: list again.


def _read(storage: Storage, name: str) -> _Record | None:
    """Return the record; None where a rotation deleted it since it was listed."""
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
