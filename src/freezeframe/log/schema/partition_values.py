"""Partition values: text in the log, typed values in rows.

The formats are the protocol's ("Partition Value Serialization"): the empty text is null for
every type, and instants are written with their zone, UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from freezeframe.errors import BadInput, CorruptLog
from freezeframe.log.primitives.far_times import day, instant
from freezeframe.log.schema.column_mapping import Mode, physical_name
from freezeframe.log.schema.schema import arrow_field


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """The partition columns of a table: the key in the log and the Arrow type of each.

    An instant whose text names no zone is a time of ``time_zone``.
    """

    columns: Mapping[str, tuple[str, pa.DataType]]
    time_zone: tzinfo = UTC

    @classmethod
    def of(cls, fields: Iterable[Mapping[str, Any]], mode: Mode, time_zone: tzinfo) -> PartitionColumns:
        """The columns of Delta's ``fields``."""
        found = {field["name"]: (physical_name(field, mode), arrow_field(field).type) for field in fields}
        return cls(found, time_zone)

    def only(self, names: Iterable[str]) -> PartitionColumns:
        """Those of them that are named."""
        wanted = set(names)
        kept = {name: column for name, column in self.columns.items() if name in wanted}
        return PartitionColumns(kept, self.time_zone)

    def values(self, texts: Mapping[str, str | None]) -> dict[str, pa.Scalar]:
        """The typed value of each column, given the texts of a file by their keys.

        Raises:
            CorruptLog: a text is not a value of its column's type.
        """
        return {
            name: partition_scalar(texts.get(key), kind, self.time_zone)
            for name, (key, kind) in self.columns.items()
        }


def partition_scalar(text: str | None, kind: pa.DataType, time_zone: tzinfo = UTC) -> pa.Scalar:
    """Parse the log's text as a value of the column's Arrow type.

    Raises:
        CorruptLog: the text is not a value of that type.
    """
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
            remedy="The log names a partition that its own schema rules out; restore the log from a copy.",
        ) from error


def partition_text(value: Any, column: str) -> str | None:
    """Serialise a partition value (a Python value of the column's type) as the log's text.

    Raises:
        BadInput: a value of a type that cannot be a partition column.
    """
    match value:
        case None | "":
            return None
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return _number(value) if isinstance(value, float) else str(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            if value.tzinfo is None:
                return value.isoformat(sep=" ", timespec="microseconds")
            # A text without a zone would be a time of the reader's own in Spark.
            moment = value.astimezone(UTC).replace(tzinfo=None)
            return f"{moment.isoformat(timespec='microseconds')}Z"
        case date():
            return value.isoformat()
        case bytes():
            return value.decode()
        case _:
            raise BadInput(
                f"The column {column!r} cannot partition a table.",
                cause=f"Its values are of type {type(value).__name__}.",
                remedy="Partition by text, a number, a date or a time.",
                column=column,
            )


def _number(value: float) -> str:
    names = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    return names.get(repr(value), repr(value))
