"""The receipt of an update: counts, versions, files and bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from freezeframe.engine.frames.frames import DtypeBackend, FrameKind
from freezeframe.errors import InvalidOption
from freezeframe.store.model.html_table import html_table
from freezeframe.store.model.row_counts import Counts, table_of


@dataclass(frozen=True, slots=True)
class Receipt:
    """Result of an update: row counts and versions.

    ``version`` and ``stream_version`` are the tenant's and the stream's own versions after the call;
    where nothing changed they are the ones from before, and ``committed`` is false.
    ``bytes_written`` counts the newly referenced data files, ``deleted`` the rows that were removed,
    closed or flagged. Two receipts are equal if they say the same.
    """

    stream: str
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    version: int
    stream_version: int
    committed: bool
    columns_added: tuple[str, ...]
    columns_dropped: tuple[str, ...]
    null_keys_dropped: int
    bytes_written: int
    seconds: float
    engine: str = ""
    """Who searched or merged the stored rows: ``spark``, ``process`` (the job's own), or nobody (empty)."""
    columns_missing: tuple[str, ...] = ()
    """Stored columns that the batch has not."""
    source: Callable[[FrameKind, str | None], Any] | None = field(default=None, repr=False, compare=False)
    """How the rows that this update changed are read; a receipt that was copied elsewhere has none."""

    @property
    def counts(self) -> Counts:
        """The four row counts as one value."""
        return Counts(self.inserted, self.updated, self.unchanged, self.deleted)

    def changed_rows(self, as_: FrameKind = "pandas", *, dtype_backend: DtypeBackend | None = None) -> Any:
        """The rows changed by this update, in the form of ``Stream.changes``.

        ``_change_type`` is ``insert``, ``update`` (with the old row in ``_before``) or ``delete``; what
        others committed before or after is not among them. Nothing changed: no rows. A job makes one
        version of a stream, so there it is what the job has done with the stream so far.

        Raises:
            InvalidOption: the receipt was sent to another process, which does not know the stream.
            VersionNotFound: the versions are no longer kept.
        """
        if self.source is None:
            raise InvalidOption(
                "This receipt no longer knows its stream.",
                cause="It was copied to another process.",
                remedy=f"Ask the stream: changes({self._since()}until={self.version})."
                if self.committed
                else "Nothing was committed, so no row was changed.",
            )
        return self.source(as_, dtype_backend)

    def _since(self) -> str:
        return f"since={self.version - 1}, " if self.version > 0 else ""

    def to_json(self) -> dict[str, Any]:
        """All fields by name as JSON values; ``version`` is ``tenant_version`` there."""
        names = {one.name: one.name for one in fields(self) if one.compare} | {"version": "tenant_version"}
        said = {named: getattr(self, name) for name, named in names.items()}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}

    def _repr_html_(self) -> str:
        """The counts in a notebook."""
        state = f"version {self.version}" if self.committed else "nothing committed"
        return html_table(f"{self.stream}, {state}", *table_of({self.stream: self.counts}))

    def __reduce__(self) -> tuple[Any, ...]:
        # The source holds storage and engine, which cannot be pickled.
        return type(self), tuple(getattr(self, one.name) for one in fields(self) if one.compare)
