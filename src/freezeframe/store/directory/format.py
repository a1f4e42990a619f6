"""Format of a store, and what a folder is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from freezeframe.errors import CorruptData, CorruptLog, FormatTooNew
from freezeframe.storage import Storage
from freezeframe.storage.file_identity import FileIdentity, file_identity
from freezeframe.storage.probe import require_proven
from freezeframe.store.directory.paths import FORMAT_FILE, OURS, PROOF_FILE
from freezeframe.store.directory.place_kind import is_store

# ``_freezeframe/format.json``: the directory's format version, so that an older release refuses it.

FORMAT_VERSION = 1
_seen: WeakKeyDictionary[Storage, tuple[str | None, FileIdentity | None]] = WeakKeyDictionary()
# ``jobs``: entries that change several streams, files and the tenant itself. ``chain``: each entry
# names its predecessor's hash, so that a freezeframe which writes none of that must not add entries.
_FEATURES = ("tenantLog", "jobs", "chain")
_CONTENT = {"formatVersion": FORMAT_VERSION, "features": list(_FEATURES), "minimumFreezeframe": "0.1.0"}


def require_known_format(storage: Storage) -> bool:
    """Whether the directory has the current format; a missing or older format is accepted too.

    It is asked before every change, so that a process that runs on stops where a newer freezeframe has been.
    On a disk a file that is still the one that was read is not read again.
    """
    path, known = _seen.get(storage) or (_path(storage), None)
    now = None if path is None else file_identity(path)
    if known is not None and known == now:
        return True
    try:
        content = storage.read(FORMAT_FILE)
    except FileNotFoundError:
        return False
    is_present = _has_present_format(storage, content)
    if is_present:
        _seen[storage] = (path, now)
    return is_present


def _path(storage: Storage) -> str | None:
    path = storage.local_path(FORMAT_FILE)
    return None if path is None else str(path)


def _has_present_format(storage: Storage, content: bytes) -> bool:
    try:
        record = json.loads(content)
        version, features = int(record["formatVersion"]), set(record["features"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLog(
            f"{FORMAT_FILE} in {storage.root} cannot be read.",
            cause=f"It is damaged ({error}).",
            remedy="Restore it from a backup; every directory of format 1 has the same one.",
            file=FORMAT_FILE,
        ) from error
    unknown = sorted(features - set(_FEATURES))
    if version > FORMAT_VERSION or unknown:
        raise FormatTooNew(
            f"{storage.root} was written by a newer freezeframe.",
            cause=f"Its format is {version} with the unknown features {unknown}; "
            f"this version knows format {FORMAT_VERSION}.",
            remedy=f"Install freezeframe {record.get('minimumFreezeframe', 'of that format')} or later.",
        )
    return features >= set(_FEATURES)


def ensure_format(storage: Storage, *, probe: bool = True) -> None:
    """Write the format file if absent; the storage of a new directory is probed first.

    Without ``probe`` it is not: the storage is part of one that was.

    A directory of an older freezeframe is raised to the present format, so that the older one refuses it.
    """
    if require_known_format(storage):
        return
    if probe:
        require_proven(storage, OURS)
    content = json.dumps(_CONTENT, indent=2).encode() + b"\n"
    try:
        storage.put_if_absent(FORMAT_FILE, content)
    except FileExistsError:
        # Another process created the directory concurrently, or an older freezeframe did.
        if not require_known_format(storage):
            storage.replace(FORMAT_FILE, content)


# The report of the last ``freezeframe prove`` on a store, kept in the store for those who look after it.


def keep_proof_report(storage: Storage, report: Mapping[str, Any]) -> bool:
    """Replace the stored report; return False if the storage holds no store."""
    if not is_store(storage):
        return False
    storage.replace(PROOF_FILE, json.dumps(report, ensure_ascii=False).encode())
    return True


def last_proof_report(storage: Storage) -> dict[str, Any] | None:
    """The report that was kept last; None: there is none."""
    try:
        report = json.loads(storage.read(PROOF_FILE))
    except FileNotFoundError:
        return None
    except ValueError:
        report = None
    if not isinstance(report, dict):
        raise CorruptData(
            f"{PROOF_FILE} of the store is damaged.", remedy="Run freezeframe prove again: it writes it anew."
        )
    return report
