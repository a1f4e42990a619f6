"""Deletes a tenant: keys first, then every file, then a proof by listing.

The registry already has the tenant's deletion, so no process can open it. A process with an open
tenant may still write during the deletion; listing and deletion repeat until no file is left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from freezeframe.errors import ConflictError, FreezeframeError
from freezeframe.settings import Settings
from freezeframe.storage import FileStatus, PrefixStorage, Storage
from freezeframe.store.directory.job_folders import remove_job_roots
from freezeframe.store.directory.paths import KEYS_FOLDER, OURS, certificate_file, tenant_folder
from freezeframe.store.directory.pending_uploads import remove_waiting
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState
from freezeframe.store.tenants.certificate import DeletionCertificate, parse_certificate

_ROUNDS_MAX = 20


@dataclass(frozen=True, slots=True)
class _Held:
    versions: int
    streams: int
    files: int


def remove_tenant(
    storage: Storage, environment: str, tenant: str, folder: str, settings: Settings
) -> DeletionCertificate:
    """Delete a tenant's folder from the store's storage; write and return the certificate.

    Raises:
        ConflictError: somebody kept writing into the folder; the same call goes on from there.
        StorageUnavailable: a file could not be removed; the same call goes on from there.
    """
    requested = datetime.now(UTC)
    place = PrefixStorage(storage, tenant_folder(folder))
    held = _count_held(place, settings)
    keys = len(list(place.list_from(KEYS_FOLDER)))
    remove_job_roots(place, settings)
    remove_waiting(place, settings)
    listing = {status.name: status.size for status in place.list_below("")}
    _remove(place, [name for name in listing if name.startswith(f"{KEYS_FOLDER}/")])
    listing |= remove_tree(place)
    certificate = DeletionCertificate(
        environment=environment,
        tenant=tenant,
        folder=folder,
        requested=requested,
        finished=datetime.now(UTC),
        versions=held.versions,
        streams=held.streams,
        files=held.files,
        objects=len(listing),
        size_bytes=sum(listing.values()),
        keys=keys,
        listing_sha256=_digest(listing.items()),
        files_left=len(list(place.list_below(""))),
    )
    return _save(storage, certificate)


def remove_tree(place: Storage) -> dict[str, int]:
    """Delete every file of a storage; returns their names and sizes.

    The tenant log goes last: whoever looks in between finds a tenant with missing data, not an empty one.

    Raises:
        ConflictError: somebody kept writing.
    """
    removed: dict[str, int] = {}
    for _ in range(_ROUNDS_MAX):
        found: list[FileStatus] = sorted(
            place.list_below(""), key=lambda one: one.name.startswith(f"{OURS}/")
        )
        removed |= {status.name: status.size for status in found}
        _remove(place, [status.name for status in found])
        place.prune("")
        if not found:
            return removed
    raise ConflictError(
        f"{place.root} could not be emptied.",
        cause="Somebody kept writing into it, a job that had begun before, for example.",
        remedy="Stop the job, then run the same call again: it goes on from here.",
    )


def _remove(place: Storage, names: Iterable[str]) -> None:
    for name in names:
        place.delete(name)


def _count_held(place: Storage, settings: Settings) -> _Held:
    try:
        state: TenantState = TenantLog(place, settings).current_state()
    except FreezeframeError:
        # Unreadable files are deleted too.
        return _Held(NO_VERSION, NO_VERSION, NO_VERSION)
    return _Held(state.version + 1, len(state.streams), len(state.files))


def _digest(listing: Iterable[tuple[str, int]]) -> str:
    found = hashlib.sha256()
    for name, size in sorted(listing):
        found.update(f"{size} {name}\n".encode(errors="surrogateescape"))
    return found.hexdigest()


def _save(storage: Storage, certificate: DeletionCertificate) -> DeletionCertificate:
    name = certificate_file(certificate.folder)
    try:
        storage.put_if_absent(name, certificate.to_bytes())
    except FileExistsError:
        # An earlier call deleted everything and crashed before its registry entry.
        return parse_certificate(storage.read(name), name)
    return certificate
