"""Table schemas: Delta's types and Arrow's, column mapping, type widening."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa
import pyarrow.types as kinds

from freezeframe.errors import BadInput, CorruptLog, UnsupportedTable
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.format.protocol import has_reader_feature
from freezeframe.nested_types import is_list

# Table schemas as Delta's JSON (``metaData.schemaString``) and as Arrow schemas.
#
# All row readers and writers use these functions, so each Delta type maps to exactly one Arrow type.
# The types are those of the protocol's section "Schema Serialization Format"; an error names a type
# that cannot be represented without loss.

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


_UNREADABLE = functools.partial(
    CorruptLog,
    "The table's schema cannot be read.",
    remedy="Restore the log file that holds the table's metadata from a copy.",
)
_NO_PART = "This is not a part of a Delta schema: {:.200}"


def fields_of(struct: Any) -> list[dict[str, Any]]:
    """Return the fields of a Delta ``StructType`` JSON value, unchanged."""
    fields = struct.get("fields") if isinstance(struct, Mapping) and struct.get("type") == "struct" else None
    if not isinstance(fields, list) or not all(
        isinstance(field, dict) and isinstance(field.get("metadata") or {}, Mapping) for field in fields
    ):
        raise _UNREADABLE(cause=_NO_PART.format(str(struct)))
    return fields


def arrow_field(field: Mapping[str, Any]) -> pa.Field:
    """Return the Arrow field of one Delta ``StructField`` JSON value; see ``delta_to_arrow``."""
    if not isinstance(field.get("name"), str) or "type" not in field:
        raise _UNREADABLE(cause=_NO_PART.format(str(field)))
    arrow = arrow_type(field["type"])
    # Other writers misspell or omit "nullable"; the default is true. A column of type void holds only nulls,
    # whatever its nullability in the schema.
    nullable = field.get("nullable")
    return pa.field(field["name"], arrow, nullable is None or bool(nullable) or kinds.is_null(arrow))


def arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type of one Delta type, a name or a nested JSON value; see ``delta_to_arrow``."""
    if isinstance(kind, str):
        found = _PRIMITIVES.get(kind)
        if found is not None:
            return found
        if _TEXT.fullmatch(kind):
            return pa.string()
        decimal = _DECIMAL.fullmatch(kind)
        if decimal and 0 < int(decimal[1]) <= DECIMAL_DIGITS_MAX:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        raise UnsupportedTable(
            f"The table has a column of type {kind!r}, which this version does not read.",
            cause="freezeframe does not know the type.",
            remedy="Read the table with another Delta reader, or drop the column.",
            code="DELTA_UNSUPPORTED_DATA_TYPE",
            type=kind,
        )
    if not isinstance(kind, Mapping):
        raise _UNREADABLE(cause=_NO_PART.format(str(kind)))
    match kind.get("type"):
        case "struct":
            return pa.struct([arrow_field(field) for field in fields_of(kind)])
        case "array" if "elementType" in kind:
            element = {"name": "element", "type": kind["elementType"], "nullable": kind.get("containsNull")}
            return pa.list_(arrow_field(element))
        case "map" if "keyType" in kind and "valueType" in kind:
            key = arrow_type(kind["keyType"])
            value = {"name": "value", "type": kind["valueType"], "nullable": kind.get("valueContainsNull")}
            # Arrow has no map with keys of type null; no value of such a map has entries.
            return pa.map_(pa.string() if kinds.is_null(key) else key, arrow_field(value))
        case _:
            raise _UNREADABLE(cause=_NO_PART.format(str(kind)))


def arrow_to_delta(schema: pa.Schema) -> dict[str, Any]:
    """Convert an Arrow schema to a Delta ``StructType`` JSON value that stores its rows without loss.

    Unsigned integers become the next wider signed type (64 bits: ``decimal(20,0)``), dictionaries
    their value type. ``delta_to_arrow`` of the result is the Arrow schema to cast to before writing.
    """
    return _struct([schema.field(index) for index in range(len(schema))], "")


def _struct(fields: Iterable[pa.Field], inside: str) -> dict[str, Any]:
    listed = list(fields)
    names = [field.name for field in listed]
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
    return {"type": "struct", "fields": [_field(field, inside) for field in listed]}


def _field(field: pa.Field, inside: str) -> dict[str, Any]:
    path = f"{inside}.{field.name}" if inside else field.name
    kind = _delta_type(field.type, path)
    return {"name": field.name, "type": kind, "nullable": field.nullable, "metadata": {}}


def _delta_type(kind: pa.DataType, path: str) -> str | dict[str, Any]:
    if kinds.is_dictionary(kind) or kinds.is_run_end_encoded(kind):
        return _delta_type(kind.value_type, path)
    if kinds.is_struct(kind):
        return _struct([kind.field(index) for index in range(kind.num_fields)], path)
    if kinds.is_map(kind):
        return {
            "type": "map",
            "keyType": _delta_type(kind.key_type, f"{path}.key"),
            "valueType": _delta_type(kind.item_type, f"{path}.value"),
            "valueContainsNull": kind.item_field.nullable,
        }
    if is_list(kind):
        element = _delta_type(kind.value_type, f"{path}.element")
        return {"type": "array", "elementType": element, "containsNull": kind.value_field.nullable}
    if kinds.is_decimal(kind) and kind.precision <= DECIMAL_DIGITS_MAX and 0 <= kind.scale <= kind.precision:
        return f"decimal({kind.precision},{kind.scale})"
    for is_kind, name in _NAMES:
        if is_kind(kind):
            return name
    raise BadInput(
        f"The column {path!r} has the type {kind}, which a Delta table cannot keep.",
        cause="Delta has no type that holds these values without loss.",
        remedy="Convert the column first, for example to text or to a timestamp.",
        column=path,
        type=str(kind),
    )


# Column mapping: the physical name or id of a column in data files.
#
# Without column mapping, files use the table's own names. With it, files, statistics and partition
# values use physical names that never change, so a column can have any name and be renamed without
# a rewrite (protocol, section "Column Mapping").

MODE_KEY = "delta.columnMapping.mode"
ID_KEY = "delta.columnMapping.id"
PHYSICAL_NAME_KEY = "delta.columnMapping.physicalName"

Mode = Literal["none", "name", "id"]


def mapping_mode(protocol: Protocol, metadata: Metadata) -> Mode:
    """Return the mapping mode; the property applies only if the protocol has the feature."""
    mode = str(metadata.configuration.get(MODE_KEY, "none")).lower()
    if mode not in {"none", "name", "id"}:
        raise UnsupportedTable(
            f"The table maps its columns in the mode {mode!r}, which is not known here.",
            cause="Delta knows the modes 'none', 'name' and 'id'.",
            remedy="Use a version of freezeframe that knows this mode.",
            code="DELTA_MODE_NOT_SUPPORTED",
            mode=mode,
        )
    if not has_reader_feature(protocol, "columnMapping"):
        return "none"
    return "name" if mode == "name" else "id" if mode == "id" else "none"


def physical_name(field: Mapping[str, Any], mode: Mode = "name") -> str:
    """Return the name of a Delta field in partition values, statistics and (except in mode ``id``) files."""
    metadata = field.get("metadata") or {}
    if mode == "none":
        return str(field["name"])
    return str(metadata.get(PHYSICAL_NAME_KEY, field["name"]))


def field_id(field: Mapping[str, Any]) -> int | None:
    """Return the column id of a Delta field under column mapping, or None."""
    found = (field.get("metadata") or {}).get(ID_KEY)
    return None if found is None else int(found)


def every_field(kind: Any) -> Iterator[dict[str, Any]]:
    """Yield all fields of a Delta type, outer before inner, through structs, arrays and maps."""
    return (field for _, field in fields_by_path(kind))


def fields_by_path(
    kind: Any, inside: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every field of a Delta type, at any depth, with its path of names."""
    if not isinstance(kind, Mapping):
        return
    if kind.get("type") == "struct":
        for field in fields_of(kind):
            path = (*inside, field.get("name", ""))
            yield path, field
            yield from fields_by_path(field.get("type"), path)
    for key in ("elementType", "keyType", "valueType"):
        yield from fields_by_path(kind.get(key), (*inside, key))


def column_finder(fields: Iterable[pa.Field], mode: Mode) -> Callable[[Mapping[str, Any]], int | None]:
    """Return function from a Delta field to its index among a file's fields, or None where the file lacks it.

    Matches by id in mode ``id``, else by physical name, and failing that by name regardless of case,
    as Spark does.
    """
    ids: dict[bytes | None, int] = {}
    names: dict[str, int] = {}
    lower: dict[str, int] = {}
    for index, field in enumerate(fields):
        ids.setdefault((field.metadata or {}).get(b"PARQUET:field_id"), index)
        names.setdefault(field.name, index)
        lower.setdefault(field.name.lower(), index)

    def find(wanted: Mapping[str, Any]) -> int | None:
        if mode == "id" and field_id(wanted) is not None:
            return ids.get(str(field_id(wanted)).encode())
        name = physical_name(wanted, mode)
        return names.get(name, lower.get(name.lower()))

    return find


# Type widening: the type changes for which scans convert the values of older files.
#
# Tables record each change in the field's metadata (protocol, section "Type Widening"). A change
# outside the protocol's list has no defined conversion, so such a table is refused.

CHANGES_KEY = "delta.typeChanges"

_INTEGERS = ("byte", "short", "integer", "long")
_CHANGED_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}  # as decimals, by the protocol


def is_widening(before: str, after: str) -> bool:
    """Return whether the protocol lists the change from ``before`` to ``after`` as widening."""
    if before in _INTEGERS and after in _INTEGERS:
        return _INTEGERS.index(before) <= _INTEGERS.index(after)
    if (before, after) in {("float", "double"), ("date", "timestamp_ntz")}:
        return True
    if after == "double":
        return before in _INTEGERS[:3]
    wide = _CHANGED_DECIMAL.fullmatch(after)
    narrow = _CHANGED_DECIMAL.fullmatch(before)
    if wide is None:
        return False
    if narrow is not None:
        return _holds(int(narrow[1]), int(narrow[2]), wide)
    return before in _DIGITS and _holds(_DIGITS[before], 0, wide)


def _holds(precision: int, scale: int, wide: re.Match[str]) -> bool:
    more_scale = int(wide[2]) - scale
    return 0 <= more_scale <= int(wide[1]) - precision


def require_known_changes(schema: Mapping[str, Any]) -> None:
    """Refuse a table with a type change that Delta does not allow."""
    for field in every_field(schema):
        for change in (field.get("metadata") or {}).get(CHANGES_KEY) or ():
            before, after = str(change.get("fromType")), str(change.get("toType"))
            if not is_widening(before, after):
                raise UnsupportedTable(
                    f"The rows cannot be read: the type of {field['name']!r} was changed from "
                    f"{before} to {after}.",
                    cause="Delta's type widening does not allow this change.",
                    remedy="Read a version of the table before the change.",
                    code="DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
                    column=field["name"],
                )
