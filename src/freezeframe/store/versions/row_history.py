"""History of one row of a stream, newest first: each version that inserted, updated or deleted it.

The row is followed backwards from file to file. A commit matters only if it brought the file that holds the
row, or, while there is no row, removed a file that may hold its key. Files whose statistics exclude the key
are not read, and the key is looked for once in each of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from freezeframe.clock import rfc3339
from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log.actions.actions import Add, Metadata
from freezeframe.store.diff.row_diff import BEFORE, CHANGE_TYPE, changed_cells, row_changes
from freezeframe.store.schema.system_columns import DELETED, read_system_columns, stored_key
from freezeframe.store.tenant_log.history import HistoryEntry
from freezeframe.store.tenant_log.roll_forward import table_snapshot
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.versions.row_finder import Held, RowFinder
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
            "versions": [version.to_json() for version in self.versions],
            "following": self.following,
            "is_whole": self.is_whole,
        }


def row_history(
    scope: TenantScope, name: StreamName, keys: pa.Table, until: TenantState, limit: int | None = None
) -> RowHistory:
    """The history of the row whose key is the one row of ``keys``, seen from the state ``until``."""
    if limit is not None and limit < 1:
        raise InvalidOption(f"limit cannot be {limit}.", remedy="Pass 1 or more, or nothing for all.")
    snapshot = table_snapshot(scope.storage, until, name)
    past = StreamPast(scope, name, until)
    finder = RowFinder(snapshot, keys)
    trail = _Trail(past, finder)
    newest = held = finder.current_row()
    (key,) = shown_rows(keys)
    versions: list[RowVersion] = []
    following = None
    is_whole = True
    metadata: Metadata | None = snapshot.metadata
    number = 0
    while (commit := past.at(number)) is not None:
        after = metadata
        if commit.metadata is not None:
            metadata = past.metadata_before(number)
        if _may_touch(finder, commit, held):
            before = None
            if metadata is not None and set(stored_key(metadata) or ()) == set(key):
                before = trail.before(number, held, metadata)
            elif commit.removed_paths:
                is_whole = False
                break
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


def _may_touch(finder: RowFinder, commit: StreamCommit, held: Held | None) -> bool:
    """Whether a commit may have changed the row, which is ``held`` after it."""
    if held is None:
        return bool(commit.removed_paths)
    if held.path not in commit.added_paths:
        return False
    if held.path not in commit.removed_paths:
        return True
    # Named again: where rows were only marked, one that is there now was there before.
    return not (commit.only_marks or finder.was_there(held, commit.removal(held.path)))


class _Trail:
    """Where the row was before each commit, going back."""

    def __init__(self, past: StreamPast, finder: RowFinder) -> None:
        self._past = past
        self._finder = finder
        self._ahead = 0
        """The first commit whose files were not read ahead."""

    def before(self, number: int, held: Held | None, metadata: Metadata) -> Held | None:
        """The row before the commit of a number, after which it is ``held``: in a file that it removed."""
        if held is not None and number >= self._ahead:
            self._read_ahead(held.path, number, metadata)
        return self._finder.live_row(metadata, self._removed(number, metadata))

    def _read_ahead(self, path: str, number: int, metadata: Metadata) -> None:
        """Look for the row where it may come from, in files of one schema."""
        paths, found = {path}, list[Add]()
        for place, commit in enumerate(self._past.span(number, AHEAD), number):
            if place > number and commit.metadata is not None:
                break
            self._ahead = place + 1
            if paths & commit.new_paths:
                gone = commit.removed_paths - commit.added_paths
                found += self._removed(place, metadata, gone)
                paths |= gone
        self._finder.read_ahead(metadata, found)

    def _removed(self, number: int, metadata: Metadata, paths: set[str] | None = None) -> list[Add]:
        """Those of the files that a commit removed which may hold the row, as they were before it."""
        (commit,) = self._past.span(number, 1)
        found = []
        for path in sorted(commit.removed_paths if paths is None else paths):
            known = self._finder.holds(metadata, path)
            if known is not False:
                statistics = self._past.statistics(path, number, AHEAD) if known is None else None
                one = commit.removal(path)
                values, vector = one.partition_values or {}, one.deletion_vector
                found.append(Add(path, one.size or 0, values, stats=statistics, deletion_vector=vector))
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
