"""Spark types that a stream supports, and session options that affect how Parquet stores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from freezeframe.engine.configuration.spark_configuration import LANDING_CONFIGURATION
from freezeframe.errors import SchemaDriftError

_BINARY_COLLATION = "UTF8_BINARY"
# Parquet files store values in the same way under every session setting.
_SETTLED = (
    *(BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType),
    *(BinaryType, NullType, StringType, TimestampNTZType),
)
_KEPT = (*_SETTLED, DateType, TimestampType, DecimalType)


def require_kept_types(schema: StructType) -> None:
    """Refuse a frame with columns that a stream cannot keep, before anything is written.

    Raises:
        SchemaDriftError: it has; the columns and their types are named.
    """
    strangers = {place: kind for place, kind in _leaves("", schema) if not _is_kept(kind)}
    if strangers:
        named = ", ".join(f"{place!r} ({kind.simpleString()})" for place, kind in strangers.items())
        raise SchemaDriftError(
            f"A stream cannot keep the type of these columns: {named}.",
            cause="Delta tables, as freezeframe writes them, have no such type, and no value may change"
            " without a word.",
            remedy="Convert them first: to_json(column) for a VARIANT, cast(column as string) for a time, an"
            " interval or a collated text, its bytes for a geometry; or leave them out.",
            columns={place: kind.simpleString() for place, kind in strangers.items()},
        )


def layout_settings(fields: Sequence[StructField]) -> tuple[str, ...]:
    """The settings of a session that decide how the files hold these columns; none for most columns."""
    kinds = [field.dataType for field in fields]
    is_settled = all(isinstance(kind, _SETTLED) for kind in kinds)
    return () if is_settled else tuple(LANDING_CONFIGURATION)


def _is_kept(kind: DataType) -> bool:
    if isinstance(kind, StringType):
        return kind.collation == _BINARY_COLLATION
    return isinstance(kind, _KEPT)


def _leaves(place: str, kind: DataType) -> Iterator[tuple[str, DataType]]:
    """The columns and what is in them, down to types that hold no others."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _leaves(f"{place}.{field.name}" if place else field.name, field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _leaves(f"{place}[]", kind.elementType)
    elif isinstance(kind, MapType):
        yield from _leaves(f"{place}.key", kind.keyType)
        yield from _leaves(f"{place}.value", kind.valueType)
    else:
        yield place, kind
