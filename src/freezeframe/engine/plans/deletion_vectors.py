"""Spark reads of stored files with deletion vectors applied.

Spark receives the positions as bitmaps of 65,536 rows each, so that it joins a handful of rows and
tests one bit for each row of a file, whatever the number of deleted rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from freezeframe.engine.plans.columns import functions_of
from freezeframe.engine.plans.parquet_files import FILE, NO_OPTIONS, ROW, read_files
from freezeframe.engine.protocol.table_engine import Positions
from freezeframe.errors import UnsupportedTable

_CHUNK_BITS = 16
_WORD_BITS = 6
_CHUNK, _WORDS, _OF = "chunk", "words", "of"
# A session caches local data of a megabyte or more until it ends.
_KEPT_BYTES_MIN = 1_000_000


def are_large(deleted: Mapping[str, Positions]) -> bool:
    """Whether a session would cache the bitmaps, so that a short-lived one should be used."""
    chunks = sum(len(np.unique(positions >> _CHUNK_BITS)) for positions in deleted.values())
    return chunks * ((1 << _CHUNK_BITS) // 8) >= _KEPT_BYTES_MIN


def live_rows(
    session: Any,
    files: Sequence[str],
    schema: StructType,
    deleted: Mapping[str, Positions],
    options: Mapping[str, str] = NO_OPTIONS,
) -> DataFrame:
    """The rows of the files that are not deleted, under logical names; arguments as of ``read_files``."""
    marked = [file for file in files if file in deleted and len(deleted[file])]
    whole = [file for file in files if file not in marked]
    if not marked:
        return read_files(session, whole, schema, options=options)
    names = [file.rpartition("/")[2] for file in marked]
    if len(set(names)) < len(names):
        raise UnsupportedTable(
            "Two files of the stream have the same name, and rows of them are deleted.",
            cause="Spark identifies a row's file by its name.",
            remedy="Replace the stream's content with override=True.",
        )
    bitmaps = _bitmaps({name: deleted[file] for name, file in zip(names, marked, strict=True)})
    rows = read_files(session, marked, schema, with_places=True, options=options)
    rest = _filter_deleted(rows, schema, session.createDataFrame(bitmaps))
    return rest if not whole else read_files(session, whole, schema, options=options).union(rest)


def _filter_deleted(rows: DataFrame, schema: StructType, bitmaps: DataFrame) -> DataFrame:
    functions = functions_of(rows)
    col, lit = functions.col, functions.lit
    # Generated names, which cannot clash with the stream's columns.
    coded = [f"c{index}" for index in range(len(schema.fields))]
    placed = rows.toDF(*coded, FILE, ROW)
    is_same = (col(FILE) == col(_OF)) & (functions.shiftright(ROW, _CHUNK_BITS) == col(_CHUNK))
    word = functions.shiftright(col(ROW) % (1 << _CHUNK_BITS), _WORD_BITS).cast("int")
    bit = functions.getbit(functions.get(col(_WORDS), word), (col(ROW) % (1 << _WORD_BITS)).cast("int"))
    joined = placed.join(functions.broadcast(bitmaps), is_same, "left")
    alive = joined.where(functions.coalesce(bit, lit(0)) == 0)
    return alive.select(*coded).toDF(*schema.names)


def _bitmaps(deleted: Mapping[str, Positions]) -> pa.Table:
    """1,024 words of 64 bits for each block of 65,536 rows with a deleted one."""
    files, chunks, words = [], [], []
    for name, positions in deleted.items():
        numbers = np.asarray(positions, np.int64)
        for chunk in np.unique(numbers >> _CHUNK_BITS):
            within = numbers[numbers >> _CHUNK_BITS == chunk] & ((1 << _CHUNK_BITS) - 1)
            bits = np.zeros(1 << _CHUNK_BITS, np.uint8)
            bits[within] = 1
            files.append(name)
            chunks.append(int(chunk))
            words.append(np.packbits(bits, bitorder="little").view("<i8"))
    return pa.table(
        {
            _OF: pa.array(files, pa.string()),
            _CHUNK: pa.array(chunks, pa.int64()),
            _WORDS: pa.array(words, pa.list_(pa.int64())),
        }
    )
