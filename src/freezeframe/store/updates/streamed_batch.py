"""Streamed batches: kept in memory while small, else written once for Spark.

This process holds one piece of the rows at a time. Of rows with the same key the last one wins, as with
a frame in memory: a separate column carries the order of arrival.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from freezeframe.engine.frames.frames import kind_of
from freezeframe.engine.frames.untyped import settled_type
from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import DuplicateKeyError
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.store.model.update_options import Update
from freezeframe.store.table.reader import in_schema
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.updates.source import Incoming, take

MEMORY_BYTES_MAX = 64 * 1024 * 1024
"""Rows of up to this many bytes are taken as a table in memory."""

_ARRIVAL = "_freezeframe_arrival"
_NUMBERED = pa.field(_ARRIVAL, pa.int64())


def take_in(
    reader: pa.RecordBatchReader, update: Update, engine: TableEngine, intake: StagingFolder
) -> tuple[Any, Update]:
    """The rows as a table, or as a Spark frame over a file in ``intake``; and the update that fits them."""
    first: list[pa.RecordBatch] = []
    held = 0
    for batch in reader:
        first.append(batch)
        held += batch.nbytes
        if held > MEMORY_BYTES_MAX:
            break
    else:
        return pa.Table.from_batches(first, reader.schema), update
    is_ordered = bool(update.key) and update.drop_duplicates
    schema = reader.schema.append(_NUMBERED) if is_ordered else reader.schema
    # Parquet cannot store untyped columns and structs without members; the engine restores them.
    typed = [item for item in schema if not pa.types.is_null(item.type)]
    stored = pa.schema([(item.name, settled_type(item.type)) for item in typed])
    pieces = _pieces(itertools.chain(_drain(first), reader), schema.names)
    intake.prepare()
    path = intake.write_pieces((in_schema(piece, stored) for piece in pieces), stored)
    frame = engine.read((intake.uri(path),), arrow_to_delta(schema))
    return frame, _add_order(update) if is_ordered else update


def take_in_file_order(
    frame: Any, update: Update, engine: TableEngine, staging: StagingFolder
) -> tuple[Incoming, Update]:
    """The rows of a frame, and the update that fits them.

    Of rows with the same key the one of the last file wins, where a Spark frame's rows are in that order.
    """
    try:
        return take(frame, update, engine, staging), update
    except DuplicateKeyError:
        is_open = kind_of(frame) == "spark" and update.drop_duplicates and not update.order_by
        numbered = engine.numbered_rows(frame, _ARRIVAL) if is_open else None
        if numbered is None:
            raise
    update = _add_order(update)
    return take(numbered, update, engine, staging), update


def _add_order(update: Update) -> Update:
    return replace(
        update, order_by=(*update.order_by, _ARRIVAL), drop_columns=(*update.drop_columns, _ARRIVAL)
    )


def _drain(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, each released once it is consumed."""
    batches.reverse()
    while batches:
        yield batches.pop()


def _pieces(batches: Iterator[pa.RecordBatch], names: list[str]) -> Iterator[pa.Table]:
    """The batches with the columns wanted, their rows numbered if that is one of them."""
    count = 0
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if names and names[-1] == _ARRIVAL:
            numbers = pa.array(np.arange(count, count + len(table)), pa.int64())
            table = table.append_column(_NUMBERED, numbers)
        count += len(table)
        yield table.select(names)
