"""Partition values: text in the log, typed values in rows.

The formats are the protocol's ("Partition Value Serialization"): the empty text is null for
every type, and times without a zone are UTC.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from freezeframe.errors import BadInput, CorruptLog
from freezeframe.log.primitives.far_times import day, instant


def partition_scalar(text: str | None, kind: pa.DataType) -> pa.Scalar:
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
            return instant(text, kind)
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
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return moment.isoformat(sep=" ", timespec="microseconds")
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
