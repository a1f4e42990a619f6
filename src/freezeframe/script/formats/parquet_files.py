"""Parquet files of others."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames.frames import arrow_names, to_arrow
from freezeframe.errors import BadInput, SchemaDriftError, UnreadableInput
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.script.formats.input_parts import InputPart, divide
from freezeframe.script.formats.unpacking import PART_BYTES, UNLIMITED, Unpacking, UnpackLimits
from freezeframe.storage.read_ahead import reads_of
from freezeframe.store.schema.schema_evolution import TYPES_ALONE, evolve, is_undecided
from freezeframe.store.table.reader import in_schema

# Reads a Parquet file in batches of bounded size.
#
# Texts and binary values are read as dictionaries: a value that is there a million times is one value,
# until
# it is known how many bytes they all take.

_ROWS_MAX = 65_536
_BITS = {"BOOLEAN": 1, "INT32": 32, "INT64": 64, "INT96": 64, "FLOAT": 32, "DOUBLE": 64}


def parquet_batches(file: Path, limits: UnpackLimits) -> Iterator[pa.RecordBatch]:
    """The rows, in the columns of the file; texts and binary values may be dictionaries."""
    unpacking = Unpacking(file.name, file.stat().st_size, limits)
    with pq.ParquetFile(file) as described:
        metadata = described.metadata
        unpacking.expect(metadata.num_rows, announced_bytes(metadata))
        rows = _rows_at_once(metadata)
        texts = [leave.path for leave in _leaves(metadata) if leave.physical_type == "BYTE_ARRAY"]
    with ForeignParquetFile(file, read_dictionary=texts, page_checksum_verification=True) as parquet:
        for number in range(metadata.num_row_groups):  # nested texts have one dictionary for each group
            for batch in parquet.iter_batches(rows, row_groups=[number]):
                yield from unpacking.decode(batch)


def announced_bytes(metadata: pq.FileMetaData) -> int:
    """The least that the file unpacks to: its pages, or values of fixed width as often as they are."""
    size = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place, leaf in enumerate(_leaves(metadata)):
            chunk = group.column(place)
            size += max(chunk.total_uncompressed_size, chunk.num_values * _width_bits(leaf) // 8)
    return size


def _rows_at_once(metadata: pq.FileMetaData) -> int:
    bits = sum(map(_width_bits, _leaves(metadata)))
    return max(1, min(_ROWS_MAX, PART_BYTES * 8 // max(1, bits)))


def _leaves(metadata: pq.FileMetaData) -> list[pq.ColumnSchema]:
    return [metadata.schema.column(place) for place in range(metadata.num_columns)]


def _width_bits(leaf: pq.ColumnSchema) -> int:
    if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return int(leaf.length) * 8
    return _BITS.get(leaf.physical_type, 32)


# Reads the Parquet files of one stream as one table.

_ROWS = 100_000
# What pandas calls an index without a name when it writes it: a position, not data.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def read_parquet_files(files: Sequence[Path], limits: UnpackLimits = UNLIMITED) -> pa.Table:
    """The rows of all files, in their order; a column that a file lacks is NULL there.

    Types that differ between files are joined where every value stays the same (int and long,
    long and decimal, date and timestamp ...), as for a stream.
    """
    schema: pa.Schema | None = None
    tables = []
    for file in files:
        table = _read(file, limits)
        schema = _meet_schema(files, file, schema, table)
        tables.append(table)
    if schema is None:
        return pa.table({})
    target = _target(schema)
    return pa.concat_tables([in_schema(table, target) for table in tables])


def require_parquet(content: IO[bytes], name: str, limits: UnpackLimits = UNLIMITED) -> None:
    """Validate a Parquet file's footer; the content is rewound afterwards."""
    try:
        with reads_of(name):
            metadata = pq.read_metadata(content)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableInput(
            f"{name!r} cannot be read as Parquet.",
            cause=str(error).splitlines()[0],
            remedy="Have the file written again, and send it whole.",
        ) from error
    size = content.seek(0, os.SEEK_END)
    Unpacking(name, size, limits).expect(metadata.num_rows, announced_bytes(metadata))
    content.seek(0)


def _meet_schema(files: Sequence[Path], file: Path, schema: pa.Schema | None, table: pa.Table) -> pa.Schema:
    try:
        try:
            # Always the wider type, so that the order of the files does not matter.
            return evolve(schema, table, values=TYPES_ALONE).target
        except SchemaDriftError:
            return evolve(schema, table).target
    except BadInput as error:
        raise SchemaDriftError(
            f"{str(file)!r} does not fit the stream's earlier files: {error.problem}",
            cause=error.cause,
            remedy="Have the sync write all files of a stream with the same types.",
            files=[str(file) for file in files],
        ) from error


def _target(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(f.name, pa.null() if is_undecided(f) else f.type) for f in schema])


def parquet_parts(file: Path, part_bytes: int = PART_BYTES) -> tuple[InputPart, ...]:
    """A file in parts of whole row groups, of about ``part_bytes`` unpacked; errors as of the reading."""
    with opened_parquet(file) as parquet:
        groups = parquet.num_row_groups
        sizes = [parquet.metadata.row_group(group).total_byte_size for group in range(groups)]
    cuts, size = [0], 0
    for group, more in enumerate(sizes):
        if size and size + more > part_bytes:
            cuts, size = [*cuts, group], 0
        size += more
    return divide(file, cuts, end=groups)


def parquet_schema(files: Sequence[Path]) -> pa.Schema:
    """The columns that ``read_parquet_files`` gives; values are read only where types do not decide."""
    schema: pa.Schema | None = None
    for file in files:
        with opened_parquet(file) as parquet:
            empty = _convert_types(file, parquet)
            try:
                schema = evolve(schema, empty, values=TYPES_ALONE).target
            except BadInput:
                odd = [] if schema is None else _odd(schema, empty.schema)
                schema = _meet_schema(files, file, schema, _supported_rows(file, parquet.read(odd)))
                schema = _meet_schema(files, file, schema, empty.drop_columns(odd))
    return pa.schema([]) if schema is None else _target(schema)


def _convert_types(file: Path, parquet: pq.ParquetFile) -> pa.Table:
    """The file's columns, without rows; of unsigned ones only the values say whether they are ``int64``."""
    empty = _supported_rows(file, parquet.schema_arrow.empty_table())
    names = [field.name for field in parquet.schema_arrow if field.type == pa.uint64()]
    batches = parquet.iter_batches(_ROWS, columns=names) if names else ()
    tables = (_supported_rows(file, pa.Table.from_batches([batch])) for batch in batches)
    wide = {item.name: item for table in tables for item in table.schema if item.type != pa.int64()}
    return pa.schema([wide.get(item.name, item) for item in empty.schema]).empty_table()


def _odd(schema: pa.Schema, other: pa.Schema) -> list[str]:
    """The columns that have another type in the second schema."""
    known = {item.name: item.type for item in schema}
    return [item.name for item in other if known.get(item.name, item.type) != item.type]


def parquet_tables(
    part: InputPart, schema: pa.Schema, limits: UnpackLimits = UNLIMITED
) -> Iterator[pa.Table]:
    """The rows of a part in the columns of ``schema``, piece by piece; ``limits`` are for whole files."""
    part.require_unchanged()
    with opened_parquet(part.file) as parquet:
        groups = list(range(part.start, part.stop))
        is_bounded = limits is not UNLIMITED
        batches = parquet_batches(part.file, limits) if is_bounded else parquet.iter_batches(_ROWS, groups)
        for batch in batches:
            yield in_schema(_supported_rows(part.file, pa.Table.from_batches([batch])), schema)


def _read(file: Path, limits: UnpackLimits) -> pa.Table:
    with opened_parquet(file) as opened:
        rows = opened.read() if limits is UNLIMITED else _read_bounded(file, opened.schema_arrow, limits)
    return _supported_rows(file, rows)


@contextmanager
def opened_parquet(file: Path) -> Iterator[pq.ParquetFile]:
    """A Parquet file while the block reads of it."""
    try:
        with (
            reads_of(str(file)),
            ForeignParquetFile(file, page_checksum_verification=True) as opened,
        ):
            yield opened
    except (pa.ArrowException, OSError) as error:
        raise UnreadableInput(
            f"{str(file)!r} cannot be read as Parquet.",
            cause=str(error).splitlines()[0],
            remedy="Have the sync write the file again.",
            file=str(file),
        ) from error


def _supported_rows(file: Path, table: pa.Table) -> pa.Table:
    try:
        names = arrow_names(table.schema)
        index = [name for name in _index_columns(table.schema) if name in names]
        return to_arrow(table.drop_columns(index))
    except BadInput as error:
        error.details["file"] = str(file)
        raise


def _read_bounded(file: Path, schema: pa.Schema, limits: UnpackLimits) -> pa.Table:
    """The rows in the file's own types, within the limits."""
    empty = schema.empty_table()
    parts = [pa.Table.from_batches([batch]).cast(schema) for batch in parquet_batches(file, limits)]
    return pa.concat_tables([empty, *parts])


def _index_columns(schema: pa.Schema) -> list[str]:
    said_by_pandas = (schema.metadata or {}).get(b"pandas")
    columns = json.loads(said_by_pandas).get("index_columns", []) if said_by_pandas else []
    return [name for name in columns if isinstance(name, str) and _UNNAMED_INDEX.fullmatch(name)]
