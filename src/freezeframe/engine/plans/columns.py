"""Columns and types in Spark's expressions."""

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as classic_functions
from pyspark.sql.connect import functions as connect_functions
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.session import SparkSession
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

from freezeframe.engine.configuration import LANDING_CONFIGURATION
from freezeframe.engine.frames.untyped import NO_MEMBER
from freezeframe.errors import SchemaDriftError

# Column names are arbitrary text. Spark receives a name only in quotes: inside a plan columns have
# generated names, and the last step restores the stored ones.

_Result = TypeVar("_Result")
_Leaf = tuple[str, DataType]

PHYSICAL_NAME = "delta.columnMapping.physicalName"


def quote(name: str) -> str:
    """Return a quoted column name for Spark expressions."""
    return f"`{name.replace('`', '``')}`"


_current: ContextVar[Any] = ContextVar("functions", default=connect_functions)


class _Functions:
    """Spark's functions for the session in which plans are made now."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_current.get(), name)


if TYPE_CHECKING:
    F = connect_functions
else:
    F = _Functions()


@contextlib.contextmanager
def plans_in(session: Any) -> Iterator[None]:
    """Make plans for a session, classic or Connect, during the block."""
    token = _current.set(connect_functions if isinstance(session, SparkSession) else classic_functions)
    try:
        yield
    finally:
        _current.reset(token)


def functions_of(frame: DataFrame) -> Any:
    """Return Spark's functions for the columns of a frame, classic or Connect."""
    return connect_functions if isinstance(frame, ConnectFrame) else classic_functions


def any_of(conditions: Sequence[Column]) -> Column:
    """Return the disjunction of one or more conditions."""
    return _join(conditions, operator.or_)


def all_of(conditions: Sequence[Column]) -> Column:
    """Return the conjunction of one or more conditions."""
    return _join(conditions, operator.and_)


def _join(conditions: Sequence[Column], join: Callable[[Column, Column], Column]) -> Column:
    # A balanced tree, because a chain nests as deep as the number of columns, and messages to the
    # server are limited to a nesting depth of one hundred.
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return join(_join(conditions[:half], join), _join(conditions[half:], join))


def struct_type(schema: Mapping[str, Any]) -> StructType:
    """Return a Delta schema as Spark's type."""
    return StructType.fromJson(dict(schema))


def written_fields(schema: StructType) -> list[StructField]:
    """Return the columns of Parquet files: all except undecided ones."""
    return [field for field in schema.fields if not isinstance(field.dataType, NullType)]


# Spark's types are walked in one place, as Arrow's are (``nested_types``).


def _fold(kind: DataType, join: Callable[[Any, list[_Result]], _Result]) -> _Result:
    """Return what ``join`` makes of a type and of its results for the types inside, the innermost first."""
    inside: list[DataType] = []
    if isinstance(kind, StructType):
        inside = [field.dataType for field in kind.fields]
    elif isinstance(kind, ArrayType):
        inside = [kind.elementType]
    elif isinstance(kind, MapType):
        inside = [kind.keyType, kind.valueType]
    return join(kind, [_fold(part, join) for part in inside])


def _plain(kind: DataType, inside: list[DataType]) -> DataType:
    """Return the type with these types inside, without metadata, every part nullable."""
    if isinstance(kind, StructType):
        names = [field.name for field in kind.fields]
        return StructType([StructField(name, part) for name, part in zip(names, inside, strict=True)])
    if isinstance(kind, ArrayType):
        return ArrayType(inside[0])
    return MapType(inside[0], inside[1]) if isinstance(kind, MapType) else kind


def _physical(kind: DataType, inside: list[DataType]) -> DataType:
    """Return the type in files; of data without a type it is that of ``untyped.settled_type``."""
    if isinstance(kind, NullType):
        return StringType()
    if isinstance(kind, StructType):
        names = map(_physical_name, kind.fields)
        members = [StructField(name, part) for name, part in zip(names, inside, strict=True)]
        return StructType(members or [StructField(NO_MEMBER, StringType())])
    return _plain(kind, inside)


def _physical_name(field: StructField) -> str:
    return str((field.metadata or {}).get(PHYSICAL_NAME, field.name))


def physical_field(field: StructField) -> StructField:
    """Return the field in files: physical names at every depth, every value nullable."""
    return StructField(_physical_name(field), _fold(field.dataType, _physical))


def nullable_type(kind: DataType) -> DataType:
    """Return the type with every part nullable; map keys without a type become text, as Arrow needs."""

    def nullable(outer: DataType, inside: list[DataType]) -> DataType:
        is_map = isinstance(outer, MapType) and isinstance(inside[0], NullType)
        return MapType(StringType(), inside[1]) if is_map else _plain(outer, inside)

    return _fold(kind, nullable)


def from_file(column: Column, field: StructField, functions: Any = F) -> Column:
    """Return the values of ``physical_field`` as the field's own."""
    held = physical_field(field).dataType
    if _fold(field.dataType, _plain) == _fold(held, _plain):
        return column
    settled = _fold(nullable_type(field.dataType), _physical)
    # The cast renames parts, which it matches by position.
    return fit_column(column.cast(settled), settled, field.dataType, functions=functions)


def to_file(column: Column, field: StructField, functions: Any = F) -> Column:
    """Return the field's values as those of ``physical_field``."""
    held = physical_field(field).dataType
    if _fold(field.dataType, _plain) == _fold(held, _plain):
        return column
    settled = _fold(nullable_type(field.dataType), _physical)
    # The cast renames parts, which it matches by position, and gives keys without a type theirs.
    return fit_column(column, field.dataType, settled, functions=functions).cast(held)


def fit_column(column: Column, source: DataType, target: DataType, *, functions: Any = F) -> Column:
    """Return the values as ``target``: fields match by name, absent ones are null, leaves are cast."""
    if _fold(source, _plain) == _fold(target, _plain):
        return column
    if isinstance(source, NullType) or isinstance(target, NullType):
        nothing: Column = functions.lit(None)
        return nothing if isinstance(target, NullType) else nothing.cast(target)

    def fit(part: Column, own: DataType, wanted: DataType) -> Column:
        return fit_column(part, own, wanted, functions=functions)

    if isinstance(source, StructType) and isinstance(target, StructType):
        theirs = {field.name: field.dataType for field in source.fields}
        fields = [
            (
                fit(column.getField(field.name), theirs[field.name], field.dataType)
                if field.name in theirs
                else functions.lit(None).cast(field.dataType)
            ).alias(field.name)
            for field in target.fields
        ]
        return functions.when(column.isNotNull(), functions.struct(*fields))  # type: ignore[no-any-return]
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        inner, outer = source.elementType, target.elementType
        return functions.transform(column, lambda element: fit(element, inner, outer))  # type: ignore[no-any-return]
    if isinstance(source, MapType) and isinstance(target, MapType):
        keys = functions.transform(
            functions.map_keys(column), lambda key: fit(key, source.keyType, target.keyType)
        )
        values = functions.transform(
            functions.map_values(column), lambda value: fit(value, source.valueType, target.valueType)
        )
        return functions.map_from_arrays(keys, values)  # type: ignore[no-any-return]
    if isinstance(target, StringType) and isinstance(source, TimestampType | TimestampNTZType):
        return _time_text(column, has_zone=isinstance(source, TimestampType))
    return column.cast(target)


def _time_text(column: Column, *, has_zone: bool) -> Column:
    """Return a time as ``python_values.exact_texts`` writes it, whatever the zone of the session."""
    text = (_in_utc(column) if has_zone else column).cast("string")
    fraction = F.rpad(F.substring_index(text, ".", -1), 6, "0")
    whole = F.concat_ws(".", F.substring_index(text, ".", 1), fraction)
    exact = F.when(F.instr(text, ".") > 0, whole).otherwise(text)
    return F.concat(exact, F.lit("+00:00")) if has_zone else exact


def _in_utc(column: Column) -> Column:
    """Return an instant as the local time in UTC; a cast would take the zone of the session."""
    microseconds, per_day = F.unix_micros(column), F.lit(86_400_000_000)
    days = F.floor(microseconds.cast("decimal(20,0)") / per_day.cast("decimal(20,0)")).cast("int")
    seconds = (F.pmod(microseconds, per_day).cast("decimal(18,6)") / F.lit(1_000_000)).cast("decimal(18,6)")
    return F.lit("1970-01-01").cast("timestamp_ntz") + F.make_dt_interval(days, None, None, seconds)


def comparable(column: Column, kind: DataType) -> Column:
    """Return a value with the exact equality of the column's values.

    Maps, which have no order, become sorted arrays. To Spark -0.0 equals 0.0, so numbers get a sign beside
    them, which is looked for where they are zero.
    """
    if not _fold(kind, _needs_form):
        return column
    if isinstance(kind, FloatType | DoubleType):
        is_negative = F.when(column == F.lit(0).cast(kind), column.cast("string") == "-0.0")
        return F.struct(column.alias("value"), is_negative.alias("is_negative"))
    if isinstance(kind, MapType):
        key_type, value_type = kind.keyType, kind.valueType
        entries = F.map_entries(column)
        pairs = F.transform(
            entries,
            lambda entry: F.struct(
                comparable(entry.getField("key"), key_type).alias("key"),
                comparable(entry.getField("value"), value_type).alias("value"),
            ),
        )
        return F.array_sort(pairs)
    if isinstance(kind, ArrayType):
        element_type = kind.elementType
        return F.transform(column, lambda element: comparable(element, element_type))
    assert isinstance(kind, StructType)  # noqa: S101 - the only other type with a comparable form
    fields = [
        comparable(column.getField(field.name), field.dataType).alias(f"f{index}")
        for index, field in enumerate(kind.fields)
    ]
    return F.when(column.isNotNull(), F.struct(*fields))


def _needs_form(kind: DataType, inside: list[bool]) -> bool:
    """Return whether values of the type can be the same to Spark, or differ, without being or doing so."""
    return isinstance(kind, MapType | FloatType | DoubleType) or any(inside)


def undecodable(column: Column, kind: DataType) -> Column | None:
    """Return whether a text at any depth is not UTF-8 (null: no text); None for types without text."""
    if isinstance(kind, StringType):
        return ~F.is_valid_utf8(column)
    if isinstance(kind, MapType):
        parts = [(F.map_keys(column), kind.keyType), (F.map_values(column), kind.valueType)]
        return _any_of([undecodable(items, ArrayType(inner)) for items, inner in parts])
    if isinstance(kind, ArrayType):
        inner = kind.elementType
        if undecodable(column, inner) is None:
            return None
        return F.exists(column, lambda item: F.coalesce(undecodable(item, inner), F.lit(False)))  # type: ignore[arg-type]  # noqa: FBT003
    if isinstance(kind, StructType):
        return _any_of([undecodable(column.getField(field.name), field.dataType) for field in kind.fields])
    return None


def _any_of(conditions: Sequence[Column | None]) -> Column | None:
    held = [condition for condition in conditions if condition is not None]
    return any_of(held) if held else None


_BINARY_COLLATION = "UTF8_BINARY"
# Parquet files store values in the same way under every session setting.
_SETTLED = (
    *(BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType),
    *(BinaryType, NullType, StringType, TimestampNTZType),
)
_KEPT = (*_SETTLED, DateType, TimestampType, DecimalType)


def require_kept_types(schema: StructType) -> None:
    """Refuse a frame with columns that a stream cannot keep, before anything is written."""
    leaves = _fold(schema, _leaves)
    strangers = {path.removeprefix("."): kind for path, kind in leaves if not _is_kept(kind)}
    if strangers:
        named = ", ".join(f"{path!r} ({kind.simpleString()})" for path, kind in strangers.items())
        raise SchemaDriftError(
            f"A stream cannot keep the type of these columns: {named}.",
            cause="freezeframe's Delta tables have no such type, and converting it could change values.",
            remedy="Convert them first: to_json(column) for a VARIANT, cast(column as string) for a time, an"
            " interval or a collated text, its bytes for a geometry; or leave them out.",
            columns={path: kind.simpleString() for path, kind in strangers.items()},
        )


def layout_settings(fields: Sequence[StructField]) -> tuple[str, ...]:
    """Return the session settings that decide how files hold these columns; none for most columns."""
    kinds = [field.dataType for field in fields]
    is_settled = all(isinstance(kind, _SETTLED) for kind in kinds)
    return () if is_settled else tuple(LANDING_CONFIGURATION)


def _is_kept(kind: DataType) -> bool:
    if isinstance(kind, StringType):
        return kind.collation == _BINARY_COLLATION
    return isinstance(kind, _KEPT)


def _leaves(kind: DataType, inside: list[list[_Leaf]]) -> list[_Leaf]:
    """Return the columns and what is in them, down to types that hold no others."""
    if isinstance(kind, StructType):
        steps = [f".{field.name}" for field in kind.fields]
    elif isinstance(kind, MapType):
        steps = [".key", ".value"]
    elif isinstance(kind, ArrayType):
        steps = ["[]"]
    else:
        return [("", kind)]
    return [(step + path, leaf) for step, found in zip(steps, inside, strict=True) for path, leaf in found]
