"""Row counts of a change: inserted, updated, unchanged, deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Counts:
    """Row counts of one change of a stream."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0

    def __post_init__(self) -> None:
        if min(self.inserted, self.updated, self.unchanged, self.deleted) < 0:
            raise ValueError(f"counts cannot be negative: {self}")

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.unchanged + other.unchanged,
            self.deleted + other.deleted,
        )

    @property
    def changed(self) -> int:
        """Number of changed rows: inserted, updated and deleted."""
        return self.inserted + self.updated + self.deleted

    def to_json(self) -> dict[str, int]:
        """The counts by name."""
        return {
            "inserted": self.inserted,
            "updated": self.updated,
            "unchanged": self.unchanged,
            "deleted": self.deleted,
        }


def table_of(counts: Mapping[str, Counts]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """The columns and the rows of a table of counts by stream."""
    names = tuple(Counts().to_json())
    return ("stream", *names), [(name, *one.to_json().values()) for name, one in counts.items()]
