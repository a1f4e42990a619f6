"""Every read and write of Parquet files by Spark, with deletion vectors applied.

Spark receives the positions of deleted rows as bitmaps of 65,536 rows each, so that it joins a handful of
rows and tests one bit for each row of a file, whatever the number of deleted rows.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from freezeframe.engine.configuration import READ_OPTIONS, WRITE_OPTIONS
from freezeframe.engine.plans.columns import (
    F,
    from_file,
    functions_of,
    physical_field,
    quote,
    to_file,
    written_fields,
)
from freezeframe.engine.protocol import Positions, require_found
from freezeframe.errors import UnsupportedTable

_PLAIN_NAME = re.compile(r"[\w.-]+", re.ASCII)

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

FILE, ROW = "freezeframe_file", "freezeframe_row"
"""Under which names ``with_places`` tells a row's file and its position in it."""


def read_files(
    session: Any,
    files: Sequence[str],
    schema: StructType,
    *,
    with_places: bool = False,
    options: Mapping[str, str] = NO_OPTIONS,
) -> DataFrame:
    """Return the rows of the files under logical names; a column that a file lacks, or cannot hold, is null.

    ``session`` is classic or Connect; ``options`` are what it has to know to reach the files.
    ``with_places`` adds two columns: the name of a row's file, and the row's position in it from 0.
    """
    held = {field.name: physical_field(field) for field in written_fields(schema)} if files else {}
    if files:
        reader = session.read.schema(StructType(list(held.values()))).options(**READ_OPTIONS, **options)
        frame: DataFrame = reader.parquet(*map(exact_path, files))
    else:
        frame = session.range(0)
    functions = functions_of(frame)
    columns = [
        from_file(functions.col(quote(held[field.name].name)), field, functions)
        if field.name in held
        else functions.lit(None).cast(field.dataType)
        for field in schema.fields
    ]
    named = [column.alias(field.name) for column, field in zip(columns, schema.fields, strict=True)]
    if with_places:
        # Through the frame and not by name: a stream may have a column `_metadata`.
        metadata = frame.metadataColumn("_metadata")
        name = metadata.getField("file_name")
        if not all(_PLAIN_NAME.fullmatch(file.rpartition("/")[2]) for file in files):
            # Spark returns the name URI-encoded, where a plus sign is not a space.
            name = functions.url_decode(functions.replace(name, functions.lit("+"), functions.lit("%2B")))
        named += [name.alias(FILE), metadata.getField("row_index").alias(ROW)]
    return frame.select(*named)


def exact_path(path: str) -> str:
    """Return the path as Spark reads exactly that one: it takes every path for a pattern."""
    name = path.rstrip("/").rpartition("/")[2]
    if name.startswith(("_", ".")):
        raise UnsupportedTable(f"Spark reads no file whose name begins with '{name[0]}': {path}.")
    return re.sub(r"[\[\]{}*?\\]", r"\\\g<0>", path)


def write_files(session: SparkSession, frame: DataFrame, schema: StructType, output: str) -> tuple[str, ...]:
    """Write the frame, whose columns are named as ``schema``, under physical names; the names of the files.

    The folder is the caller's attempt: whatever an earlier try has left in it is replaced, or found by the
    check of the rows.
    """
    columns = [
        to_file(F.col(quote(field.name)), field).alias(physical_field(field).name)
        for field in written_fields(schema)
    ]
    frame.select(*columns).write.mode(write_mode(output)).options(**WRITE_OPTIONS).parquet(output)
    return written_names(session, output)


def write_mode(output: str) -> str:
    """Return how Spark treats an existing folder: in a bucket it appends, and may not remove it first.

    Hadoop marks an empty folder of a bucket by an object that only Hadoop can delete.
    """
    return "overwrite" if local_folder(output) else "append"


def written_names(session: SparkSession, output: str) -> tuple[str, ...]:
    """Return the Parquet files of a folder that was just written, in order."""
    folder = local_folder(output)
    if folder is None:
        reader = session.read.options(**READ_OPTIONS).schema("none int")
        uris = reader.parquet(exact_path(output)).inputFiles()
        return tuple(sorted(unquote(urlsplit(uri).path).rsplit("/", 1)[-1] for uri in uris))
    for checksum in folder.glob(".*.crc"):
        # Written by Hadoop's local file system where the server is not ours; Parquet has its own.
        checksum.unlink()
    return tuple(sorted(path.name for path in folder.glob("*.parquet")))


def require_rows(session: SparkSession, output: str, names: Sequence[str], expected: int) -> None:
    """Check that the files hold as many rows as were counted on their way; errors as of ``require_found``."""
    require_found(names, rows_in(session, [f"{output.rstrip('/')}/{name}" for name in names]), expected)


def rows_in(session: SparkSession, files: Sequence[str]) -> int:
    """Return how many rows the files hold by their footers."""
    paths = [local_folder(file) for file in files]
    if all(paths):  # also if it is absent
        return sum(pq.read_metadata(path).num_rows for path in paths)
    reader = session.read.options(**READ_OPTIONS).schema("none int")
    return reader.parquet(*map(exact_path, files)).count()


def digests(session: SparkSession, files: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each file by its name; a task holds a file in memory."""
    contents = session.read.format("binaryFile").load([exact_path(file) for file in files])
    rows = contents.select("path", F.sha2("content", 256)).collect()
    return {path.rpartition("/")[2]: digest for path, digest in rows}


def local_folder(uri: str) -> Path | None:
    """Return the folder as a path of this machine; None for another file system."""
    if uri.startswith("/"):
        return Path(uri)
    if uri.startswith("file:"):
        return Path("/" + uri.removeprefix("file:").lstrip("/"))
    return None


_CHUNK_BITS = 16
_WORD_BITS = 6
_CHUNK, _WORDS, _OF = "chunk", "words", "of"


def live_rows(
    session: Any,
    files: Sequence[str],
    schema: StructType,
    deleted: Mapping[str, Positions],
    options: Mapping[str, str] = NO_OPTIONS,
) -> DataFrame:
    """Return the rows that are not deleted, under logical names; arguments as of ``read_files``."""
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
    """Return 1,024 words of 64 bits for each block of 65,536 rows with a deleted row."""
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
