"""What a caller says of the text of CSV files: types, dates, and how quotes are escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from freezeframe.errors import InvalidOption
from freezeframe.script.types.inference import DECIMAL_DIGITS, KnownTypes
from freezeframe.script.types.written_values import NAIVE_TIMESTAMP, UTC_TIMESTAMP

DateColumns = bool | None | Sequence[str] | Mapping[str, bool | Sequence[str]]

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
    """The Arrow type that is meant by a name of pandas, Arrow or Spark, or by a type object of theirs."""
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


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How the text of CSV files is read, beyond what is known of a stream.

    ``types`` names a type for a column of every stream, ``{"Phone": "string"}``, or of one,
    ``{"Account": {"Phone": "string"}}``. ``parse_dates`` is true, columns, or either by stream. ``escape``
    stands before a quote in a quoted field, if not a quote.
    """

    types: Mapping[str, Any] | None = None
    parse_dates: DateColumns = None
    escape: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.types or {}, Mapping):
            raise InvalidOption(
                f"types cannot be {self.types!r}.", remedy='Use types={"Phone": "string"}, or one by stream.'
            )
        for stream in {"", *(self.types or {})}:
            self._types(stream)
        for wanted in (
            self.parse_dates.values() if isinstance(self.parse_dates, Mapping) else [self.parse_dates]
        ):
            _date_columns(wanted)
        is_one = len(self.escape) == 1 and self.escape.isascii() and not self.escape.isalnum()
        if self.escape and (not is_one or self.escape in '",;\t|\r\n'):
            raise InvalidOption(
                f"escape cannot be {self.escape!r}.",
                cause="It is the one character, such as a backslash, before a quote in a quoted field.",
                remedy='Use escape="\\\\" for what Spark writes; without it a quote is doubled.',
            )

    @property
    def is_given(self) -> bool:
        """Whether there is any option."""
        return bool(self.types or self.parse_dates or self.escape)

    def known(
        self,
        stream: str,
        stored: pa.Schema | None = None,
        declared: Mapping[str, pa.DataType] = MappingProxyType({}),
    ) -> KnownTypes:
        """What is known of a stream's columns with these options."""
        dates = self.parse_dates
        wanted = dates.get(stream) if isinstance(dates, Mapping) else dates
        return KnownTypes(stored, dict(declared), self._types(stream), _date_columns(wanted))

    def _types(self, stream: str) -> dict[str, pa.DataType]:
        given = self.types or {}
        flat = {column: kind for column, kind in given.items() if not isinstance(kind, Mapping)}
        named = given.get(stream)
        own = named if isinstance(named, Mapping) else {}
        return {column: named_type(kind) for column, kind in {**flat, **own}.items()}


def types_of_words(words: Sequence[str]) -> dict[str, str]:
    """The option ``types`` of ``COLUMN=TYPE`` for each column."""
    parts = [word.rpartition("=") for word in words]
    for word, (column, _, kind) in zip(words, parts, strict=True):
        if not column or not kind:
            raise InvalidOption(f"{word!r} names no type of a column.", remedy="Write it as Phone=string.")
    return {column: kind for column, _, kind in parts}


def _date_columns(wanted: Any) -> bool | frozenset[str]:
    if wanted is None or isinstance(wanted, bool):
        return bool(wanted)
    if isinstance(wanted, str):
        return frozenset([wanted])
    if isinstance(wanted, list | tuple | set | frozenset) and all(isinstance(name, str) for name in wanted):
        return frozenset(wanted)
    raise InvalidOption(
        f"parse_dates cannot be {wanted!r}.",
        remedy='Use True, a list of columns, or one of these by stream: {"Account": ["CreatedDate"]}.',
    )


NO_CSV_OPTIONS = CsvOptions()
