"""Commits a version: ``_delta_log/N.json`` by put-if-absent, for all writers of this package.

Losing a race is a normal answer, not an exception, and an answer that got lost on the way is
looked up instead of guessed: every commit of ours holds a write id of its own in its
``commitInfo``, so the bytes found under the name say whose commit it is. No file is ever
deleted here, whatever the outcome.
"""

from __future__ import annotations

from dataclasses import dataclass

from freezeframe.errors import InvalidOption, OutcomeUnknown, StorageUnavailable
from freezeframe.log.primitives.json_fields import parse_json
from freezeframe.storage.base import Storage
from freezeframe.storage.local import sync_file, sync_folder

_TRIES_MAX = 3


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit succeeded: the version is durable and holds exactly our bytes."""

    version: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another commit has the version; ``winner`` is its content. Nothing of ours is visible.

    ``code`` and ``reason`` say what a transaction could not accept in it (Delta's error class).
    """

    version: int
    winner: bytes
    code: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The commit was sent and its outcome could not be read back; files it refers to must be kept."""

    version: int
    reason: str


Outcome = Committed | Conflict | Unknown


def commit_name(table: str, version: int) -> str:
    """The name of a version's file: ``Account.snapshot/_delta_log/00000000000000000012.json``."""
    folder = f"{table}/" if table else ""
    return f"{folder}_delta_log/{version:020d}.json"


def write_commit(storage: Storage, table: str, version: int, content: bytes) -> Outcome:
    """Make ``content`` the table's version ``version``, or say who was first.

    ``content`` is the whole file: JSON lines, with a write id in ``commitInfo`` that no other
    attempt has. Calling again with the same bytes is safe and answers ``Committed`` again.

    Raises:
        InvalidOption: the content is empty, torn or no JSON lines, or the version is negative.
        StorageUnavailable: the storage refused; nothing of this commit is visible.
    """
    return land_file(storage, commit_name(table, version), version, content)


def land_file(storage: Storage, name: str, version: int, content: bytes) -> Outcome:
    """``write_commit`` for a log of another folder: ``name`` is the file that is the version.

    Raises:
        InvalidOption, StorageUnavailable: as ``write_commit``.
    """
    _require_whole(version, content)
    reason = ""
    for _ in range(_TRIES_MAX):
        try:
            storage.put_if_absent(name, content)
        except FileExistsError:
            # It may be our own: a client below us may have sent the request twice.
            return _compare(storage, name, version, content)
        except OutcomeUnknown as error:
            reason = str(error)
        else:
            return Committed(version)
        # Found: the first answer was lost. Not found: trying again is safe, the name decides.
        found = _compare(storage, name, version, content)
        if not isinstance(found, Unknown):
            return found
    return Unknown(version, reason)


def _compare(storage: Storage, name: str, version: int, content: bytes) -> Outcome:
    reason = "The file could not be read back."
    for _ in range(_TRIES_MAX):
        try:
            winner = storage.read(name)
        except FileNotFoundError as error:
            return Unknown(version, f"It was not there when read back: {error}")
        except StorageUnavailable as error:
            reason = str(error)
            continue
        return _settle(storage, name, version) if winner == content else Conflict(version, winner)
    return Unknown(version, reason)


def _settle(storage: Storage, name: str, version: int) -> Outcome:
    # What was read back may not have reached the disk if the first attempt died before its fsync.
    path = storage.local_path(name)
    if path is None:
        return Committed(version)
    try:
        sync_file(path)
        sync_folder(path.parent)
    except OSError as error:
        return Unknown(version, f"It is there, but could not be made durable: {error}")
    return Committed(version)


def _require_whole(version: int, content: bytes) -> None:
    # A commit that is empty or cut off would make the table unreadable for everybody.
    try:
        # Of bytes: a text would also be split at the line separators that a column's name may hold.
        lines = [parse_json(line) for line in content.splitlines() if line.strip()]
    except ValueError:
        lines = []
    whole = lines and content.endswith(b"\n") and all(isinstance(line, dict) for line in lines)
    if version < 0 or not whole:
        raise InvalidOption(
            f"Version {version} cannot be committed with these {len(content)} bytes.",
            cause="A commit is at least one JSON object, each on a line of its own, for a version >= 0.",
            remedy="Pass the whole content of the version's file.",
            version=version,
        )
