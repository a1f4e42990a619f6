"""Row counts of a version, equal to a comparison with the version before.

An update counts rows while it merges or patches them. The counts of several updates in a job add up if
they changed different rows. Otherwise, and for a restoration, the two versions are compared.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.equality import are_distinct
from freezeframe.engine.protocol import NOTHING, MergeResult, MergeTask, Positions, TableEngine
from freezeframe.errors import CorruptData, InvalidOption
from freezeframe.log import Snapshot
from freezeframe.log.format.conversion import conform
from freezeframe.log.format.schema import arrow_field, column_finder, delta_to_arrow, fields_of
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.storage import Storage
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.diff.row_changes import compare_tables
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.table.reader import in_schema, row_count


def compared_counts(before: Snapshot | None, after: Snapshot | None) -> Counts:
    """Return the row counts of the changes between two versions (None: the stream does not exist).

    Too many rows without a key all count as deleted and inserted, except rows of shared files.
    """
    comparison = Comparison(before, after)
    return comparison.counts() if comparison.is_comparable else comparison.counts_of_files()


def net_counts(before: Snapshot, after: Snapshot, steps: Counts) -> Counts:
    """Return the counts of the commit from ``before`` to ``after``; ``steps`` are the counts of its steps.

    ``unchanged`` comes from the steps. If the rows cannot be compared (a restoration may mend a damaged file
    of ``before``), all counts come from the steps.
    """
    old, new = (None if item.version < 0 or was_dropped(item) else item for item in (before, after))
    if old is new is None:
        return Counts(unchanged=steps.unchanged)
    try:
        if old is None or new is None:
            inserted, deleted = (0 if item is None else row_count(item) for item in (new, old))
            return Counts(inserted, 0, steps.unchanged, deleted)
        found = compared_counts(old, new)
    except (CorruptData, InvalidOption):
        return steps
    return Counts(found.inserted, found.updated, steps.unchanged, found.deleted)


def share_no_key(changed: Sequence[pa.Table | None]) -> bool:
    """Return whether no key is in two of the tables, each with distinct keys (None: unknown keys)."""
    tables = [keys for keys in changed if keys is not None]
    if len(tables) < len(changed) or len({keys.schema.remove_metadata() for keys in tables}) > 1:
        return False
    return are_distinct(pa.concat_tables(tables))


def was_dropped(snapshot: Snapshot) -> bool:
    """Return whether the table belongs to a dropped stream: no rows and no key property."""
    return snapshot.version >= 0 and stored_key(snapshot.metadata) is None and not snapshot.count


class ArrowEngine(TableEngine):
    """Engine without Spark, for the service: counts an override by key or by whole rows in this process.

    It refuses every update that moves stored rows (an upsert, a window, a full extract).
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def merge(self, task: MergeTask) -> MergeResult:
        """See ``TableEngine.merge``; of a comparison."""
        if task.output or task.period:
            _refuse()
        target = delta_to_arrow(task.target_schema)
        old = self._rows(task.stored, task.stored_schema, target, task.deleted)
        new = self._rows(task.batch, task.batch_schema, target, NOTHING)
        counts = compare_tables(old, new, task.key).counts
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
        name = file.removeprefix(self._storage.uri("")).lstrip("/")
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


def _logical(table: pa.Table, schema: Mapping[str, Any]) -> pa.Table:
    """Convert a file's columns to the names and types of ``schema``; missing columns are left out."""
    columns = {}
    find = column_finder(table.schema, "name")
    for field in fields_of(schema):
        index = find(field)
        if index is not None:
            chunks = [conform(chunk, field["type"], "name") for chunk in table.column(index).chunks]
            columns[field["name"]] = pa.chunked_array(chunks, arrow_field(field).type)
    return pa.table(columns) if columns else table.select([])


def _refuse() -> NoReturn:
    raise InvalidOption(
        "This update has to move stored rows, which needs Spark.",
        cause="The service has no Spark.",
        remedy="Import the rows as a job, or replace the whole content.",
    )
