"""Schema difference between two versions of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """Columns by name with Delta's types: added, dropped, and of another type (the old one, the new one)."""

    added: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    retyped: dict[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def between(cls, old: Mapping[str, str], new: Mapping[str, str]) -> ColumnChanges:
        """The difference between the columns of two versions."""
        return cls(
            {name: kind for name, kind in new.items() if name not in old},
            {name: kind for name, kind in old.items() if name not in new},
            {name: (kind, new[name]) for name, kind in old.items() if new.get(name, kind) != kind},
        )
