"""History of one row of a stream, newest first.

The row is followed backwards from file to file: a version matters only if it brought the file that holds
the row, or, while there is no row, removed a file that may hold its key. Files whose statistics exclude
the key are not read, and the key is looked for once in each of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freezeframe.clock import rfc3339
from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log.actions.action_columns import from_adds
from freezeframe.log.actions.actions import Add, Metadata, Remove, parse_line
from freezeframe.log.scan.file_rows import deleted_rows
from freezeframe.log.scan.rows import ReadableSnapshot
from freezeframe.store.diff.row_diff import BEFORE, CHANGE_TYPE, changed_cells, table_changes
from freezeframe.store.keys.key_scan import files_with, scan
from freezeframe.store.keys.key_values import keys_as
from freezeframe.store.schema.column_mapping import arrow_columns
from freezeframe.store.schema.system_columns import DELETED, read_system_columns
from freezeframe.store.schema.table_properties import stored_key
from freezeframe.store.table.data_files import deleted_positions
from freezeframe.store.table.reader import read_rows_at, row_columns
from freezeframe.store.table.snapshot_part import SnapshotPart
from freezeframe.store.tenant_log.entry_actions import StreamChange
from freezeframe.store.tenant_log.history import HistoryEntry, history_entry
from freezeframe.store.tenant_log.roll_forward import change_content
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.tenant_log.table_lookup import table_snapshot
from freezeframe.store.transaction.scope import TenantScope


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
    is false where older versions are no longer kept, or knew the stream by another key.
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
    commits, is_whole = _commits(scope, name, until)
    finder = _Finder(snapshot, keys, commits)
    held = finder.find(snapshot.metadata, snapshot.files)
    (key,), row = shown_rows(keys), None if held is None else shown_rows(held.row)[0]
    versions: list[RowVersion] = []
    following = None
    metadata: Metadata | None = snapshot.metadata
    for number, commit in enumerate(commits):
        after = metadata
        if commit.metadata is not None:
            metadata = _metadata_before(scope, name, commits[number:])
        if not commit.may_touch(held) or (held is not None and finder.was_there(held, commit.removes)):
            continue
        if commit.removes and (metadata is None or set(stored_key(metadata) or ()) != set(key)):
            is_whole = False
            break
        before = None if metadata is None else finder.removed_row(metadata, commit.removes)
        changes = _compare(before, held, tuple(key), after)
        held = before
        if changes is not None:
            if len(versions) == limit:
                following = commit.entry.version
                break
            versions.append(RowVersion(commit.entry, changes))
    return RowHistory(str(name), key, row, tuple(versions), following, is_whole)


@dataclass(frozen=True, slots=True)
class _Held:
    """A row, as a table of one, and where it lies."""

    path: str
    position: int
    row: pa.Table


@dataclass(frozen=True, slots=True)
class _Commit:
    """What one version of the tenant did to the stream's files."""

    entry: HistoryEntry
    table_version: int
    adds: tuple[Add, ...]
    removes: tuple[Remove, ...]
    metadata: Metadata | None

    def may_touch(self, held: _Held | None) -> bool:
        """Whether the commit may have changed the row."""
        return bool(self.removes) if held is None else any(one.path == held.path for one in self.adds)


def _commits(scope: TenantScope, name: StreamName, until: TenantState) -> tuple[list[_Commit], bool]:
    """The stream's commits up to a state, the newest first, and whether they go back to its beginning."""
    newest = scope.log.current_state()
    found: list[_Commit] = []
    for version, entry in scope.log.entries_down(newest, range(until.version, newest.floor - 1, -1)):
        for change in entry.streams:
            if change.stream != name:
                continue
            # Another writer's change is known by its result only; the version before the oldest is not kept.
            if not change.lands or change.is_external or (version == newest.floor and change.table_version):
                return found, False
            found.append(_commit(scope, history_entry(version, entry), change))
            if not change.table_version:
                return found, True
    return found, not found or not found[-1].table_version


def _commit(scope: TenantScope, entry: HistoryEntry, change: StreamChange) -> _Commit:
    lines = change_content(scope.storage, change).split("\n")
    actions = [parse_line(line) for line in lines if line.strip()]
    return _Commit(
        entry,
        change.table_version,
        tuple(one for one in actions if isinstance(one, Add)),
        tuple(one for one in actions if isinstance(one, Remove)),
        next((one for one in actions if isinstance(one, Metadata)), None),
    )


def _metadata_before(scope: TenantScope, name: StreamName, commits: Sequence[_Commit]) -> Metadata | None:
    """The metadata before the first of some commits, which are the newest first; None: there was no table."""
    for commit in commits[1:]:
        if commit.metadata is not None:
            return commit.metadata
    oldest = commits[-1]
    if not oldest.table_version:
        return None
    return table_snapshot(scope.storage, scope.state(), name, oldest.table_version - 1).metadata


def _compare(
    before: _Held | None, held: _Held | None, key: Sequence[str], metadata: Metadata | None
) -> pa.Table | None:
    """The change between two states of the row; None if they are equal."""
    if before is None and held is None:
        return None
    new = held.row if held is not None else before.row.slice(0, 0)  # type: ignore[union-attr]  # one is there
    old = before.row if before is not None else new.slice(0, 0)
    flag = DELETED if read_system_columns(metadata).flags_deleted else None
    changes = table_changes(old, new, key, flag)
    return changes if len(changes) else None


class _Finder:
    """Finds the row in files; in each that its statistics allow the key is looked for once."""

    def __init__(self, snapshot: ReadableSnapshot, keys: pa.Table, commits: Sequence[_Commit]) -> None:
        self._snapshot = snapshot
        self._keys = keys
        self._statistics = {one.path: one.stats for commit in commits for one in commit.adds}
        self._positions: dict[str, npt.NDArray[np.int64]] = {}

    def was_there(self, held: _Held, removes: Sequence[Remove]) -> bool:
        """Whether a file that a commit removed, only to name it again, held the row at the same place."""
        for one in removes:
            if one.path == held.path:
                vector, table = one.deletion_vector, self._snapshot
                gone = () if vector is None else deleted_rows(table.storage, table.table, vector)
                return held.position not in gone
        return False

    def removed_row(self, metadata: Metadata, removes: Sequence[Remove]) -> _Held | None:
        """The row in files that a commit removed, with its content from before the commit."""
        adds = [
            Add(
                one.path,
                one.size or 0,
                one.partition_values or {},
                stats=self._statistics.get(one.path, one.stats),
                deletion_vector=one.deletion_vector,
            )
            for one in removes
            if len(self._positions.get(one.path, (0,)))
        ]
        return self.find(metadata, from_adds(adds)) if adds else None

    def find(self, metadata: Metadata, files: pa.Table) -> _Held | None:
        """The row, if one of ``files`` (rows of ``Snapshot.files``) holds it."""
        part = self._part(metadata, files)
        keys = keys_as(self._keys, arrow_columns(part.schema))
        if not len(keys):
            return None
        near = files_with(part, keys)
        self._look_up(self._part(metadata, near), keys)
        gone = deleted_positions(part, near)
        names = [one.name for one in row_columns(part) if not pa.types.is_null(one.type)]
        for path in near["path"].to_pylist():
            # A stream with history has several rows of the key, of which one is current.
            for position in np.setdiff1d(self._positions[path], gone.get(path, np.empty(0, np.int64))):
                row = read_rows_at(part, {path: np.array([position])}, names)
                if len(row):
                    return _Held(path, int(position), row)
        return None

    def _look_up(self, part: SnapshotPart, keys: pa.Table) -> None:
        paths = part.files["path"].to_pylist()
        new = part.files.filter(pa.array([path not in self._positions for path in paths], pa.bool_()))
        found = scan(part, new, keys)
        file, row = found["file"].to_numpy(), found["row"].to_numpy()
        for number, path in enumerate(new["path"].to_pylist()):
            self._positions[path] = row[file == number]

    def _part(self, metadata: Metadata, files: pa.Table) -> SnapshotPart:
        one = self._snapshot
        return SnapshotPart(
            one.storage, one.table, one.version, one.protocol, metadata, metadata.schema, files
        )
