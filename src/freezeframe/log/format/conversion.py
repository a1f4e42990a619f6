"""Conversion between Delta's and Arrow's types and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from freezeframe.errors import CorruptData, CorruptLog, UnsupportedTable
from freezeframe.log.format.schema import (
    Mode,
    arrow_field,
    arrow_type,
    column_finder,
    fields_of,
    physical_name,
)
from freezeframe.log.primitives.arrow import day, instant
from freezeframe.nested_types import inner, is_list, with_inner

# Conversion of a data file's columns to the table's current types.
#
# A file may be older than the schema: a column may have been added, renamed, widened or moved inside
# a struct since. Each array is rebuilt from the file's parts, at every depth. Missing parts become
# null; a conversion that would lose a value is refused.


def conform(array: pa.Array, kind: Any, mode: Mode) -> pa.Array:
    """Convert the array to the Arrow type of the Delta type ``kind``; ``mode`` matches nested fields."""
    target = arrow_type(kind)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(kind, str):
        return _variant(array) if kind == "variant" else _primitive(array, target)
    if kinds.is_dictionary(array.type):
        array = array.dictionary_decode()
    match kind["type"]:
        case "struct" if kinds.is_struct(array.type):
            return _struct(array, kind, mode, target)
        case "array" if is_list(array.type):
            (values,) = inner(array)
            return with_inner(array, [conform(values, kind["elementType"], mode)], target)
        case "map" if kinds.is_map(array.type):
            keys, items = inner(array)
            arrays = [conform(keys, kind["keyType"], mode), conform(items, kind["valueType"], mode)]
            return with_inner(array, arrays, target)
    raise _mismatch(array.type, target)


def _struct(array: pa.Array, kind: Mapping[str, Any], mode: Mode, target: pa.DataType) -> pa.Array:
    held = inner(array)
    children = []
    find = column_finder(list(array.type), mode)
    for index, field in enumerate(fields_of(kind)):
        found = find(field)
        if found is None:
            children.append(pa.nulls(len(array), target.field(index).type))
        else:
            children.append(conform(held[found], field["type"], mode))
    return with_inner(array, children, target)


def _primitive(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    if kinds.is_null(target):
        return pa.nulls(len(array))
    if kinds.is_timestamp(array.type) and kinds.is_timestamp(target):
        # The zone of the type does not affect the values: both count from 1970 UTC (older writers omit it).
        plain = array.cast(pa.timestamp(array.type.unit))
        try:
            return plain.cast(pa.timestamp("us")).cast(pa.int64()).cast(target)
        except pa.ArrowInvalid as error:
            raise UnsupportedTable(
                f"A data file holds {array.type} with times that {target} does not hold.",
                cause=f"A Delta table has microseconds, and no digit is dropped in silence: {error}.",
                remedy="Nothing is damaged: write the file anew with whole microseconds.",
            ) from error
    families = (_family(array.type), _family(target))
    # Arrow would cast "12" to 12 and back; in a table such a difference means a damaged file.
    if families[0] != families[1] and families != ("date", "time"):
        raise _mismatch(array.type, target)
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _mismatch(array.type, target, str(error)) from error


def _family(kind: pa.DataType) -> str:
    if kinds.is_dictionary(kind):
        return _family(kind.value_type)
    if kinds.is_boolean(kind):
        return "boolean"
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
        return "number"
    if kinds.is_date(kind):
        return "date"
    if kinds.is_timestamp(kind):
        return "time"
    return "nested" if kinds.is_nested(kind) else "bytes"


def _variant(array: pa.Array) -> pa.Array:
    target = arrow_type("variant")
    names = (
        [array.type.field(index).name for index in range(array.type.num_fields)]
        if kinds.is_struct(array.type)
        else []
    )
    if "typed_value" in names:
        raise UnsupportedTable(
            "The table holds variants in shredded form, which this version does not read.",
            cause="Their values are spread over several columns of the data files.",
            remedy="Read them with Spark, or rewrite the table without variantShredding.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
            features=["variantShredding"],
        )
    if not {"metadata", "value"} <= set(names):
        raise _mismatch(array.type, target)
    parts = [array.field(names.index(field.name)).cast(field.type) for field in target]
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())


def _mismatch(stored: pa.DataType, target: pa.DataType, cause: str = "") -> CorruptData:
    return CorruptData(
        f"A data file holds {stored} where the table has {target}.",
        cause=cause or "No change of type that Delta allows leads from one to the other.",
        remedy="Restore the file from a copy, or read a version of the table that does not use it.",
    )


# Partition values: text in the log, typed values in rows.
#
# The formats are the protocol's ("Partition Value Serialization"): the empty text is null for
# every type, and instants are written with their zone, UTC.


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """The partition columns of a table: the key in the log and the Arrow type of each.

    An instant whose text names no zone is a time of ``time_zone``.
    """

    columns: Mapping[str, tuple[str, pa.DataType]]
    time_zone: tzinfo = UTC

    @classmethod
    def of(cls, fields: Iterable[Mapping[str, Any]], mode: Mode, time_zone: tzinfo) -> PartitionColumns:
        """Return the columns of Delta's ``fields``."""
        found = {field["name"]: (physical_name(field, mode), arrow_field(field).type) for field in fields}
        return cls(found, time_zone)

    def only(self, names: Iterable[str]) -> PartitionColumns:
        """Return the columns with the given names."""
        wanted = set(names)
        kept = {name: column for name, column in self.columns.items() if name in wanted}
        return PartitionColumns(kept, self.time_zone)

    def values(self, texts: Mapping[str, str | None]) -> dict[str, pa.Scalar]:
        """Return the typed value of each column, given the texts of a file by their keys."""
        return {
            name: partition_scalar(texts.get(key), kind, self.time_zone)
            for name, (key, kind) in self.columns.items()
        }


def partition_scalar(text: str | None, kind: pa.DataType, time_zone: tzinfo = UTC) -> pa.Scalar:
    """Parse the log's text as a value of the column's Arrow type."""
    if text is None or text == "":
        return pa.scalar(None, kind)
    try:
        if kinds.is_binary(kind):
            return pa.scalar(text.encode(), kind)
        if kinds.is_timestamp(kind):
            return instant(text, kind, time_zone)
        if kinds.is_date(kind):
            return day(text)
        return pa.scalar(text).cast(kind)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise CorruptLog(
            f"The partition value {text!r} is no {kind}.",
            cause=str(error),
            remedy="The partition value contradicts the table's schema; restore the log from a copy.",
        ) from error
