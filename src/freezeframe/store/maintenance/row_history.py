"""History of one row of a stream, newest first: each version that inserted, updated or deleted it.

The row is followed backwards from file to file. A commit matters only if it added the file that holds the
row or, while the row does not exist, removed a file that may hold its key. Files whose statistics exclude the
key are not read, and each other file is searched once.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log.format.action_columns import from_adds
from freezeframe.log.format.actions import Action, Add, DeletionVector, Metadata, Remove, parse_line
from freezeframe.log.scan.file_rows import FileRead, FoundRows, deleted_rows, group_statistics, rows_found
from freezeframe.log.scan.rows import ReadableSnapshot, SnapshotPart, part_of, plan_reads
from freezeframe.store.diff.row_changes import CHANGE_TYPE, DELETE, INSERT, RowChanges, compare_row
from freezeframe.store.schema.columns import (
    DELETED,
    VALID_TO,
    arrow_columns,
    physical_names,
    read_system_columns,
    stored_key,
)
from freezeframe.store.table.keys import (
    KeyNumbers,
    files_with,
    keys_as,
    may_hold,
    threads_of,
)
from freezeframe.store.table.reader import (
    as_typed_so_far,
    deleted_positions,
    row_columns,
)
from freezeframe.store.tenant_log.history import HistoryEntry, history_entry
from freezeframe.store.tenant_log.roll_forward import change_content, table_snapshot
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import Scope


@dataclass(frozen=True)  # without slots: what was parsed is kept
class StreamCommit:
    """The changes of a stream's files by a version of the tenant; ``content`` is its table's commit."""

    entry: HistoryEntry
    table_version: int
    content: str

    @cached_property
    def added_paths(self) -> set[str]:
        """The paths of the files that it adds, or adds again with other deleted rows."""
        return self._paths("add")

    @cached_property
    def removed_paths(self) -> set[str]:
        """The paths of the files that it removes, including files that it adds again."""
        return self._paths("remove")

    @property
    def new_paths(self) -> set[str]:
        """The paths of added files that did not exist before."""
        return self.added_paths - self.removed_paths

    def removal(self, path: str) -> Remove:
        """Return the removal of one of ``removed_paths``."""
        found = (
            item for item in self._parsed("remove", path) if isinstance(item, Remove) and item.path == path
        )
        return next(found)

    @cached_property
    def metadata(self) -> Metadata | None:
        """The table's metadata from this commit on, if it changes them."""
        return next((item for item in self._parsed("metaData") if isinstance(item, Metadata)), None)

    @property
    def only_marks(self) -> bool:
        """Whether files that it adds again have no fewer deleted rows than before."""
        return self.entry.kind == "commit"

    def added(self, path: str) -> Add:
        """Return the addition of one of ``added_paths``."""
        found = (item for item in self._parsed("add", path) if isinstance(item, Add) and item.path == path)
        return next(found)

    @cached_property
    def _lines(self) -> list[str]:
        return self.content.split("\n")

    def _paths(self, kind: str) -> set[str]:
        begin, first = f'{{"{kind}":', f'{{"{kind}":{{"path":"'
        lines = [line for line in self._lines if line.startswith(begin)]
        paths = {line[len(first) :].partition('"')[0] for line in lines if line.startswith(first)}
        if len(paths) == len(lines) and not any("\\" in path for path in paths):
            return paths
        # Fields in another order, or escapes.
        return {item.path for item in self._parsed(kind) if isinstance(item, Add | Remove)}

    def _parsed(self, kind: str, path: str = "") -> Iterator[Action | None]:
        mark, name = f'"{kind}"', json.dumps(path, ensure_ascii=False)[1:-1]
        return (parse_line(line) for line in self._lines if mark in line and name in line)


class StreamPast:
    """The commits of a stream up to a state of the tenant."""

    def __init__(self, scope: Scope, name: StreamName, until: TenantState) -> None:
        self._scope = scope
        self._name = name
        self._commits: list[StreamCommit] = []
        self._reading = self._read(until)
        self.is_whole = True
        """Whether no older commit is known to be missing."""

    def at(self, number: int) -> StreamCommit | None:
        """Return the commit of a number, the newest being 0; None beyond the oldest kept commit."""
        while len(self._commits) <= number:
            commit = next(self._reading, None)
            if commit is None:
                return None
            self._commits.append(commit)
        return self._commits[number]

    def span(self, first: int, count: int) -> list[StreamCommit]:
        """Return at most ``count`` commits from a number on."""
        self.at(first + count - 1)
        return self._commits[first : first + count]

    def statistics(self, path: str, number: int, count: int) -> str | None:
        """Return a removed file's statistics, if one of ``count`` commits from a number on adds it."""
        for commit in self.span(number, count):
            if path in commit.added_paths:
                return commit.added(path).stats
        return None

    def metadata_before(self, number: int) -> Metadata | None:
        """Return the table's metadata before a commit; None: there was no table."""
        while (older := self.at(number + 1)) is not None:
            number += 1
            if older.metadata is not None:
                return older.metadata
        version = self._commits[-1].table_version
        if not version:
            return None
        scope = self._scope
        return table_snapshot(scope.log, scope.state(), self._name, version - 1).metadata

    def _read(self, until: TenantState) -> Iterator[StreamCommit]:
        newest = self._scope.log.current_state()
        is_begun = False
        for version, entry in self._scope.log.entries_down(
            newest, range(until.version, newest.floor - 1, -1)
        ):
            for change in entry.streams:
                if change.stream != self._name:
                    continue
                # Another writer's change is known only by its result; commits before the oldest are not kept.
                is_oldest = version == newest.floor and change.table_version
                if not change.lands or change.is_external or is_oldest:
                    self.is_whole = False
                    return
                content = change_content(self._scope.log, change)
                yield StreamCommit(history_entry(version, entry), change.table_version, content)
                is_begun = True
                if not change.table_version:
                    return
        self.is_whole = not is_begun


# Files whose statistics exclude the key are not opened. Each other file is searched once, in one row group
# where that suffices, and files of several versions are read concurrently, ahead of their use.

_NOTHING = FoundRows(np.empty(0, np.int64), None)


@dataclass(frozen=True, slots=True)
class Held:
    """A row, as a table of one row, and its location."""

    path: str
    position: int
    row: pa.Table


class RowFinder:
    """Finds the row of a key in files of a stream."""

    def __init__(self, snapshot: ReadableSnapshot, keys: pa.Table) -> None:
        self._snapshot = snapshot
        self._keys = keys
        self._threads = threads_of(snapshot.storage)
        self._found: dict[tuple[str, str | None], FoundRows] = {}
        # The row group of the last hit: files are sorted by key, so the next file has the key nearby.
        self._group = 0

    def current_row(self) -> Held | None:
        """Return the row at the snapshot itself."""
        snapshot = self._snapshot
        near = self._read(snapshot.metadata, snapshot.files)
        gone = deleted_positions(snapshot, near)
        return self._held(snapshot.metadata, [(path, gone.get(path)) for path in near["path"].to_pylist()])

    def holds(self, metadata: Metadata, path: str) -> bool | None:
        """Return whether a file has rows of the key, deleted or not; None: it was not searched."""
        found = self._found.get((path, metadata.schema_string))
        return None if found is None else found.rows is not None

    def live_row(self, metadata: Metadata, files: Iterable[Add]) -> Held | None:
        """Return the row in files as a commit added them, or as they were when it removed them."""
        # A larger file is likelier to hold the row; when it is found, the rest is not read.
        ordered = sorted(files, key=lambda file: -file.size)
        for first in range(0, len(ordered), self._threads):
            some = ordered[first : first + self._threads]
            self.read_ahead(metadata, some)
            near = [item for item in some if self.holds(metadata, item.path)]
            held = self._held(metadata, ((item.path, self._deleted(item.deletion_vector)) for item in near))
            if held is not None:
                return held
        return None

    def read_ahead(self, metadata: Metadata, files: Iterable[Add]) -> None:
        """Search files for the key concurrently and remember the results."""
        text = metadata.schema_string
        new = {file.path: file for file in files if (file.path, text) not in self._found}
        if new:
            # All rows are searched, because the deleted rows depend on the version.
            self._read(metadata, from_adds([replace(item, deletion_vector=None) for item in new.values()]))

    def was_there(self, held: Held, remove: Remove) -> bool:
        """Return whether a file that a commit removed and added again held the row at the same position."""
        gone = self._deleted(remove.deletion_vector)
        return gone is None or held.position not in gone

    def _deleted(self, vector: DeletionVector | None) -> npt.NDArray[np.int64] | None:
        if vector is None:
            return None
        return deleted_rows(self._snapshot.storage, self._snapshot.table, vector).astype(np.int64)

    def _held(
        self, metadata: Metadata, files: Iterable[tuple[str, npt.NDArray[np.int64] | None]]
    ) -> Held | None:
        has_history = read_system_columns(metadata).has_history
        for path, gone in files:
            found = self._found[path, metadata.schema_string]
            if found.rows is None:
                continue
            for number, position in enumerate(found.positions.tolist()):
                row = found.rows.slice(number, 1)
                # A stream with history has several rows of the key, of which one is current.
                if has_history and row[VALID_TO][0].is_valid:
                    continue
                if gone is None or position not in gone:
                    return Held(path, position, row.drop_columns([VALID_TO]) if has_history else row)
        return None

    def _read(self, metadata: Metadata, files: pa.Table) -> pa.Table:
        """Search files for the key; return the ``files`` whose statistics do not exclude it."""
        snapshot, text = self._snapshot, metadata.schema_string
        self._found.update({(path, text): _NOTHING for path in files["path"].to_pylist()})
        part = replace(part_of(snapshot, files), metadata=metadata, delta_schema=metadata.schema)
        keys = keys_as(self._keys, arrow_columns(part.delta_schema))
        if not len(keys):
            return files.slice(0, 0)
        near = files_with(part, keys)
        if len(near):
            has_history = read_system_columns(metadata).has_history
            shown = [field.name for field in row_columns(part) if not pa.types.is_null(field.type)]
            rest = [name for name in shown if name not in keys.column_names]
            names = [*keys.column_names, *rest, *([VALID_TO] if has_history else [])]
            reads = plan_reads(part, names, None, near).reads
            order = [*shown, *names[len(shown) :]]
            look = partial(self._look, part, keys, KeyNumbers(keys), order, is_unique=not has_history)
            with ThreadPoolExecutor(max(1, min(self._threads, len(reads)))) as pool:
                for read, found in zip(reads, pool.map(look, reads), strict=True):
                    self._found[read.path, text] = found
        return near

    def _look(
        self,
        part: SnapshotPart,
        keys: pa.Table,
        numbers: KeyNumbers,
        order: list[str],
        read: FileRead,
        *,
        is_unique: bool,
    ) -> FoundRows:
        found = rows_found(
            part.storage,
            read,
            len(keys.column_names),
            lambda table: numbers.found_in(table)[0],
            _groups_near(self._group, part, keys) if is_unique else _groups_with(part, keys),
            is_unique=is_unique,
        )
        if found.group is not None:
            self._group = found.group
        if found.rows is None:
            return found
        return replace(found, rows=as_typed_so_far(part, found.rows.select(order)))


def _groups_near(first: int, part: SnapshotPart, keys: pa.Table) -> Callable[[pq.ParquetFile], Iterable[int]]:
    """Return the group of a number and its neighbours, then those whose statistics do not exclude the key."""

    def groups(file: pq.ParquetFile) -> Iterable[int]:
        near = [item for item in (first, first + 1, first - 1) if 0 <= item < file.metadata.num_row_groups]
        yield from near
        yield from (item for item in _groups_with(part, keys)(file) if item not in near)

    return groups


def _groups_with(part: SnapshotPart, keys: pa.Table) -> Callable[[pq.ParquetFile], Iterable[int]]:
    def groups(file: pq.ParquetFile) -> Iterable[int]:
        if file.metadata.num_row_groups == 1:
            return [0]
        names = physical_names(part.delta_schema)
        fields = [item for item in part.delta_schema["fields"] if item["name"] in keys.column_names]
        texts = list(group_statistics(file, {**part.delta_schema, "fields": fields}))
        held = may_hold(texts, keys, arrow_columns(part.delta_schema), names)
        return [number for number, may in enumerate(held) if may]

    return groups


AHEAD = 32
"""The number of versions whose files are read concurrently."""


@dataclass(frozen=True, slots=True)
class RowVersion:
    """The change of the row by a version of the tenant: an ``insert``, ``update`` or ``delete``.

    ``before`` and ``after`` are the row's values; None if there was no row. ``changed`` names the columns
    that an update changed.
    """

    entry: HistoryEntry
    change_of_row: RowChanges

    @property
    def changes(self) -> pa.Table:
        """The change in the form of ``Stream.changes``: a table of one row."""
        return self.change_of_row.table

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
        return None if self.change == INSERT else shown_rows(self.change_of_row.before)[0]

    @property
    def after(self) -> dict[str, Any] | None:
        """The row's values at this version."""
        return None if self.change == DELETE else shown_rows(self.change_of_row.after)[0]

    @property
    def changed(self) -> tuple[str, ...]:
        """The columns that an update gave another value."""
        return tuple(self.change_of_row.changed)


@dataclass(frozen=True, slots=True)
class RowHistory:
    """A row and the versions that inserted, updated or deleted it, the newest first.

    ``row`` has its values at the newest version of the history; None: there is no such row. ``following`` is
    the version to continue from (``until``) if a limit was reached, else None. ``is_whole`` is false if older
    versions are no longer kept or had another key; with ``following`` it covers the versions that were read.
    """

    stream: str
    key: Mapping[str, Any]
    row: Mapping[str, Any] | None
    versions: tuple[RowVersion, ...]
    following: int | None
    is_whole: bool


def row_history(
    scope: Scope, name: StreamName, keys: pa.Table, until: TenantState, limit: int | None = None
) -> RowHistory:
    """Return the history of the row whose key is the row of ``keys``, seen from the state ``until``."""
    if limit is not None and limit < 1:
        raise InvalidOption(f"limit cannot be {limit}.", remedy="Pass 1 or more, or nothing for all.")
    snapshot = table_snapshot(scope.log, until, name)
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
    """Return whether a commit may have changed the row, which is ``held`` after it."""
    if held is None:
        return bool(commit.removed_paths)
    if held.path not in commit.added_paths:
        return False
    if held.path not in commit.removed_paths:
        return True
    # Added again: if rows were only marked, a row that exists now existed before.
    return not (commit.only_marks or finder.was_there(held, commit.removal(held.path)))


class _Trail:
    """Finds the row before each commit, from newest to oldest."""

    def __init__(self, past: StreamPast, finder: RowFinder) -> None:
        self._past = past
        self._finder = finder
        self._ahead = 0
        """The first commit whose files were not read ahead."""

    def before(self, number: int, held: Held | None, metadata: Metadata) -> Held | None:
        """Return the row before a commit, by its number and the row after it, from the files it removed."""
        if held is not None and number >= self._ahead:
            self._read_ahead(held.path, number, metadata)
        return self._finder.live_row(metadata, self._removed(number, metadata))

    def _read_ahead(self, path: str, number: int, metadata: Metadata) -> None:
        """Search the files that the row may come from, as long as the schema stays the same."""
        paths, found = {path}, list[Add]()
        for index, commit in enumerate(self._past.span(number, AHEAD), number):
            if index > number and commit.metadata is not None:
                break
            self._ahead = index + 1
            if paths & commit.new_paths:
                gone = commit.removed_paths - commit.added_paths
                found += self._removed(index, metadata, gone)
                paths |= gone
        self._finder.read_ahead(metadata, found)

    def _removed(self, number: int, metadata: Metadata, paths: set[str] | None = None) -> list[Add]:
        """Return those of the files that a commit removed which may hold the row, as they were before it."""
        (commit,) = self._past.span(number, 1)
        found = []
        for path in sorted(commit.removed_paths if paths is None else paths):
            known = self._finder.holds(metadata, path)
            if known is not False:
                statistics = self._past.statistics(path, number, AHEAD) if known is None else None
                removal = commit.removal(path)
                values, vector = removal.partition_values or {}, removal.deletion_vector
                found.append(Add(path, removal.size or 0, values, stats=statistics, deletion_vector=vector))
        return found


def _compare(
    before: Held | None, held: Held | None, key: Sequence[str], metadata: Metadata | None
) -> RowChanges | None:
    if before is None and held is None:
        return None
    new = held.row if held is not None else before.row.slice(0, 0)  # type: ignore[union-attr]  # one is there
    old = before.row if before is not None else new.slice(0, 0)
    flag = DELETED if read_system_columns(metadata).flags_deleted else None
    changes = compare_row(old, new, key, flag)
    return changes if len(changes) else None
