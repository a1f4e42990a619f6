"""Stored files as Spark reads them for a stream: without the rows that deletion vectors take away.

The positions travel as bitmaps of 65,536 rows each, so that Spark joins a handful of rows and
looks at one bit for each row of a file, whatever number of them is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from freezeframe.engine.base import Positions
from freezeframe.engine.spark_files import FILE, ROW, read_files
from freezeframe.errors import UnsupportedTable

_CHUNK_BITS = 16
_WORD_BITS = 6
_CHUNK, _WORDS, _OF = "chunk", "words", "of"
# A session keeps what it is sent of a megabyte or more until it ends.
_KEPT_BYTES_MIN = 1_000_000


def are_large(deleted: Mapping[str, Positions]) -> bool:
    """Whether the bitmaps are so large that a session keeps them, so that it should be one that ends."""
    chunks = sum(len(np.unique(positions >> _CHUNK_BITS)) for positions in deleted.values())
    return chunks * ((1 << _CHUNK_BITS) // 8) >= _KEPT_BYTES_MIN


def live_rows(
    session: SparkSession, files: Sequence[str], schema: StructType, deleted: Mapping[str, Positions]
) -> DataFrame:
    """The rows of the files that are not deleted, under logical names.

    Raises:
        UnsupportedTable: two files with deleted rows have the same name.
    """
    marked = [file for file in files if file in deleted and len(deleted[file])]
    whole = [file for file in files if file not in marked]
    if not marked:
        return read_files(session, whole, schema)
    rest = _without_deleted(session, marked, schema, deleted)
    return rest if not whole else read_files(session, whole, schema).union(rest)


def _without_deleted(
    session: SparkSession, files: Sequence[str], schema: StructType, deleted: Mapping[str, Positions]
) -> DataFrame:
    names = [file.rpartition("/")[2] for file in files]
    if len(set(names)) < len(names):
        raise UnsupportedTable(
            "Two files of the stream have the same name, and rows of them are deleted.",
            cause="Spark tells a row's file by its name.",
            remedy="Replace the stream's content with override=True.",
        )
    # Generated names, so that no column of the stream's can meet one of ours.
    coded = [f"c{index}" for index in range(len(schema.fields))]
    rows = read_files(session, files, schema, with_places=True).toDF(*coded, FILE, ROW)
    bitmaps = _bitmaps({name: deleted[file] for name, file in zip(names, files, strict=True)})
    gone = F.broadcast(session.createDataFrame(bitmaps))
    is_same = (F.col(FILE) == F.col(_OF)) & (F.shiftright(ROW, _CHUNK_BITS) == F.col(_CHUNK))
    word = F.shiftright(F.col(ROW) % (1 << _CHUNK_BITS), _WORD_BITS).cast("int")
    bit = F.getbit(F.get(F.col(_WORDS), word), (F.col(ROW) % (1 << _WORD_BITS)).cast("int"))
    alive = rows.join(gone, is_same, "left").where(F.coalesce(bit, F.lit(0)) == 0)
    return alive.select(*coded).toDF(*schema.names)


def _bitmaps(deleted: Mapping[str, Positions]) -> pa.Table:
    """For each 65,536 rows of a file with a deleted one among them: 1,024 words of 64 bits."""
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
