"""History of one row of a stream, newest first.

The row is followed backwards from file to file: a version matters only if it brought the file that holds
the row, or, while there is no row, removed a file that may hold its key. Files whose statistics exclude
the key are not read, and the key is looked for once in each of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from freezeframe.clock import rfc3339
from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log.actions.actions import Metadata
from freezeframe.store.diff.row_diff import BEFORE, CHANGE_TYPE, changed_cells, row_changes
from freezeframe.store.schema.system_columns import DELETED, read_system_columns
from freezeframe.store.schema.table_properties import stored_key
from freezeframe.store.tenant_log.history import HistoryEntry
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.tenant_log.table_lookup import table_snapshot
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.versions.row_finder import Held, RemovedFile, RowFinder
from freezeframe.store.versions.stream_past import StreamCommit, StreamPast

AHEAD = 32
"""The files of so many versions are read side by side."""


@dataclass(frozen=True, slots=True)
class RowVersion:
    """What one version of the tenant did to the row: ``change`` is ``insert``, ``update`` or ``delete``.

    ``before`` and ``after`` are the row's values; None where there was no row. ``changed`` names the
    columns in which an update made a difference.
    """

    entry: HistoryEntry
    changes: pa.Table
    """The change as ``Stream.changes`` has it: a table of one row."""

    @property
    def version(self) -> int:
        """The version of the tenant."""
        return self.entry.version

    @property
    def timestamp(self) -> datetime:
        """The time of its commit."""
        return self.entry.timestamp

    @property
    def change(self) -> str:
        """The kind of change."""
        return str(self.changes[CHANGE_TYPE][0].as_py())

    @property
    def before(self) -> dict[str, Any] | None:
        """The row's values before this version."""
        values: dict[str, Any] | None = shown_rows(self.changes)[0][BEFORE]
        return values

    @property
    def after(self) -> dict[str, Any] | None:
        """The row's values at this version."""
        if self.change == "delete":
            return None
        (row,) = shown_rows(self.changes.drop_columns([CHANGE_TYPE, BEFORE]))
        return row

    @property
    def changed(self) -> tuple[str, ...]:
        """The columns that an update gave another value."""
        return tuple(changed_cells(self.changes))

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        entry = self.entry
        return {
            "tenant_version": entry.version,
            "timestamp": rfc3339(entry.timestamp),
            "kind": entry.kind,
            "restored_version": entry.restored,
            "author": entry.who,
            "job_id": entry.job_id,
            "message": entry.message,
            "change": self.change,
            "changed": list(self.changed),
            "before": self.before,
            "after": self.after,
        }


@dataclass(frozen=True, slots=True)
class RowHistory:
    """A row and the versions that inserted, updated or deleted it, the newest first.

    ``row`` has its values at the version that was looked from; None: there is no such row then.
    ``following`` is the version to go on from (``until``) if a limit was reached, else None. ``is_whole``
    is false where older versions are no longer kept, or knew the stream by another key; with
    ``following`` it is of the versions that were looked at.
    """

    stream: str
    key: Mapping[str, Any]
    row: Mapping[str, Any] | None
    versions: tuple[RowVersion, ...]
    following: int | None
    is_whole: bool

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return {
            "stream": self.stream,
            "key": dict(self.key),
            "row": None if self.row is None else dict(self.row),
            "versions": [one.to_json() for one in self.versions],
            "following": self.following,
            "is_whole": self.is_whole,
        }


def row_history(
    scope: TenantScope, name: StreamName, keys: pa.Table, until: TenantState, limit: int | None = None
) -> RowHistory:
    """The history of the row whose key is the one row of ``keys``, seen from the state ``until``.

    Raises:
        StreamNotFound: there is no such stream at that state.
        InvalidOption: ``limit`` is less than 1.
        CorruptData, CorruptLog: a file or an entry is missing or damaged.
    """
    if limit is not None and limit < 1:
        raise InvalidOption(f"limit cannot be {limit}.", remedy="Pass 1 or more, or nothing for all.")
    snapshot = table_snapshot(scope.storage, until, name)
    past = StreamPast(scope, name, until)
    finder = RowFinder(snapshot, keys)
    newest = held = finder.current_row()
    (key,) = shown_rows(keys)
    versions: list[RowVersion] = []
    following = None
    is_whole = True
    metadata: Metadata | None = snapshot.metadata
    ahead = number = 0
    while (commit := past.at(number)) is not None:
        after = metadata
        if commit.metadata is not None:
            metadata = past.metadata_before(number)
        if _may_touch(commit, held, finder):
            if commit.removed_paths and (metadata is None or set(stored_key(metadata) or ()) != set(key)):
                is_whole = False
                break
            if metadata is not None and held is not None and number >= ahead:
                ahead = number + AHEAD
                finder.read_ahead(metadata, _line_of(held.path, past, number, finder, metadata))
            before = None
            if metadata is not None:
                removed = _removed(past, number, finder, metadata, commit.removed_paths)
                before = finder.removed_row(metadata, removed)
            changes = _compare(before, held, tuple(key), after)
            held = before
            if changes is not None:
                if len(versions) == limit:
                    following = commit.entry.version
                    break
                versions.append(RowVersion(commit.entry, changes))
        number += 1
    row = None if newest is None else shown_rows(newest.row)[0]
    return RowHistory(str(name), key, row, tuple(versions), following, is_whole and past.is_whole)


def _may_touch(commit: StreamCommit, held: Held | None, finder: RowFinder) -> bool:
    """Whether a commit may have changed the row."""
    if held is None:
        return bool(commit.removed_paths)
    if held.path not in commit.added_paths:
        return False
    if held.path not in commit.removed_paths:
        return True
    # Named again: where rows were only marked, one that is there now was there before.
    return not (commit.only_marks or finder.was_there(held, commit.removal(held.path)))


def _removed(
    past: StreamPast, number: int, finder: RowFinder, metadata: Metadata, paths: Iterable[str]
) -> list[RemovedFile]:
    """Those of the files that a commit removed which may hold the row."""
    (commit,) = past.span(number, 1)
    found = []
    for path in sorted(paths):
        known = finder.holds(metadata, path)
        if known is not False:
            statistics = past.statistics(path, number, AHEAD) if known is None else None
            found.append(RemovedFile(commit.removal(path), statistics))
    return found


def _line_of(
    path: str, past: StreamPast, number: int, finder: RowFinder, metadata: Metadata
) -> list[RemovedFile]:
    """The files that a file took the place of, and those that these did, under one schema."""
    paths, found = {path}, list[RemovedFile]()
    for place, commit in enumerate(past.span(number, AHEAD)):
        if place and commit.metadata is not None and commit.metadata.schema_string != metadata.schema_string:
            break
        if paths & (commit.added_paths - commit.removed_paths):
            gone = commit.removed_paths - commit.added_paths
            found += _removed(past, number + place, finder, metadata, gone)
            paths |= gone
    return found


def _compare(
    before: Held | None, held: Held | None, key: Sequence[str], metadata: Metadata | None
) -> pa.Table | None:
    """The change between two states of the row; None if they are equal."""
    if before is None and held is None:
        return None
    if before is not None and held is not None and before.row.equals(held.row):
        return None
    new = held.row if held is not None else before.row.slice(0, 0)  # type: ignore[union-attr]  # one is there
    old = before.row if before is not None else new.slice(0, 0)
    flag = DELETED if read_system_columns(metadata).flags_deleted else None
    changes = row_changes(old, new, key, flag)
    return changes if len(changes) else None
