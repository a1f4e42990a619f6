"""Matching of erased keys in values, texts and log records (pure).

A value is compared as what it is: a number with numbers where a key may stand, never with the digits of
another figure. A key that looks like a figure is looked for in texts as a word of its own: not within
dates, longer numbers, names of files or hashes. Any other key is found anywhere in a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from numbers import Number
from typing import Any

LETTERS_MIN = 4
_FIGURE = re.compile(r"[-+]?[0-9][0-9.,:+\- eETZ]*")
_MACHINE_MADE = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9A-Za-z])[0-9a-f]{32,}(?![0-9A-Za-z])"
)
_BOUNDS = frozenset({"minValues", "maxValues", "partitionValues", "partitionValues_parsed"})


@dataclass(frozen=True, slots=True)
class ErasedKeys:
    """``long_pattern`` finds keys that are like an id of ours, ``pattern`` the others.

    ``column`` is the physical name of a key of one column, ``numbers`` are its values that are numbers.

    Of a key of several columns other rows may have the same parts, so no bound of a column tells of it.
    """

    pattern: re.Pattern[bytes] | None
    long_pattern: re.Pattern[bytes] | None
    values: frozenset[Any]
    texts: frozenset[str]
    column: str | None

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[Any]], physical: Mapping[str, str]) -> ErasedKeys:
        """The keys in ``columns`` (values by column); ``physical`` has the columns' names in the files."""
        values = frozenset(value for column in columns.values() for value in column)
        texts = frozenset(form for value in values for form in _forms(value))
        words = sorted((text for text in texts if len(text) >= LETTERS_MIN), key=len, reverse=True)
        whole = {text for text in words if _MACHINE_MADE.search(text.encode(errors="surrogateescape"))}
        whole |= {form for value in values if isinstance(value, datetime) for form in _forms(value)}
        (name,) = columns if len(columns) == 1 else (None,)
        return cls(
            _any_of([_pattern(text) for text in words if text not in whole]),
            _any_of([re.escape(text.encode(errors="surrogateescape")) for text in words if text in whole]),
            frozenset(value for value in values if _is_number(value)),
            texts,
            physical.get(name, name) if name is not None else None,
        )

    def in_bytes(self, content: bytes) -> bool:
        """Whether text or other bytes contain a key."""
        if self.long_pattern is not None and self.long_pattern.search(content):
            return True
        return self.pattern is not None and self.pattern.search(_MACHINE_MADE.sub(b" ", content)) is not None

    def in_value(self, value: Any) -> bool:
        """Whether a cell of another stream equals a key, or is a text that contains one."""
        if isinstance(value, Mapping):
            return any(self.in_value(one) for one in (*value.keys(), *value.values()))
        if isinstance(value, list | tuple):
            return any(map(self.in_value, value))
        if _is_number(value):
            return len(str(value)) >= LETTERS_MIN and value in self.values
        return value is not None and any(
            self.in_bytes(form if isinstance(form, bytes) else form.encode(errors="surrogatepass"))
            for form in _forms(value)
        )

    def in_texts(self, value: Any) -> bool:
        """Whether a text within the value contains a key; other values are ignored."""
        if isinstance(value, Mapping):
            return any(self.in_texts(one) for one in (*value.keys(), *value.values()))
        if isinstance(value, list | tuple):
            return any(map(self.in_texts, value))
        return isinstance(value, str | bytes) and self.in_value(value)

    def in_record(self, value: Any, *, ours: str = "") -> bool:
        """Whether a log's record holds a key: in a bound of the key's column, or in a text but ``ours``."""
        if isinstance(value, Mapping):
            return any(
                (name in _BOUNDS and self._in_bounds(one)) or self.in_record(one, ours=ours)
                for name, one in value.items()
            ) or any(self.in_value(name) for name in value)
        if isinstance(value, list | tuple):
            return any(self.in_record(one, ours=ours) for one in value)
        if not isinstance(value, str | bytes) or value == ours:
            return False
        records = _records(value)
        return self.in_value(value) if records is None else self.in_record(records, ours=ours)

    def in_json(self, content: bytes, *, ours: str = "") -> bool:
        """Whether the lines of a JSON file hold a key; what is not JSON is looked at as bytes."""
        records = _records(content)
        return self.in_bytes(content) if records is None else self.in_record(records, ours=ours)

    def _in_bounds(self, bounds: Any) -> bool:
        pairs = bounds.items() if isinstance(bounds, Mapping) else bounds if isinstance(bounds, list) else ()
        found = [pair[1] for pair in pairs if len(pair) > 1 and pair[0] == self.column]
        return any((_is_number(one) and one in self.values) or str(one) in self.texts for one in found)


def _records(content: str | bytes) -> list[Any] | None:
    """The JSON objects in the lines of a text; None for other content."""
    brace, newline = ("{", "\n") if isinstance(content, str) else (b"{", b"\n")
    if not content.lstrip().startswith(brace):  # type: ignore[arg-type]
        return None
    try:
        return [json.loads(content)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in content.split(newline) if line.strip()]  # type: ignore[arg-type]
    except ValueError:
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, Number | Decimal) and not isinstance(value, bool)


def _forms(value: Any) -> tuple[Any, ...]:
    """The textual forms of a value."""
    if isinstance(value, bytes):
        return (value.decode(errors="surrogateescape"),)
    if isinstance(value, date | datetime):
        return tuple({str(value), value.isoformat()})
    return (str(value),)


def _any_of(patterns: list[bytes]) -> re.Pattern[bytes] | None:
    return re.compile(b"|".join(patterns)) if patterns else None


def _pattern(text: str) -> bytes:
    word = re.escape(text.encode(errors="surrogateescape"))
    if not _FIGURE.fullmatch(text):
        return word
    return rb"(?<![0-9A-Za-z_.:/+\-])" + word + rb"(?![0-9A-Za-z_:/+\-]|\.[0-9])"
