"""Change data feed: the rows inserted, deleted and updated by commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from freezeframe.errors import CorruptLog, InvalidOption, VersionNotFound
from freezeframe.log.actions.action_columns import from_adds, to_adds
from freezeframe.log.actions.actions import Action, Add, Cdc, DeletionVector, Remove, parse_line
from freezeframe.log.primitives.canonical_paths import canonical_path
from freezeframe.log.primitives.paths import commit_name
from freezeframe.log.scan.file_rows import FileRead, deleted_rows, file_batches, rows_at
from freezeframe.log.scan.rows import plan_reads
from freezeframe.log.segments.management import require_version
from freezeframe.log.segments.segment import version_missing
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.table.table_log import TableLog

_CHANGE_TYPE = {"name": "_change_type", "type": "string", "nullable": True, "metadata": {}}
_FIELDS = (
    pa.field("_change_type", pa.string()),
    pa.field("_commit_version", pa.int64()),
    pa.field("_commit_timestamp", pa.timestamp("us", "UTC")),
)


def read_changes(log: TableLog, start: int, end: int | None = None) -> pa.RecordBatchReader:
    """Return the changes of versions ``start`` to ``end`` in the columns of ``end``; see ``DeltaLog``."""
    start = require_version(start)
    newest = log.update()
    last = newest.version if end is None else require_version(end)
    if start > last:
        raise InvalidOption(
            f"Versions {start} to {last} are not a range.", remedy="Pass the earlier version first."
        )
    if last > newest.version:
        raise version_missing(log.folder, last, newest.version)
    times = {entry.version: entry.timestamp for entry in log.commit_times(start, last)}
    gone = [version for version in range(start, last + 1) if version not in times]
    if gone:
        raise VersionNotFound(
            f"The changes of version {gone[0]} can no longer be read.",
            cause="Its commit was cleaned up after the log's retention.",
            remedy="Begin with a later version; history() lists them.",
            code="DELTA_VERSION_NOT_FOUND",
            version=gone[0],
        )
    snapshot = log.snapshot_at(version=last)
    schema = pa.schema([*plan_reads(snapshot, None, None, from_adds([])).schema, *_FIELDS])
    batches = (
        batch
        for version in range(start, last + 1)
        for batch in _Commit(log, snapshot, version, times[version]).batches(schema)
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


class _Commit:
    """One commit of the range; its rows have the columns of ``snapshot``."""

    def __init__(self, log: TableLog, snapshot: Snapshot, version: int, timestamp_ms: int) -> None:
        self._log = log
        self._snapshot = snapshot
        self._version = version
        self._timestamp_us = timestamp_ms * 1000

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch, kind in self._changes():
            rows = batch.num_rows
            change = batch.column(batch.num_columns - 1) if kind is None else pa.repeat(kind, rows)
            columns = batch.columns if kind is not None else batch.columns[:-1]
            version = pa.repeat(pa.scalar(self._version, pa.int64()), rows)
            moment = pa.repeat(pa.scalar(self._timestamp_us, schema.field("_commit_timestamp").type), rows)
            yield pa.RecordBatch.from_arrays([*columns, change, version, moment], schema=schema)

    def _changes(self) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Batches with their kind of change, or None where the last column holds it."""
        actions = self._actions()
        recorded = [action for action in actions if isinstance(action, Cdc)]
        if recorded:
            for batch in self._recorded_changes(recorded):
                yield batch, None
            return
        adds = {canonical_path(a.path): a for a in actions if isinstance(a, Add) and a.data_change}
        removed = self._removed_files([a for a in actions if isinstance(a, Remove) and a.data_change])
        for path, add in removed.items():
            after = adds.get(path)
            for batch in self._rows(add) if after is None else self._between(add, after):
                yield batch, "delete"
        for path, add in adds.items():
            before = removed.get(path)
            for batch in self._rows(add) if before is None else self._between(add, before):
                yield batch, "insert"

    def _actions(self) -> list[Action]:
        name = f"{self._log.folder}/{commit_name(self._version)}"
        try:
            content = self._log.storage.read(name)
        except FileNotFoundError as error:
            raise CorruptLog(
                f"The commit {name} is gone.",
                cause="It was listed and then deleted, by log retention or by hand.",
                remedy="Begin with a later version.",
                code="DELTA_LOG_FILE_NOT_FOUND",
            ) from error
        found = (parse_line(line) for line in content.splitlines() if line.strip())
        return [action for action in found if action is not None]

    def _removed_files(self, removes: Sequence[Remove]) -> dict[str, Add]:
        """The add actions of removed files, from the state before: a remove may hold only the path."""
        found: dict[str, Add] = {}
        bare: set[str] = set()
        for remove in removes:
            path = canonical_path(remove.path)
            if remove.size is None or remove.partition_values is None:
                bare.add(path)
            else:
                found[path] = Add(
                    remove.path, remove.size, remove.partition_values, deletion_vector=remove.deletion_vector
                )
        if bare:
            files = self._log.snapshot_at(version=self._version - 1).files
            wanted = pa.array([path in bare for path in files["path"].to_pylist()], pa.bool_())
            found |= {canonical_path(add.path): add for add in to_adds(files.filter(wanted))}
        return found

    def _read(self, add: Add) -> FileRead:
        return plan_reads(self._snapshot, None, None, from_adds([add])).reads[0]

    def _rows(self, add: Add) -> Iterator[pa.RecordBatch]:
        return file_batches(self._snapshot.storage, self._read(add), None)

    def _between(self, add: Add, other: Add) -> Iterator[pa.RecordBatch]:
        """The rows of a file that are live under the vector of ``add`` but deleted under ``other``'s."""
        gone = np.setdiff1d(
            self._deleted_positions(other.deletion_vector), self._deleted_positions(add.deletion_vector)
        )
        return rows_at(self._snapshot.storage, self._read(add), gone.astype(np.int64))

    def _deleted_positions(self, vector: DeletionVector | None) -> np.ndarray:
        if vector is None:
            return np.zeros(0, np.uint64)
        return deleted_rows(self._snapshot.storage, self._snapshot.table, vector)

    def _recorded_changes(self, files: Sequence[Cdc]) -> Iterator[pa.RecordBatch]:
        for file in files:
            read = self._read(Add(file.path, file.size, file.partition_values))
            wide = replace(read, fields=(*read.fields, _CHANGE_TYPE), shown=read.shown + 1)
            yield from file_batches(self._snapshot.storage, wide, None)
