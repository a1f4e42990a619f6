"""What a caller and a Singer catalog say of the columns of input files."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from freezeframe.errors import InvalidOption, UnreadableInput
from freezeframe.script.types.typed_columns import DECIMAL_DIGITS, KnownTypes
from freezeframe.script.types.written_values import NAIVE_TIMESTAMP, UTC_TIMESTAMP
from freezeframe.storage.read_ahead import reads_of

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
_DECIMAL_NAME = re.compile(r"decimal(?:128)?\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_TIME = re.compile(r"(?:datetime64|timestamp)\[(?:s|ms|us|ns)(?:,\s*(?:tz=)?(?P<zone>[^\]]+))?\]")


def named_type(name: Any) -> pa.DataType:
    """Return the Arrow type for a name of pandas, Arrow or Spark, or for a type object of theirs."""
    text = (name.__name__ if isinstance(name, type) else str(name)).strip().lower()
    found = _NAMES.get(text)
    if found is not None:
        return found
    time, decimal = _TIME.fullmatch(text), _DECIMAL_NAME.fullmatch(text)
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
        """Return what is known of a stream's columns with these options."""
        dates = self.parse_dates
        wanted = dates.get(stream) if isinstance(dates, Mapping) else dates
        return KnownTypes(stored, dict(declared), self._types(stream), _date_columns(wanted), stream=stream)

    def _types(self, stream: str) -> dict[str, pa.DataType]:
        types = self.types or {}
        flat = {column: kind for column, kind in types.items() if not isinstance(kind, Mapping)}
        named = types.get(stream)
        own = named if isinstance(named, Mapping) else {}
        return {column: named_type(kind) for column, kind in {**flat, **own}.items()}


def types_of_words(words: Sequence[str]) -> dict[str, str]:
    """Return the option ``types`` of ``COLUMN=TYPE`` for each column."""
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


FILE_NAME = "catalog.json"

_BY_FORMAT = {"date-time": UTC_TIMESTAMP, "date": pa.date32()}
_BY_TYPES: dict[frozenset[str], pa.DataType] = {
    frozenset({"integer"}): pa.int64(),
    frozenset({"number"}): pa.float64(),
    frozenset({"integer", "number"}): pa.float64(),
    frozenset({"boolean"}): pa.bool_(),
}


@dataclass(frozen=True, slots=True)
class Catalog:
    """Stream -> column -> Arrow type, for every column of which the type is declared."""

    streams: Mapping[str, Mapping[str, pa.DataType]]

    def columns(self, stream: str) -> Mapping[str, pa.DataType]:
        """Return the declared columns of one stream; none if the catalog does not know it."""
        return self.streams.get(stream, {})


def catalog_beside(folder: Path) -> Catalog:
    """Return the catalog in the folder's parent, where a sync leaves it; an empty one if there is none."""
    file = folder.resolve().parent / FILE_NAME
    try:
        with reads_of(str(file)):
            document = json.loads(file.read_text("utf-8-sig"))
            streams: dict[str, dict[str, pa.DataType]] = {}
            for entry in document.get("streams", []):
                properties = (entry.get("schema") or {}).get("properties") or {}
                kinds = {name: kind for name, schema in properties.items() if (kind := declared_type(schema))}
                for name in (entry.get("tap_stream_id"), entry.get("stream")):
                    if isinstance(name, str):
                        streams[name] = kinds
            return Catalog(streams)
    except (FileNotFoundError, IsADirectoryError):
        return Catalog({})
    except (ValueError, TypeError, AttributeError) as error:
        raise UnreadableInput(
            f"{str(file)!r} is not a Singer catalog.",
            cause=str(error),
            remedy="Repair or remove it; without it the types are inferred from the values.",
            file=str(file),
        ) from error


def declared_type(schema: Mapping[str, Any]) -> pa.DataType | None:
    """Return the Arrow type of one property, or None if its schema says nothing about a type.

    ``date-time`` is an instant in UTC, ``date`` a date. Where several types are allowed that
    do not go together, or a list or object, it is text.
    """
    alternatives = list(type_alternatives(schema))
    types = frozenset(name for _, names in alternatives for name in names) - {"null"}
    if not types:
        return None
    formats = {_BY_FORMAT[name] for name, _ in alternatives if name in _BY_FORMAT}
    if types == {"string"} and len(formats) == 1:
        return formats.pop()
    return _BY_TYPES.get(types, pa.string())


def type_alternatives(schema: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield each way to meet the schema: its format ("" for none) and its type names."""
    names = schema.get("type", [])
    yield str(schema.get("format", "")), [names] if isinstance(names, str) else list(names)
    for choice in (*schema.get("anyOf", []), *schema.get("oneOf", [])):
        yield from type_alternatives(choice)
