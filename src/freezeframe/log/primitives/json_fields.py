"""Fields of JSON objects, checked for their kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, ClassVar, Self

# Typed access to JSON fields: reading a value of another type raises an error.
#
# Each function raises ``TypeError``, ``ValueError`` or ``KeyError``; parsers of actions turn it into
# damage.

_WHOLE_MAX = 2**63


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Return the JSON value of a text."""
    try:
        return json.loads(text, **options)
    except RecursionError as error:
        raise ValueError("It is nested too deeply.") from error


def parse_encodable_json(text: str, **options: Any) -> Any:
    """Return the JSON value of a text, all of whose texts UTF-8 can encode, as Arrow requires."""
    found = parse_json(text, **options)
    if "\\u" in text:  # only an escape can be a lone surrogate
        json.dumps(found, ensure_ascii=False, default=str).encode()
    return found


def statistics(content: str | None) -> dict[str, Any]:
    """Return the statistics of a file (``add.stats``) with exact decimals; empty for invalid JSON."""
    try:
        found = parse_encodable_json(content, parse_float=Decimal) if content else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def text(value: Any) -> str | None:
    """Return a text that UTF-8 can encode, or null."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is not text")
    value.encode()  # refuses a lone surrogate
    return value


def require_text(value: Mapping[str, Any], name: str) -> str:
    """Return the text of a required field."""
    found = text(value[name])
    if found is None:
        raise KeyError(name)
    return found


def as_text(value: Any) -> str | None:
    """Return a text, or the JSON text of any other value, as Spark coerces it."""
    return text(value) if value is None or isinstance(value, str) else json.dumps(value)


def texts(value: Any) -> dict[str, Any] | None:
    """Return an object of texts or nulls; Parquet's empty map arrives as an empty list."""
    if value is None:
        return None
    if value == []:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.80} is not an object")
    return {str(text(key)): as_text(item) for key, item in value.items()}


def settings(value: Any) -> dict[str, Any] | None:
    """Return an object of texts; a null is a setting that is not made."""
    found = texts(value)
    return found and {key: item for key, item in found.items() if item is not None}


def whole(value: Any) -> int | None:
    """Return a whole number of 64 bits, or null."""
    if value is None:
        return None
    if isinstance(value, bool) or not (
        isinstance(value, int | str) or (isinstance(value, float) and value.is_integer())
    ):
        raise TypeError(f"{value!r:.80} is not a whole number")
    number = int(value)
    if not -_WHOLE_MAX <= number < _WHOLE_MAX:
        raise ValueError(f"{value!r:.80} has more than 64 bits")
    return number


def flag(value: Any) -> bool | None:
    """True, false or null."""
    if value is None or isinstance(value, bool):
        return value
    raise TypeError(f"{value!r:.80} is neither true nor false")


def names(value: Any) -> tuple[str, ...] | None:
    """Return a list of texts, or null."""
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r:.80} is not a list")
    if None in value:
        raise TypeError("a name is null")
    return tuple(str(text(item)) for item in value)


Reader = Callable[[Mapping[str, Any], str], Any]
"""Takes the field of a name from an object; raises as ``json_fields`` does."""


class DeltaFields:
    """Base of a dataclass with a JSON mapping: ``FIELDS`` lists its Delta fields and their readers."""

    __slots__ = ()
    FIELDS: ClassVar[Mapping[str, tuple[str, Reader]]]
    """By the attribute's name: the name in Delta, and the reader; in the order in which they are written."""

    def to_json(self) -> dict[str, Any]:
        """Return the non-null fields under Delta's names."""
        found = {delta: _plain(getattr(self, own)) for own, (delta, _) in self.FIELDS.items()}
        return without_nulls(found)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Build the value from Delta's fields; unknown fields are ignored."""
        return cls(**{own: read(value, delta) for own, (delta, read) in cls.FIELDS.items()})


def optional(read: Callable[[Any], Any], default: Callable[[], Any] | None = None) -> Reader:
    """Reader of an optional field: ``default()``, or None, where it is missing or null."""

    def field(value: Mapping[str, Any], name: str) -> Any:
        found = read(value.get(name))
        return default() if found is None and default is not None else found

    return field


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the non-null fields; Delta omits the others."""
    return {name: value for name, value in fields.items() if value is not None}


_SCALARS = frozenset((type(None), str, int, bool))


def _plain(value: Any) -> Any:
    if type(value) in _SCALARS:  # most are; what an abstract class is asked takes a while
        return value
    if isinstance(value, DeltaFields):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value
