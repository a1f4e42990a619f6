"""One commit file: its creation, its provenance and its digest."""

from __future__ import annotations

from dataclasses import dataclass

from freezeframe.errors import (
    CorruptLog,
    InvalidOption,
    OutcomeUnknown,
    StorageUnavailable,
    StorageUnsuitable,
)
from freezeframe.log.format.actions import CommitInfo
from freezeframe.log.primitives.json_fields import parse_json
from freezeframe.log.primitives.paths import Kind, LogFile, in_folder, version_prefix
from freezeframe.log.segments.commit_content import read_content
from freezeframe.storage.base import Readable, Storage
from freezeframe.storage.local import sync_file, sync_folder
from freezeframe.storage.probe import is_trusted

# Commits a version: ``_delta_log/N.json`` by put-if-absent, for all writers of this package.
#
# A lost race is a return value, not an exception. After a lost response the file is read back:
# every commit of this package has a unique write id in its ``commitInfo``, so the bytes under the
# name identify its writer. No outcome deletes a file.

_TRIES_MAX = 3


@dataclass(frozen=True, slots=True)
class Committed:
    """Success: the version is durable and holds exactly the given bytes."""

    version: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another commit has the version; ``winner`` is its content. Nothing of this commit is visible."""

    version: int
    winner: bytes


@dataclass(frozen=True, slots=True)
class Unknown:
    """The commit was sent but its outcome could not be read back; its data files must be retained."""

    version: int
    reason: str


Outcome = Committed | Conflict | Unknown


def commit_name(table: str, version: int) -> str:
    """Return the name of a version's file: ``Account.snapshot/_delta_log/00000000000000000012.json``."""
    return in_folder(table, f"_delta_log/{version:020d}.json")


def write_commit(storage: Storage, table: str, version: int, content: bytes) -> Outcome:
    """Commit ``content`` as the table's version ``version``, or return the commit that has it.

    ``content`` is the whole file: JSON lines, with a write id in ``commitInfo`` unique to this
    attempt. The call is idempotent: the same bytes return ``Committed`` again.
    """
    return land_file(storage, commit_name(table, version), version, content)


def land_file(storage: Storage, name: str, version: int, content: bytes) -> Outcome:
    """``write_commit`` for a log in another folder: ``name`` is the version's file."""
    # An empty or truncated commit would make the table unreadable for all readers.
    try:
        # Split bytes, not text: str.splitlines also splits at separators inside of column names.
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
    reason = ""
    for _ in range(_TRIES_MAX):
        try:
            storage.put_if_absent(name, content)
        except FileExistsError:
            # The file may be this commit's own: the storage client may have sent the request twice.
            return _compare(storage, name, version, content)
        except OutcomeUnknown as error:
            reason = str(error)
        else:
            _require_own(storage, name, content)
            return Committed(version)
        # Found: the first response was lost. Not found: a retry is safe, because the name is exclusive.
        found = _compare(storage, name, version, content)
        if not isinstance(found, Unknown):
            return found
    return Unknown(version, reason)


def _require_own(storage: Storage, name: str, content: bytes) -> None:
    """Read a commit back where the store is not known to create atomically: it may have been replaced."""
    if is_trusted(storage):
        return
    try:
        found = storage.read(name)
    except (StorageUnavailable, FileNotFoundError):
        return  # the commit was acknowledged; its present content is unknown
    if found != content:
        raise StorageUnsuitable(
            f"{name!r} was created, and another writer replaced it.",
            cause=f"The object store at {storage.root} let two writers create the same name.",
            remedy="Stop all jobs on this store and run freezeframe doctor; use an object store that keeps "
            "If-None-Match, and restore the log from a backup if verify reports damage.",
            file=name,
        )


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
    # The bytes read back may not be durable if the first attempt died before its fsync.
    path = storage.local_path(name)
    if path is None:
        return Committed(version)
    try:
        sync_file(path)
        sync_folder(path.parent)
    except OSError as error:
        return Unknown(version, f"It is there, but could not be made durable: {error}")
    return Committed(version)


# Write-through buffer of the newest own commit, which spares an update its read from the storage.
#
# A log file is immutable once created. The next update takes the content once, when it lists the
# file; afterwards the state includes it. Long commits are not buffered, since many logs may be open.

KEPT_BYTES_MAX = 32 * 1024


class OwnCommit:
    """The newest commit that this process added to one log, until an update takes it."""

    def __init__(self) -> None:
        self._known: tuple[int, bytes] | None = None

    def note(self, version: int, content: bytes) -> None:
        """Record that ``content`` was durably added as ``version``."""
        self._known = (version, content) if len(content) <= KEPT_BYTES_MAX else None

    def is_of(self, file: LogFile) -> bool:
        """Return whether a listed file is the recorded commit."""
        known = self._known
        return known is not None and file.kind is Kind.COMMIT and known[0] == file.version

    def take(self, file: LogFile) -> bytes | None:
        """Return the content of a listed commit if it is the recorded one, once; else None."""
        known = self._known
        if known is None or not self.is_of(file):
            return None
        self._known = None
        return known[1] if len(known[1]) == file.size else None


_HEAD_BYTES = 64 << 10


def read_commit_info(storage: Readable, folder: str, version: int) -> CommitInfo | None:
    """Return the commit info of a version, or ``None`` if its writer wrote no commit info.

    Writers put it first, so the head of the file nearly always suffices.
    """
    name = in_folder(folder, f"{version_prefix(version)}.json")
    head = storage.read(name, 0, _HEAD_BYTES)
    line, newline, _ = head.partition(b"\n")
    if newline:
        try:
            first = parse_json(line)
        except ValueError:
            first = None
        if isinstance(first, dict) and isinstance(first.get("commitInfo"), dict):
            return CommitInfo(first["commitInfo"])
    content = head if len(head) < _HEAD_BYTES else storage.read(name)
    found = [action for action in read_content(name, content).actions if isinstance(action, CommitInfo)]
    return found[-1] if found else None


def read_in_commit_timestamp(storage: Readable, folder: str, version: int) -> int:
    """Return the in-commit timestamp of a version in ms; required (section "In-Commit Timestamps")."""
    return require_in_commit_timestamp(read_commit_info(storage, folder, version), version)


def require_in_commit_timestamp(info: CommitInfo | None, version: int) -> int:
    """Return the in-commit timestamp (ms) of a commit info (section "In-Commit Timestamps")."""
    if info is not None and info.in_commit_timestamp is not None:
        return info.in_commit_timestamp
    missing = "commitInfo" if info is None else "inCommitTimestamp"
    raise CorruptLog(
        f"Version {version} has no {missing}, though in-commit timestamps are on.",
        cause="A writer that does not know them wrote this version, or the file was changed.",
        remedy="Restore the commit from a copy.",
        code="DELTA_MISSING_COMMIT_INFO" if info is None else "DELTA_MISSING_COMMIT_TIMESTAMP",
    )
