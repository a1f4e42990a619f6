"""Names of column types, as pandas, Arrow and Spark have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from freezeframe.errors import InvalidOption
from freezeframe.script.types.inference import DECIMAL_DIGITS
from freezeframe.script.types.text_values import NAIVE_TIMESTAMP, UTC_TIMESTAMP

# In lower case. "int" and "float" are those of Python and pandas: 64 bits.
_NAMES: dict[str, pa.DataType] = {
    **dict.fromkeys(("string", "str", "object", "large_string", "utf8", "varchar", "text"), pa.string()),
    **dict.fromkeys(("int64", "int", "long", "bigint"), pa.int64()),
    **dict.fromkeys(("int32", "integer"), pa.int32()),
    **dict.fromkeys(("int16", "short", "smallint"), pa.int16()),
    **dict.fromkeys(("int8", "byte", "tinyint"), pa.int8()),
    **dict.fromkeys(("float64", "float", "double"), pa.float64()),
    **dict.fromkeys(("float32", "real"), pa.float32()),
    **dict.fromkeys(("bool", "boolean"), pa.bool_()),
    **dict.fromkeys(("date", "date32", "date32[day]"), pa.date32()),
    "timestamp": UTC_TIMESTAMP,
    "timestamp_ntz": NAIVE_TIMESTAMP,
}
_DECIMAL = re.compile(r"decimal(?:128)?\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_TIME = re.compile(r"(?:datetime64|timestamp)\[(?:s|ms|us|ns)(?:,\s*(?:tz=)?(?P<zone>[^\]]+))?\]")


def named_type(name: Any) -> pa.DataType:
    """The Arrow type that is meant by a name of pandas, Arrow or Spark, or by a type object of theirs.

    Raises:
        InvalidOption: no type has that name, or a stream cannot keep values of it.
    """
    text = (name.__name__ if isinstance(name, type) else str(name)).strip().lower()
    found = _NAMES.get(text)
    if found is not None:
        return found
    time, decimal = _TIME.fullmatch(text), _DECIMAL.fullmatch(text)
    if time is not None:
        return UTC_TIMESTAMP if time["zone"] else NAIVE_TIMESTAMP
    if decimal is not None and 0 < int(decimal[1]) <= DECIMAL_DIGITS and int(decimal[2]) <= int(decimal[1]):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    raise InvalidOption(
        f"{name!r} is not the name of a type that text can be read as.",
        remedy='Use "string", "int64", "double", "decimal(38,2)", "bool", "date", "timestamp" (an instant),'
        ' "timestamp_ntz" (without a zone), or the name that pandas, Arrow or Spark has for one of them.',
        type=str(name),
    )


def types_of_stream(types: Mapping[str, Any] | None, stream: str) -> dict[str, pa.DataType]:
    """The types that a ``types=`` option names for the columns of a stream.

    ``{"Phone": "string"}`` is for every stream that has the column, ``{"Account": {"Phone": "string"}}``
    for one.

    Raises:
        InvalidOption: no type has such a name.
    """
    given = types or {}
    flat = {column: kind for column, kind in given.items() if not isinstance(kind, Mapping)}
    named = given.get(stream)
    own = named if isinstance(named, Mapping) else {}
    return {column: named_type(kind) for column, kind in {**flat, **own}.items()}


def dates_of_stream(parse_dates: Any, stream: str) -> bool | frozenset[str]:
    """Which columns of a stream a ``parse_dates=`` option names; true for all of them.

    Raises:
        InvalidOption: it is not true, a list of columns, or such a value by stream.
    """
    wanted = parse_dates.get(stream, False) if isinstance(parse_dates, Mapping) else parse_dates
    if wanted is None or isinstance(wanted, bool):
        return bool(wanted)
    if isinstance(wanted, str):
        return frozenset([wanted])
    if isinstance(wanted, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in wanted):
        return frozenset(wanted)
    raise InvalidOption(
        f"parse_dates cannot be {parse_dates!r}.",
        remedy='Use True, a list of columns, or one of these by stream: {"Account": ["CreatedDate"]}.',
    )
