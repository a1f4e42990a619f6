"""A row's history as JSON; the row is named by its key's text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from freezeframe.errors import BadInput
from freezeframe.identifiers import StreamName
from freezeframe.service.base.json_values import json_value
from freezeframe.service.rows.changed_rows import ChangedRow, changed_rows
from freezeframe.service.rows.row_restoration import key_table
from freezeframe.store import Tenant
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.versions import row_history as store


@dataclass(frozen=True, slots=True)
class ToldVersion:
    """One version of a row's history as JSON."""

    version: int
    timestamp: datetime
    kind: str
    restored: int | None
    who: str
    job_id: str | None
    message: str
    row: ChangedRow


@dataclass(frozen=True, slots=True)
class ToldHistory:
    """``store.versions.row_history.RowHistory`` with values as JSON has them."""

    key: dict[str, Any]
    row: dict[str, Any] | None
    versions: tuple[ToldVersion, ...]
    following: int | None
    is_whole: bool


def row_history(tenant: Tenant, stream: str, key: str, until: int | None, limit: int) -> ToldHistory:
    """The row whose key has this text: the value, or a JSON array of the values of the key's columns.

    Raises:
        StreamNotFound, VersionNotFound: there is no such stream or version.
        InvalidOption: the stream has no key.
        BadInput: the text is not a key of the stream.
    """
    scope = TenantScope(tenant.place)
    state = scope.state(until)
    there = tenant.at(state.version).stream(stream)
    names = there.key()
    keys = key_table(there.columns(), names, [dict(zip(names, _values(key, len(names)), strict=True))])
    found = store.row_history(scope, StreamName(stream), keys, state, limit)
    return ToldHistory(
        json_value(found.key),
        json_value(found.row),
        tuple(_json_version(one) for one in found.versions),
        found.following,
        found.is_whole,
    )


def _json_version(one: store.RowVersion) -> ToldVersion:
    entry, (row,) = one.entry, changed_rows(one.changes)
    return ToldVersion(
        entry.version,
        entry.timestamp,
        entry.kind,
        entry.restored,
        entry.who,
        entry.job_id,
        entry.message,
        row,
    )


def _values(text: str, count: int) -> list[Any]:
    if count == 1 and not text.startswith("["):
        return [text]
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, list) or (count and len(values) != count):
        raise BadInput(
            f"{text!r} is not a key of the stream.",
            cause=f"Its key has {count} columns.",
            remedy="Write the key as a JSON array with a value for each of them.",
        )
    return values if count else []
