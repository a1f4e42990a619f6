"""A row engine without Spark, for the service: computes the difference to a stream's new content.

Loading and overriding a stream needs no more of an engine than that. What moves stored rows (an upsert, a
window, a full extract) is refused here: it belongs into a job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.protocol.forwarding import ForwardingEngine
from freezeframe.engine.protocol.table_engine import MergeResult, MergeTask, Positions, TableEngine
from freezeframe.errors import CorruptData, InvalidOption
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.log.schema.column_mapping import column_finder
from freezeframe.log.schema.conversion import conform
from freezeframe.log.schema.schema import arrow_field, delta_to_arrow, fields_of
from freezeframe.storage import Storage
from freezeframe.store.diff.row_diff import table_changes
from freezeframe.store.diff.row_diff_pages import change_counts
from freezeframe.store.table.reader import in_schema


class ArrowEngine(ForwardingEngine):
    """Counts an override by key or by whole rows, in this process; the limit of bytes is the caller's."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def merge(self, task: MergeTask) -> MergeResult:
        """See ``TableEngine.merge``; of an overwrite that writes nothing."""
        if task.mode != "overwrite" or task.write or task.validity is not None:
            _refuse()
        target = delta_to_arrow(task.target_schema)
        old = self._rows(task.stored, task.stored_schema, target, task.deleted)
        new = self._rows(task.batch, task.batch_schema, target, task.batch_deleted)
        counts = change_counts(table_changes(old, new, task.key, task.flag or None))
        unchanged = len(new) - counts.inserted - counts.updated
        return MergeResult(counts.inserted, counts.updated, unchanged, counts.deleted)

    def _behind(self) -> TableEngine:
        """Refuse: this engine has no Spark to search, land or read rows."""
        _refuse()

    def require_shared(self, folder: str) -> None:
        """Nothing to check: the engine is this process and sees the same files."""

    def close(self) -> None:
        """Nothing to close."""

    def _rows(
        self,
        files: Sequence[str],
        schema: Mapping[str, Any],
        target: pa.Schema,
        deleted: Mapping[str, Positions],
    ) -> pa.Table:
        tables = [self._file(file, schema, deleted.get(file)) for file in files]
        own = delta_to_arrow(schema)
        # In its own types: that is how rows are compared.
        known = {field.name: field for field in own}
        wanted = pa.schema([known.get(item.name, item) for item in target])
        return pa.concat_tables([in_schema(table, wanted) for table in (*tables, wanted.empty_table())])

    def _file(self, file: str, schema: Mapping[str, Any], gone: Positions | None) -> pa.Table:
        name = self._name(file)
        try:
            table = ForeignParquetFile(pa.BufferReader(self._storage.read(name))).read()
        except (FileNotFoundError, pa.ArrowException) as error:
            raise CorruptData(
                f"The file {name!r} cannot be read.",
                cause=f"{type(error).__name__}.",
                remedy="Restore it from a backup, or restore another version.",
            ) from error
        if gone is not None:
            table = table.filter(pc.invert(pc.is_in(pa.array(range(len(table))), pa.array(gone))))
        return _logical(table, schema)

    def _name(self, file: str) -> str:
        return file.removeprefix(self._storage.uri("")).lstrip("/")


def _logical(table: pa.Table, schema: Mapping[str, Any]) -> pa.Table:
    """A file's columns under the names and in the types of ``schema``; those that it lacks are left out."""
    columns = {}
    find = column_finder(table.schema, "name")
    for field in fields_of(schema):
        place = find(field)
        if place is not None:
            chunks = [conform(chunk, field["type"], "name") for chunk in table.column(place).chunks]
            columns[field["name"]] = pa.chunked_array(chunks, arrow_field(field).type)
    return pa.table(columns) if columns else table.select([])


def _refuse() -> NoReturn:
    raise InvalidOption(
        "This update moves stored rows, which the service does not do itself.",
        cause="It runs without Spark.",
        remedy="Import the rows as a job, or replace the whole content.",
    )
