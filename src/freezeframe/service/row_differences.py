"""The rows of a stream that differ between two versions of the tenant, with each changed cell."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from freezeframe.errors import StreamNotFound
from freezeframe.store import Tenant
from freezeframe.store.changes import BEFORE, CHANGE_TYPE
from freezeframe.store.entries import Counts
from freezeframe.store.guard import stored_key

RowFate = Literal["insert", "update", "delete"]
_SAFE_INTEGER = 2**53


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row at both versions: ``before`` is empty for a new one, ``after`` for a deleted one."""

    fate: RowFate
    before: dict[str, Any]
    after: dict[str, Any]
    changed: tuple[str, ...]
    """Of an update: the columns whose values are not the same."""


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
    rows = list(_rows(table))
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


def _rows(table: pa.Table) -> Iterator[ChangedRow]:
    for record in table.to_pylist():
        fate = record.pop(CHANGE_TYPE)
        before = record.pop(BEFORE) or {}
        if fate == "delete":
            yield ChangedRow("delete", _plain_row(record), {}, ())
            continue
        if fate == "insert":
            yield ChangedRow("insert", {}, _plain_row(record), ())
            continue
        differing = tuple(name for name, value in record.items() if not _same(before.get(name), value))
        yield ChangedRow("update", _plain_row(before), _plain_row(record), differing)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other)


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """The value in JSON; what JSON or its readers have no exact value for is text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) < _SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
