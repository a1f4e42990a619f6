"""Declarative JSON mapping of Delta's objects: each class lists its fields and their readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

Reader = Callable[[Mapping[str, Any], str], Any]
"""Takes the field of a name from an object; raises as ``json_fields`` does."""


class DeltaFields:
    """Base of a dataclass with a JSON mapping: ``FIELDS`` lists its Delta fields and their readers."""

    __slots__ = ()
    FIELDS: ClassVar[Mapping[str, tuple[str, Reader]]]
    """By the attribute's name: the name in Delta, and the reader; in the order in which they are written."""

    def to_json(self) -> dict[str, Any]:
        """The non-null fields under Delta's names."""
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
    """The non-null fields; Delta omits the others."""
    return {name: value for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, DeltaFields):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value
