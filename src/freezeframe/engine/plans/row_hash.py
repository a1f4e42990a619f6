"""The sums of `row_hash`, computed by Spark over Parquet files."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructType,
)

from freezeframe.engine.frames.row_hash import (
    LONG_VALUE_BYTES,
    NEGATIVE_ZERO_CELL,
    NULL_CELL,
    ROTATIONS,
    RowSums,
    rotation,
)
from freezeframe.engine.plans.columns import quote, written_fields
from freezeframe.engine.plans.parquet_files import read_files

_CELL = "cell"


def row_sums(session: SparkSession, files: Sequence[str], schema: StructType) -> RowSums:
    """The sums over the rows of the files.

    Raises:
        CorruptData: a file is missing or damaged.
    """
    fields = sorted(written_fields(schema), key=lambda field: field.name)
    cells = read_files(session, files, schema).select(
        *(
            _cell(F.col(quote(field.name)), field.dataType).alias(f"{_CELL}{place}")
            for place, field in enumerate(fields)
        )
    )
    hashes = cells.select(F.xxhash64(_combine(len(fields))).alias("hash"))
    lower = F.col("hash").bitwiseAND(F.lit(0xFFFFFFFF))
    upper = F.shiftrightunsigned("hash", 32)
    found = hashes.agg(F.count(F.lit(1)), F.sum(lower), F.sum(upper)).collect()[0]
    return RowSums(*(int(value or 0) for value in found))


def _combine(count: int) -> Column:
    combined = F.lit(0).cast("bigint")
    for first in range(0, count, ROTATIONS):
        places = range(first, min(first + ROTATIONS, count))
        before = F.xxhash64(combined) if first else combined
        combined = before.bitwiseXOR(_exclusive_or([_rotate(place) for place in places]))
    return combined


def _exclusive_or(columns: Sequence[Column]) -> Column:
    # A balanced tree, because messages to the server are limited to a nesting depth of one hundred.
    if len(columns) == 1:
        return columns[0]
    half = len(columns) // 2
    return _exclusive_or(columns[:half]).bitwiseXOR(_exclusive_or(columns[half:]))


def _rotate(place: int) -> Column:
    cell, bits = f"{_CELL}{place}", rotation(place)
    if not bits:
        return F.col(cell)
    return F.shiftleft(cell, bits).bitwiseOR(F.shiftrightunsigned(cell, 64 - bits))


def _cell(column: Column, kind: DataType) -> Column:
    """The hash of a value: a null's is the seed, as `xxhash64` skips it."""
    if isinstance(kind, (StringType, BinaryType)):
        is_long = F.octet_length(column) > LONG_VALUE_BYTES
        return F.when(is_long, F.xxhash64(F.sha2(column.cast("binary"), 256))).otherwise(F.xxhash64(column))
    if isinstance(kind, BooleanType):
        return F.xxhash64(column.cast("int").cast("bigint"))
    if isinstance(kind, DateType):
        return F.xxhash64(F.unix_date(column).cast("bigint"))
    if isinstance(kind, IntegralType):
        return F.xxhash64(column.cast("bigint"))
    if isinstance(kind, FractionalType) and not isinstance(kind, DecimalType):
        return _float_cell(column.cast("double"))
    nested = _nested_cell(column, kind)
    return F.xxhash64(column) if nested is None else F.when(column.isNull(), NULL_CELL).otherwise(nested)


def _float_cell(column: Column) -> Column:
    # Only the text shows it: Spark's numeric functions drop the sign of a zero.
    is_negative_zero = (column == 0) & (column.cast("string") == "-0.0")
    return F.when(is_negative_zero, NEGATIVE_ZERO_CELL).otherwise(F.xxhash64(column))


def _nested_cell(column: Column, kind: DataType) -> Column | None:
    if isinstance(kind, StructType):
        cells = [_cell(column.getField(field.name), field.dataType) for field in kind.fields]
        return F.xxhash64(*cells)
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return _list_cell(column, F.transform(column, lambda value: _cell(value, element)))
    if isinstance(kind, MapType):
        key, value = kind.keyType, kind.valueType
        pairs = F.transform(
            F.map_entries(column),
            lambda pair: F.xxhash64(_cell(pair["key"], key), _cell(pair["value"], value)),
        )
        return _list_cell(column, pairs)
    return None


def _list_cell(column: Column, cells: Column) -> Column:
    return F.xxhash64(F.size(column).cast("bigint"), cells)
