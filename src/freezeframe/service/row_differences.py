"""The rows of a stream that differ between two versions of the tenant, with each changed cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from freezeframe.errors import StreamNotFound
from freezeframe.service.changed_rows import ChangedRow, changed_rows
from freezeframe.store import Tenant
from freezeframe.store.entries import Counts
from freezeframe.store.guard import stored_key


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Some of the rows that differ, and what became of all of them.

    ``columns`` has the columns in which something changed first, ``changed`` counts the updated rows
    in which each of them did.
    """

    key: tuple[str, ...]
    columns: tuple[str, ...]
    changed: dict[str, int]
    columns_added: dict[str, str]
    columns_dropped: dict[str, str]
    counts: Counts
    total: int
    rows: tuple[ChangedRow, ...]


def row_difference(
    tenant: Tenant, stream: str, before: int, after: int | None, offset: int, limit: int
) -> RowDifference:
    """The rows of a stream that differ between two versions of the tenant (``after`` None: now).

    Raises:
        VersionNotFound: one of the versions does not exist or is not kept any more.
        StreamNotFound: the stream is at neither of them.
    """
    found = tenant.diff(before, after).streams.get(stream)
    if found is None:
        if stream not in tenant.streams(before) and stream not in tenant.streams(after):
            raise StreamNotFound(
                f"There is no stream {stream!r} at either version.", remedy="Check the name.", stream=stream
            )
        return RowDifference((), (), {}, {}, {}, Counts(), 0, ())
    table: pa.Table = found.changes("arrow")
    old = _columns(found.before)
    new = _columns(found.after)
    rows = list(changed_rows(table))
    changed = Counter(name for row in rows for name in row.changed)
    kinds = Counter(row.fate for row in rows)
    snapshot = found.after or found.before
    key = stored_key(snapshot.metadata) or () if snapshot else ()
    names = [name for name in (new or old) if name not in key]
    return RowDifference(
        key=key,
        columns=(*key, *sorted(names, key=lambda name: -changed[name])),
        changed=dict(changed),
        columns_added={name: kind for name, kind in new.items() if name not in old} if old and new else {},
        columns_dropped={name: kind for name, kind in old.items() if name not in new} if old and new else {},
        counts=Counts(inserted=kinds["insert"], updated=kinds["update"], deleted=kinds["delete"]),
        total=len(rows),
        rows=tuple(rows[offset : offset + limit]),
    )


def _columns(snapshot: Any) -> dict[str, str]:
    """The types of a snapshot's columns by name, as Delta names them."""
    if snapshot is None:
        return {}
    return {field["name"]: _kind(field["type"]) for field in snapshot.schema["fields"]}


def _kind(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])
