"""Row counts of a version, equal to a comparison with the version before.

An update counts rows while it merges or patches them. The counts of several updates in a job add up if
they changed different rows. Otherwise, and for a restoration, the two versions are compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.equality import are_distinct
from freezeframe.engine.protocol import (
    MergeResult,
    MergeTask,
    Positions,
    TableEngine,
    Validity,
)
from freezeframe.errors import CorruptData, InvalidOption
from freezeframe.log import Snapshot
from freezeframe.log.format.conversion import conform
from freezeframe.log.format.schema import arrow_field, column_finder, delta_to_arrow, fields_of
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.log.scan.data_files import file_uri
from freezeframe.log.scan.rows import SnapshotPart, part_of
from freezeframe.storage import Storage
from freezeframe.store.diff.row_diff import differing_part, table_changes
from freezeframe.store.diff.row_diff_pages import COUNTED_ROWS_MAX, Comparison, change_counts
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import (
    DELETED,
    VALID_FROM,
    VALID_TO,
    read_system_columns,
    stored_key,
    written_columns,
)
from freezeframe.store.schema.type_compatibility import compare_columns, open_columns
from freezeframe.store.table.reader import deleted_positions, in_schema, row_count


def compared_counts(before: Snapshot | None, after: Snapshot | None) -> Counts:
    """Return the row counts of the changes between two versions (None: the stream does not exist).

    Too many rows without a key all count as deleted and inserted, except rows of shared files.
    """
    comparison = Comparison(before, after)
    return comparison.counts() if comparison.is_comparable else comparison.counts_of_files()


def net_counts(
    before: Snapshot,
    after: Snapshot,
    steps: Counts,
    engine: TableEngine | None = None,
    rows_max: int = COUNTED_ROWS_MAX,
) -> Counts:
    """Return the counts of the commit from ``before`` to ``after``; ``steps`` are the counts of its steps.

    ``unchanged`` comes from the steps. An ``engine`` compares more than ``rows_max`` rows. If the rows cannot
    be compared (a restoration may mend a damaged file of ``before``), all counts come from the steps.
    """
    old, new = (None if item.version < 0 or was_dropped(item) else item for item in (before, after))
    if old is new is None:
        return Counts(unchanged=steps.unchanged)
    try:
        if old is None or new is None:
            inserted, deleted = (0 if item is None else row_count(item) for item in (new, old))
            return Counts(inserted, 0, steps.unchanged, deleted)
        found = _compared_by(engine, old, new, rows_max) if engine else compared_counts(old, new)
    except (CorruptData, InvalidOption):
        return steps
    return Counts(found.inserted, found.updated, steps.unchanged, found.deleted)


def _compared_by(engine: TableEngine, before: Snapshot, after: Snapshot, rows_max: int) -> Counts:
    """Compare two versions as ``compared_counts``; the engine compares more than ``rows_max`` rows."""
    comparison = Comparison(before, after)
    was, own = read_system_columns(before.metadata), read_system_columns(after.metadata)
    if comparison.is_by_key:
        can_compare = own.has_history or not was.has_history
    else:
        can_compare = not (own.names or was.names)
    if comparison.rows_max <= rows_max or not can_compare:
        return compared_counts(before, after)
    compared = compare_columns(written_columns(before.delta_schema), written_columns(after.delta_schema))
    old, new = _differing_files(before, after)
    engine.require_shared(before.storage.uri(""))
    found = engine.merge(
        MergeTask(
            stored=_uris(before, old.files["path"].to_pylist()),
            stored_schema=open_columns(compared.stored),
            batch=_uris(before, new.files["path"].to_pylist()),
            batch_schema=open_columns(written_columns(after.delta_schema)),
            target_schema=compared.target,
            key=(stored_key(after.metadata) or ()) if comparison.is_by_key else (),
            mode="overwrite",
            null_keys="match",
            write=False,
            flag=DELETED if own.flags_deleted else "",
            validity=Validity(VALID_FROM, VALID_TO, 0, 0) if own.has_history else None,
            deleted=_deleted(before, old),
            batch_deleted=_deleted(before, new),
            size_bytes=sum(pc.sum(part.files["size"]).as_py() or 0 for part in (old, new)),
        )
    )
    return Counts(found.inserted, found.updated, found.unchanged, found.deleted)


def _differing_files(before: Snapshot, after: Snapshot) -> tuple[SnapshotPart, SnapshotPart]:
    """Return the files of both that have a row which the other has not."""
    parts = (differing_part(before, after), differing_part(after, before))
    paths = pa.chunked_array([chunk for part in parts for chunk in part.snapshot.files["path"].chunks])
    old, new = (
        part_of(item, item.files.filter(pc.is_in(item.files["path"], paths))) for item in (before, after)
    )
    return old, new


def _uris(table: Snapshot, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(file_uri(table.storage, table.table, path) for path in paths)


def _deleted(table: Snapshot, part: SnapshotPart) -> dict[str, Positions]:
    found = deleted_positions(part, part.files)
    return dict(zip(_uris(table, found), found.values(), strict=True))


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
