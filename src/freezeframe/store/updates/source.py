"""Source rows of an update, validated and counted before stored rows are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.batch import check_batch
from freezeframe.engine.frames.frames import kind_of, to_arrow
from freezeframe.engine.frames.untyped import filled_type
from freezeframe.engine.protocol import TableEngine, WriteTask
from freezeframe.errors import InvalidOption
from freezeframe.log.format.schema import delta_to_arrow
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.type_compatibility import common_nested
from freezeframe.store.table.reader import in_schema
from freezeframe.store.table.staging import StagingFolder

LANDED_BYTES_MAX = 128 * 1024 * 1024
"""Batches that Spark wrote are taken into memory up to this many bytes there (``docs/decisions/0032``)."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """Checked rows: in memory (``table``), or written as Parquet by Spark (``paths``, an empty ``table``).

    ``table`` always has the columns and types. Each key is there once, no key has a null unless
    nulls match.
    """

    table: pa.Table
    rows: int
    null_keys_dropped: int
    paths: tuple[str, ...] = ()
    staging: StagingFolder | None = None
    """Where the files of landed rows are."""
    values_known: bool = True
    """Whether values may decide a column's type; of a Spark frame its types do, however many rows it has."""
    landed: pa.Schema | None = None
    """The types of the columns in the files."""
    written: pa.Table | None = None
    """The rows of the files, where they have been read already."""

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in this process."""
        return not self.paths

    def landed_rows(self) -> pa.Table | None:
        """The rows of the files in memory; None if they take more than ``LANDED_BYTES_MAX`` there."""
        if self.written is not None or self.staging is None:
            return self.written
        return self.staging.read_batch(self.paths, LANDED_BYTES_MAX)

    def values(self, name: str) -> Iterator[pa.ChunkedArray]:
        """The values of a column in pieces, read from the files for landed rows."""
        if self.staging is None:
            yield self.table[name]
        else:
            yield from (piece[name] for piece in self.staging.read_batch_columns(self.paths, [name]))

    def filled_types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types of columns by name, open where they have no value; landed rows are read once for all."""
        kinds = {field.name: field.type for field in self.table.schema}
        found: dict[str, pa.DataType] = dict.fromkeys(names, pa.null())
        if self.staging is None:
            pieces: Iterable[pa.Table] = [self.table.select(list(names))]
        else:
            pieces = self.staging.read_batch_columns(self.paths, names)
        for piece in pieces:
            for name, column in zip(piece.column_names, piece.columns, strict=True):
                if found[name] != kinds[name]:
                    found[name] = common_nested(found[name], filled_type(column))
            if all(found[name] == kinds[name] for name in names):
                break
        return found


def take(frame: Any, update: Update, engine: TableEngine, staging: StagingFolder) -> Incoming:
    """The rows of a pandas, Arrow or Spark frame; a Spark frame is written as Parquet once."""
    kind = kind_of(frame)
    if update.order_by and not update.key:
        raise InvalidOption(
            "order_by needs a key.",
            cause="It says which of the rows with one key is the last.",
            remedy="Pass key= as well, or leave order_by out.",
        )
    if kind == "spark":
        return _write_frame(frame, update, engine, staging)
    return _in_memory(to_arrow(frame), update, values_known=True)


def _in_memory(table: pa.Table, update: Update, *, values_known: bool) -> Incoming:
    if not (table.num_columns and update.key):
        return Incoming(table, table.num_rows, 0, values_known=values_known)
    batch = check_batch(table, update.key, update.drop_duplicates, update.null_keys, update.order_by)
    return Incoming(batch.rows, len(batch.rows), batch.null_keys_dropped, values_known=values_known)


def _write_frame(frame: Any, update: Update, engine: TableEngine, staging: StagingFolder) -> Incoming:
    staging.prepare()
    engine.require_shared(staging.folder_uri)
    landed = engine.write_batch(
        frame,
        WriteTask(
            output=staging.begin_batch(),
            key=update.key,
            null_keys=update.null_keys,
            order_by=update.order_by,
            drop_duplicates=update.drop_duplicates,
            takes_table=True,
            read_bytes_max=LANDED_BYTES_MAX,
            within=staging.folder_uri,
        ),
    )
    schema = delta_to_arrow(landed.schema)
    if landed.table is not None and not landed.files:
        return _in_memory(to_arrow(in_schema(landed.table, schema)), update, values_known=False)
    paths = staging.batch_paths(landed.files)
    return Incoming(
        schema.empty_table(),
        landed.rows,
        landed.null_keys,
        paths,
        staging if paths else None,
        values_known=not paths,
        landed=schema if paths else None,
        written=landed.table,
    )
