"""What taking a version back did, or would do, as it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field

from freezeframe.errors import InvalidOption
from freezeframe.service.rows.differences import ChangedRow, changed_rows, key_table, plain_row
from freezeframe.service.rows.streams import json_value
from freezeframe.store import Tenant
from freezeframe.store.maintenance import revert as store
from freezeframe.store.model.receipt import Counts


@dataclass(frozen=True, slots=True)
class KeptCell:
    """A cell that stays: its value before the version, after it, and now."""

    before: Any
    after: Any
    now: Any


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row that stays, in part or whole: what the version did to it, and why it stays."""

    key: dict[str, Any]
    change: Literal["insert", "update", "delete"]
    reason: str
    cells: dict[str, KeptCell]


@dataclass(frozen=True, slots=True)
class StreamReversion:
    """What becomes of a stream."""

    fate: Annotated[
        Literal["changed", "brought back", "removed", "kept"],
        Field(description="`kept`: all of it stays; `reason` says why."),
    ]
    reason: str
    key: tuple[str, ...]
    counts: Annotated[Counts, Field(description="Rows that return (inserted), change back and go (deleted).")]
    cells: Annotated[
        int | None, Field(description="Cells that go back in updated rows; null where they are not counted.")
    ]
    kept_rows: int
    kept_cells: int
    kept: Annotated[tuple[KeptRow, ...], Field(description=f"What stays, at most {store.LISTED_MAX:,} rows.")]
    rows: Annotated[
        tuple[ChangedRow, ...],
        Field(description=f"From now to what the rows become, at most {store.LISTED_MAX:,} of them."),
    ]

    @classmethod
    def of(cls, effect: store.StreamReversion) -> StreamReversion:
        """Return an effect as it is shown."""
        kept = tuple(
            KeptRow(
                plain_row(row.key),
                row.change,
                row.reason,
                {name: KeptCell(*map(json_value, cells)) for name, cells in row.cells.items()},
            )
            for row in effect.kept
        )
        rows = () if effect.changes is None else changed_rows(effect.changes.slice(0, store.LISTED_MAX))
        return cls(
            effect.fate,
            effect.reason,
            () if effect.changes is None else effect.changes.key,
            effect.counts,
            effect.cells,
            effect.kept_rows,
            effect.kept_cells,
            kept,
            tuple(rows),
        )


@dataclass(frozen=True, slots=True)
class Reversion:
    """What taking a version back did, or would do: `committed` says which."""

    version: int
    job_id: str | None
    tenant_version: Annotated[int, Field(description="The tenant's version after the call.")]
    committed: bool
    streams: dict[str, StreamReversion]
    files_written: tuple[str, ...]
    files_deleted: tuple[str, ...]
    files_kept: Annotated[tuple[str, ...], Field(description="Files that were changed again since.")]
    since: Annotated[int | None, Field(description="The first of several versions up to `version`.")]

    @classmethod
    def of(cls, found: store.Reversion) -> Reversion:
        """Return a reversion as it is shown."""
        streams: Mapping[str, StreamReversion] = {
            name: StreamReversion.of(effect) for name, effect in found.streams.items()
        }
        return cls(
            found.version,
            found.job_id,
            found.tenant_version,
            found.committed,
            dict(streams),
            found.files_written,
            found.files_deleted,
            found.files_kept,
            found.since,
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing goes back."""
        fates = (item.fate for item in self.streams.values())
        return not (self.files_written or self.files_deleted or any(fate != "kept" for fate in fates))


def reverted_keys(tenant: Tenant, only: Sequence[str] | None, keys: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the rows of the one stream that are taken back, by their keys in the stream's types of now."""
    if only is None or len(only) != 1:
        raise InvalidOption(
            "Keys of rows need one stream.",
            cause="Streams have different keys.",
            remedy="Name the stream in only.",
        )
    stream = tenant.stream(only[0])
    return key_table(stream.schema, stream.key, keys)
