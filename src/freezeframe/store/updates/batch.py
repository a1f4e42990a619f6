"""Batch of an update: its rows, read and checked once, before stored rows are read.

A batch that comes in pieces is kept in memory while it is small; else it is written once for Spark, and this
process holds one piece at a time.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from freezeframe.engine.frames.batch import check_batch
from freezeframe.engine.frames.rows import Rows
from freezeframe.engine.frames.untyped import filled_type, settled_type
from freezeframe.engine.protocol import TableEngine, WriteTask
from freezeframe.errors import DuplicateKeyError, InvalidOption
from freezeframe.log.format.schema import arrow_to_delta, delta_to_arrow
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.type_compatibility import common_nested
from freezeframe.store.table.reader import in_schema
from freezeframe.store.table.staging import StagingFolder

LANDED_BYTES_MAX = 128 * 1024 * 1024
"""Batches that Spark wrote are taken into memory up to this many bytes there (``docs/decisions/0032``)."""

MEMORY_BYTES_MAX = 64 * 1024 * 1024
"""Batches in pieces of up to this many bytes are taken as a table in memory."""

_ARRIVAL = "_freezeframe_arrival"
_NUMBERED = pa.field(_ARRIVAL, pa.int64())


@dataclass(frozen=True, slots=True)
class UpdateBatch:
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
        """Return the rows of the files in memory; None if they take more than ``LANDED_BYTES_MAX`` there."""
        if self.written is not None or self.staging is None:
            return self.written
        return self.staging.read_batch(self.paths, LANDED_BYTES_MAX)

    def values(self, name: str) -> Iterator[pa.ChunkedArray]:
        """Return the values of a column in pieces, read from the files for landed rows."""
        if self.staging is None:
            yield self.table[name]
        else:
            yield from (piece[name] for piece in self.staging.read_batch_columns(self.paths, [name]))

    def filled_types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return types of columns by name, open where they have no value; landed rows are read once."""
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


def _read(batch: Rows, update: Update, engine: TableEngine, staging: StagingFolder) -> UpdateBatch:
    """Read and check a pandas, Arrow or Spark frame; a Spark frame is written as Parquet once."""
    if update.order_by and not update.key:
        raise InvalidOption(
            "order_by needs a key.",
            cause="It selects the last of the rows with the same key.",
            remedy="Pass key= as well, or leave order_by out.",
        )
    if batch.is_spark:
        return _write_frame(batch.frame, update, engine, staging)
    return _in_memory(batch.to_arrow(), update, values_known=True)


def _in_memory(table: pa.Table, update: Update, *, values_known: bool) -> UpdateBatch:
    if not (table.num_columns and update.key):
        return UpdateBatch(table, table.num_rows, 0, values_known=values_known)
    batch = check_batch(table, update.key, update.drop_duplicates, update.null_keys, update.order_by)
    return UpdateBatch(batch.rows, len(batch.rows), batch.null_keys_dropped, values_known=values_known)


def _write_frame(frame: Any, update: Update, engine: TableEngine, staging: StagingFolder) -> UpdateBatch:
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
        return _in_memory(Rows(in_schema(landed.table, schema)).to_arrow(), update, values_known=False)
    paths = staging.batch_paths(landed.files)
    return UpdateBatch(
        schema.empty_table(),
        landed.rows,
        landed.null_keys,
        paths,
        staging if paths else None,
        values_known=not paths,
        landed=schema if paths else None,
        written=landed.table,
    )


def read_batch(
    batch: Rows, update: Update, engine: TableEngine, intake: StagingFolder
) -> tuple[UpdateBatch, Update]:
    """Read and check the rows of a frame, and return them with the update that fits them.

    Of rows with the same key the last one wins; of a Spark frame's, where its rows are in the order of
    files, the one of the last file.
    """
    try:
        return _read(batch, update, engine, intake), update
    except DuplicateKeyError:
        is_open = batch.is_spark and update.drop_duplicates and not update.order_by
        numbered = engine.numbered_rows(batch.frame, _ARRIVAL) if is_open else None
        if numbered is None:
            raise
    update = _add_order(update)
    return _read(Rows(numbered), update, engine, intake), update


def collect_pieces(
    batch: Rows, update: Update, engine: TableEngine, intake: StagingFolder
) -> tuple[Rows, Update]:
    """Return the rows of a reader as a table, or as a Spark frame over a file in ``intake``.

    The update that is returned fits them: a column of the frame has the order in which its rows came.
    """
    came, pieces = batch.frame.schema, batch.pieces()
    first: list[pa.Table] = []
    held = 0
    for piece in pieces:
        first.append(piece)
        held += piece.nbytes
        if held > MEMORY_BYTES_MAX:
            break
    else:
        return Rows(pa.concat_tables([came.empty_table(), *first])), update
    is_ordered = bool(update.key) and update.drop_duplicates
    schema = came.append(_NUMBERED) if is_ordered else came
    # Parquet cannot store untyped columns and structs without members; the engine restores them.
    typed = [item for item in schema if not pa.types.is_null(item.type)]
    stored = pa.schema([(item.name, settled_type(item.type)) for item in typed])
    named = _pieces(itertools.chain(_drain(first), pieces), schema.names)
    intake.prepare()
    path = intake.write_pieces((in_schema(piece, stored) for piece in named), stored)
    frame = engine.read((intake.uri(path),), arrow_to_delta(schema))
    return Rows(frame), _add_order(update) if is_ordered else update


def _add_order(update: Update) -> Update:
    return replace(
        update, order_by=(*update.order_by, _ARRIVAL), drop_columns=(*update.drop_columns, _ARRIVAL)
    )


def _drain(pieces: list[pa.Table]) -> Iterator[pa.Table]:
    """Return the pieces, each released once it is consumed."""
    pieces.reverse()
    while pieces:
        yield pieces.pop()


def _pieces(pieces: Iterator[pa.Table], names: list[str]) -> Iterator[pa.Table]:
    """Return the pieces with the columns wanted, their rows numbered if that is one of them."""
    count = 0
    for table in pieces:
        if names and names[-1] == _ARRIVAL:
            numbers = pa.array(np.arange(count, count + len(table)), pa.int64())
            table = table.append_column(_NUMBERED, numbers)  # noqa: PLW2901 - it is the same piece
        count += len(table)
        yield table.select(names)
