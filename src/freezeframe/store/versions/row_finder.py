"""Search of one row's key in the files that a stream's versions added and removed.

Files whose statistics exclude the key are not opened; in each of the others it is looked for once, in one
row group where that is enough. Files of several versions are read side by side, ahead of their use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.log.actions.action_columns import from_adds
from freezeframe.log.actions.actions import Add, DeletionVector, Metadata, Remove
from freezeframe.log.scan.file_rows import (
    FileRead,
    FoundRows,
    deleted_rows,
    group_statistics,
    rows_found,
)
from freezeframe.log.scan.rows import ReadableSnapshot, plan_reads
from freezeframe.storage.read_ahead import is_local
from freezeframe.store.keys.key_scan import (
    REQUESTS_MAX,
    THREADS_MAX,
    KeyNumbers,
    files_with,
    keys_as,
    may_hold,
)
from freezeframe.store.schema.column_mapping import arrow_columns, physical_names
from freezeframe.store.schema.system_columns import VALID_TO, read_system_columns
from freezeframe.store.table.data_files import deleted_positions
from freezeframe.store.table.reader import SnapshotPart, as_typed_so_far, part_of, row_columns

_NOTHING = FoundRows(np.empty(0, np.int64), None)


@dataclass(frozen=True, slots=True)
class Held:
    """A row, as a table of one, and where it lies."""

    path: str
    position: int
    row: pa.Table


class RowFinder:
    """Finds the row of a key in files of a stream."""

    def __init__(self, snapshot: ReadableSnapshot, keys: pa.Table) -> None:
        self._snapshot = snapshot
        self._keys = keys
        local = is_local(snapshot.storage)
        self._threads = min(THREADS_MAX, os.cpu_count() or 1) if local else REQUESTS_MAX
        self._found: dict[tuple[str, str | None], FoundRows] = {}
        # Where the key was last: in the next file it is there or nearby, for files are sorted by key.
        self._group = 0

    def current_row(self) -> Held | None:
        """The row at the snapshot itself."""
        one = self._snapshot
        near = self._read(one.metadata, one.files)
        gone = deleted_positions(one, near)
        return self._held(one.metadata, [(path, gone.get(path)) for path in near["path"].to_pylist()])

    def holds(self, metadata: Metadata, path: str) -> bool | None:
        """Whether a file has rows of the key, deleted or not; None: it was not looked at."""
        found = self._found.get((path, metadata.schema_string))
        return None if found is None else found.rows is not None

    def live_row(self, metadata: Metadata, files: Iterable[Add]) -> Held | None:
        """The row in files as a commit added them, or as they were when it removed them."""
        # Of two files the larger one is likelier to hold the row; when it is found, the rest is not read.
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
        """Look for the key in files, side by side; those that were looked at are known."""
        text = metadata.schema_string
        new = {file.path: file for file in files if (file.path, text) not in self._found}
        if new:
            # A file is searched whole: which of its rows are deleted depends on the version.
            self._read(metadata, from_adds([replace(item, deletion_vector=None) for item in new.values()]))

    def was_there(self, held: Held, remove: Remove) -> bool:
        """Whether a file that a commit removed, only to name it again, held the row at the same place."""
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
            for place, position in enumerate(found.positions.tolist()):
                row = found.rows.slice(place, 1)
                # A stream with history has several rows of the key, of which one is current.
                if has_history and row[VALID_TO][0].is_valid:
                    continue
                if gone is None or position not in gone:
                    return Held(path, position, row.drop_columns([VALID_TO]) if has_history else row)
        return None

    def _read(self, metadata: Metadata, files: pa.Table) -> pa.Table:
        """Look for the key in files; the rows of ``files`` whose statistics do not exclude it."""
        one, text = self._snapshot, metadata.schema_string
        self._found.update({(path, text): _NOTHING for path in files["path"].to_pylist()})
        part = replace(part_of(one, files), metadata=metadata, schema=metadata.schema)
        keys = keys_as(self._keys, arrow_columns(part.schema))
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
    """The group of a number and its neighbours, then those whose statistics do not exclude the key."""

    def groups(file: pq.ParquetFile) -> Iterable[int]:
        near = [item for item in (first, first + 1, first - 1) if 0 <= item < file.metadata.num_row_groups]
        yield from near
        yield from (item for item in _groups_with(part, keys)(file) if item not in near)

    return groups


def _groups_with(part: SnapshotPart, keys: pa.Table) -> Callable[[pq.ParquetFile], Iterable[int]]:
    def groups(file: pq.ParquetFile) -> Iterable[int]:
        if file.metadata.num_row_groups == 1:
            return [0]
        names = physical_names(part.schema)
        fields = [item for item in part.schema["fields"] if item["name"] in keys.column_names]
        texts = list(group_statistics(file, {**part.schema, "fields": fields}))
        held = may_hold(texts, keys, arrow_columns(part.schema), names)
        return [number for number, may in enumerate(held) if may]

    return groups
