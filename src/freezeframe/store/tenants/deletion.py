"""Deletes a tenant: keys first, then every file, until a listing of its folder is empty.

The registry already has the tenant's deletion, so no process can open it. A process with an open
tenant may still write during the deletion; listing and deletion repeat until no file is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from freezeframe.errors import ConflictError, FreezeframeError
from freezeframe.settings import Settings
from freezeframe.storage import FileStatus, PrefixStorage, Storage
from freezeframe.store.directory.job_folders import remove_job_roots
from freezeframe.store.directory.paths import KEYS_FOLDER, OURS, tenant_folder
from freezeframe.store.directory.pending_uploads import remove_waiting
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState

_ROUNDS_MAX = 20


@dataclass(frozen=True, slots=True)
class Deletion:
    """What was removed with a tenant; its folder was listed afterwards and was empty.

    ``versions``, ``streams`` and ``files`` are the tenant's as its log had them (-1: its log could not
    be read any more); ``objects`` and ``size_bytes`` are what this call removed from its folder. ``keys``
    data keys were removed first: from then on no copy of a sealed file can be opened.
    """

    environment: str
    tenant: str
    versions: int
    streams: int
    files: int
    objects: int
    size_bytes: int
    keys: int

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def remove_tenant(
    storage: Storage, environment: str, tenant: str, folder: str, settings: Settings
) -> Deletion:
    """Delete a tenant's folder from the store's storage.

    Raises:
        ConflictError: somebody kept writing into the folder; the same call goes on from there.
        StorageUnavailable: a file could not be removed; the same call goes on from there.
    """
    place = PrefixStorage(storage, tenant_folder(folder))
    versions, streams, files = _count_held(place, settings)
    keys = len(list(place.list_from(KEYS_FOLDER)))
    remove_job_roots(place, settings)
    remove_waiting(place, settings)
    listing = {status.name: status.size for status in place.list_below("")}
    _remove(place, [name for name in listing if name.startswith(f"{KEYS_FOLDER}/")])
    listing |= remove_tree(place)
    size = sum(listing.values())
    return Deletion(environment, tenant, versions, streams, files, len(listing), size, keys)


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


def _count_held(place: Storage, settings: Settings) -> tuple[int, int, int]:
    try:
        state: TenantState = TenantLog(place, settings).current_state()
    except FreezeframeError:
        # Unreadable files are deleted too.
        return (NO_VERSION, NO_VERSION, NO_VERSION)
    return (state.version + 1, len(state.streams), len(state.files))
