"""Table schemas as Delta's JSON (``metaData.schemaString``) and as Arrow schemas.

All row readers and writers use these functions, so each Delta type maps to exactly one Arrow type.
The types are those of the protocol's section "Schema Serialization Format"; an error names a type
that cannot be represented without loss.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from freezeframe.errors import BadInput, CorruptLog, UnsupportedTable

DECIMAL_DIGITS_MAX = 38

# Arrow has no variant type yet; this is its physical form in the Parquet format.
VARIANT = pa.struct([pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary())])

_PRIMITIVES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    "null": pa.null(),  # the name of void before Spark 3.0
    "variant": VARIANT,
    "decimal": pa.decimal128(10, 0),  # Spark's default precision and scale
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_TEXT = re.compile(r"(?:char|varchar)\(\s*\d+\s*\)|string collate \S+", re.IGNORECASE)

_NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (
        lambda kind: kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind),
        "string",
    ),
    (lambda kind: kinds.is_int64(kind) or kinds.is_uint32(kind), "long"),
    (lambda kind: kinds.is_int32(kind) or kinds.is_uint16(kind), "integer"),
    (lambda kind: kinds.is_int16(kind) or kinds.is_uint8(kind), "short"),
    (kinds.is_int8, "byte"),
    (kinds.is_uint64, "decimal(20,0)"),
    (lambda kind: kinds.is_float32(kind) or kinds.is_float16(kind), "float"),
    (kinds.is_float64, "double"),
    (kinds.is_boolean, "boolean"),
    (kinds.is_date, "date"),
    (kinds.is_null, "void"),
    (
        lambda kind: (
            kinds.is_binary(kind)
            or kinds.is_large_binary(kind)
            or kinds.is_binary_view(kind)
            or kinds.is_fixed_size_binary(kind)
        ),
        "binary",
    ),
    (lambda kind: kinds.is_timestamp(kind) and kind.tz is not None, "timestamp"),
    (kinds.is_timestamp, "timestamp_ntz"),
)


def delta_to_arrow(schema: Mapping[str, Any]) -> pa.Schema:
    """Convert a Delta ``StructType`` JSON value to an Arrow schema; names and nullability are kept.

    ``timestamp`` is microseconds UTC, ``timestamp_ntz`` microseconds without a zone, ``void`` is
    Arrow's null, ``variant`` is ``VARIANT``.
    """
    return pa.schema([arrow_field(field) for field in fields_of(schema)])


def fields_of(struct: Any) -> list[dict[str, Any]]:
    """The fields of a Delta ``StructType`` JSON value, unchanged."""
    fields = struct.get("fields") if isinstance(struct, Mapping) and struct.get("type") == "struct" else None
    if not isinstance(fields, list) or not all(_is_field(field) for field in fields):
        raise _no_schema(struct)
    return fields


def _is_field(field: Any) -> bool:
    return isinstance(field, dict) and isinstance(field.get("metadata") or {}, Mapping)


def arrow_field(field: Mapping[str, Any]) -> pa.Field:
    """The Arrow field of one Delta ``StructField`` JSON value; see ``delta_to_arrow``."""
    if not isinstance(field.get("name"), str) or "type" not in field:
        raise _no_schema(field)
    # Other writers misspell or omit "nullable"; the default is true.
    return _arrow_field(field["name"], field["type"], field.get("nullable"))


def _arrow_field(name: str, kind: Any, nullable: Any) -> pa.Field:
    arrow = arrow_type(kind)
    # A column of type void holds only nulls, whatever its nullability in the schema.
    return pa.field(name, arrow, nullable is None or bool(nullable) or kinds.is_null(arrow))


def arrow_type(kind: Any) -> pa.DataType:
    """The Arrow type of one Delta type, a name or a nested JSON value; see ``delta_to_arrow``."""
    if isinstance(kind, str):
        return _primitive(kind)
    if not isinstance(kind, Mapping):
        raise _no_schema(kind)
    match kind.get("type"):
        case "struct":
            return pa.struct([arrow_field(field) for field in fields_of(kind)])
        case "array" if "elementType" in kind:
            return pa.list_(_arrow_field("element", kind["elementType"], kind.get("containsNull")))
        case "map" if "keyType" in kind and "valueType" in kind:
            key = arrow_type(kind["keyType"])
            # Arrow has no maps whose keys have no type; of such a map no value has any.
            return pa.map_(
                pa.string() if kinds.is_null(key) else key,
                _arrow_field("value", kind["valueType"], kind.get("valueContainsNull")),
            )
        case _:
            raise _no_schema(kind)


def _primitive(name: str) -> pa.DataType:
    found = _PRIMITIVES.get(name)
    if found is not None:
        return found
    if _TEXT.fullmatch(name):
        return pa.string()
    decimal = _DECIMAL.fullmatch(name)
    if decimal and 0 < int(decimal[1]) <= DECIMAL_DIGITS_MAX:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    raise UnsupportedTable(
        f"The table has a column of type {name!r}, which this version does not read.",
        cause="The type is none of Delta's types that freezeframe knows.",
        remedy="Read the table with another Delta reader, or drop the column.",
        code="DELTA_UNSUPPORTED_DATA_TYPE",
        type=name,
    )


def arrow_to_delta(schema: pa.Schema) -> dict[str, Any]:
    """Convert an Arrow schema to a Delta ``StructType`` JSON value that stores its rows without loss.

    Unsigned integers become the next wider signed type (64 bits: ``decimal(20,0)``), dictionaries
    their value type. ``delta_to_arrow`` of the result is the Arrow schema to cast to before writing.
    """
    return _struct([schema.field(index) for index in range(len(schema))], "")


def _struct(fields: Iterable[pa.Field], inside: str) -> dict[str, Any]:
    listed = list(fields)
    _require_distinct([field.name for field in listed], inside)
    return {"type": "struct", "fields": [_field(field, inside) for field in listed]}


def _field(field: pa.Field, inside: str) -> dict[str, Any]:
    place = f"{inside}.{field.name}" if inside else field.name
    kind = _delta_type(field.type, place)
    return {"name": field.name, "type": kind, "nullable": field.nullable, "metadata": {}}


def _delta_type(kind: pa.DataType, place: str) -> str | dict[str, Any]:
    if kinds.is_dictionary(kind) or kinds.is_run_end_encoded(kind):
        return _delta_type(kind.value_type, place)
    if kinds.is_struct(kind):
        return _struct([kind.field(index) for index in range(kind.num_fields)], place)
    if kinds.is_map(kind):
        return {
            "type": "map",
            "keyType": _delta_type(kind.key_type, f"{place}.key"),
            "valueType": _delta_type(kind.item_type, f"{place}.value"),
            "valueContainsNull": kind.item_field.nullable,
        }
    if is_list(kind):
        element = _delta_type(kind.value_type, f"{place}.element")
        return {"type": "array", "elementType": element, "containsNull": kind.value_field.nullable}
    if kinds.is_decimal(kind) and kind.precision <= DECIMAL_DIGITS_MAX and 0 <= kind.scale <= kind.precision:
        return f"decimal({kind.precision},{kind.scale})"
    for is_kind, name in _NAMES:
        if is_kind(kind):
            return name
    raise BadInput(
        f"The column {place!r} has the type {kind}, which a Delta table cannot keep.",
        cause="Delta has no type that holds these values without loss.",
        remedy="Convert the column first, for example to text or to a timestamp.",
        column=place,
        type=str(kind),
    )


def is_list(kind: pa.DataType) -> bool:
    """Whether the Arrow type is a list of any layout."""
    return bool(
        kinds.is_list(kind)
        or kinds.is_large_list(kind)
        or kinds.is_fixed_size_list(kind)
        or kinds.is_list_view(kind)
        or kinds.is_large_list_view(kind)
    )


def _require_distinct(names: list[str], inside: str) -> None:
    counts = Counter(name.lower() for name in names)
    twins = sorted(name for name in names if counts[name.lower()] > 1)
    if twins:
        where = f" in {inside!r}" if inside else ""
        raise BadInput(
            f"Columns {', '.join(map(repr, twins))}{where} have the same name.",
            cause="Delta does not tell names apart that differ only in upper and lower case.",
            remedy="Rename all but one of them.",
            code="DELTA_DUPLICATE_COLUMNS_FOUND",
            columns=twins,
        )


def _no_schema(found: Any) -> CorruptLog:
    return CorruptLog(
        "The table's schema cannot be read.",
        cause=f"This is not a part of a Delta schema: {str(found)[:200]}",
        remedy="Restore the log file that holds the table's metadata from a copy.",
    )
