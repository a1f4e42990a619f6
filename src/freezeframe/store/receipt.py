"""What an update did: the answer of every writing call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from freezeframe.store.entries import Counts


@dataclass(frozen=True, slots=True)
class Receipt:
    """The fate of the rows of one update, and the versions that it made.

    ``version`` and ``tenant_version`` are the stream's and the tenant's versions after the call;
    where nothing changed they are the ones from before, and ``committed`` is false.
    ``bytes_written`` counts the newly referenced data files.
    """

    stream: str
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    version: int
    tenant_version: int
    committed: bool
    columns_added: tuple[str, ...]
    columns_dropped: tuple[str, ...]
    null_keys_dropped: int
    bytes_written: int
    seconds: float

    @property
    def counts(self) -> Counts:
        """The four row counts as one value."""
        return Counts(self.inserted, self.updated, self.unchanged, self.deleted)

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
