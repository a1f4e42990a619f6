"""Reads the ``commitInfo`` of a commit (author, time) from the head of its file."""

from __future__ import annotations

from freezeframe.errors import CorruptLog
from freezeframe.log.actions.actions import CommitInfo
from freezeframe.log.commits.commit_content import read_content
from freezeframe.log.primitives.json_fields import parse_json
from freezeframe.log.primitives.paths import commit_name
from freezeframe.storage.base import Readable

_HEAD_BYTES = 64 << 10


def read_commit_info(storage: Readable, folder: str, version: int) -> CommitInfo | None:
    """The commit info of a version, or ``None`` where its writer wrote none.

    Writers put it first, so the head of the file nearly always suffices.

    Raises:
        FileNotFoundError: there is no such commit.
        CorruptLog: the commit is damaged.
    """
    name = f"{folder}/{commit_name(version)}" if folder else commit_name(version)
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
    found = [one for one in read_content(name, content).actions if isinstance(one, CommitInfo)]
    return found[-1] if found else None


def read_in_commit_timestamp(storage: Readable, folder: str, version: int) -> int:
    """The in-commit timestamp of a version in ms; required (behaviour 74).

    Raises:
        CorruptLog: ``DELTA_MISSING_COMMIT_INFO`` or ``DELTA_MISSING_COMMIT_TIMESTAMP``.
    """
    return require_in_commit_timestamp(read_commit_info(storage, folder, version), version)


def require_in_commit_timestamp(info: CommitInfo | None, version: int) -> int:
    """The in-commit timestamp in the commit info of a version, in ms; required (behaviour 74).

    Raises:
        CorruptLog: ``DELTA_MISSING_COMMIT_INFO`` or ``DELTA_MISSING_COMMIT_TIMESTAMP``.
    """
    if info is not None and info.in_commit_timestamp is not None:
        return info.in_commit_timestamp
    missing = "commitInfo" if info is None else "inCommitTimestamp"
    raise CorruptLog(
        f"Version {version} has no {missing}, though in-commit timestamps are on.",
        cause="A writer that does not know them wrote this version, or the file was changed.",
        remedy="Restore the commit from a copy.",
        code="DELTA_MISSING_COMMIT_INFO" if info is None else "DELTA_MISSING_COMMIT_TIMESTAMP",
    )
