"""History of a row, and its restoration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from freezeframe.errors import BadInput, InvalidOption, TooLarge
from freezeframe.identifiers import StreamName
from freezeframe.script.types.written_values import exact_values
from freezeframe.service.base.json_values import json_value
from freezeframe.service.rows.row_differences import ChangedRow, changed_rows
from freezeframe.store import Tenant
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import Author
from freezeframe.store.transaction.view import View
from freezeframe.store.versions import row_history as store
from freezeframe.store.versions.restore import RowRestoration, RowSelection, restore_rows

# Restores selected rows of a stream, by keys as JSON, at most some thousands.

KEYS_MAX = 5000


@dataclass(frozen=True, slots=True)
class RestoredRows:
    """Result of a row restoration; rows that needed no change are not included."""

    version: int
    tenant_version: int
    committed: bool
    key: tuple[str, ...]
    counts: Counts
    rows: tuple[ChangedRow, ...]


def restored_rows(tenant: Tenant, selection: RowSelection, *, dry_run: bool, author: Author) -> RestoredRows:
    """Restore rows to a version of the tenant, as one new version; errors as of the store."""
    done: RowRestoration = restore_rows(tenant.context, selection, dry_run=dry_run, author=author)
    return RestoredRows(
        selection.version,
        done.tenant_version,
        done.committed,
        done.key,
        done.counts,
        tuple(changed_rows(done.changes)),
    )


def select_rows(
    tenant: Tenant,
    stream: str,
    version: int,
    keys: Sequence[Mapping[str, Any]],
    columns: Sequence[str] = (),
) -> RowSelection:
    """The rows (or only these columns of them) by their keys, as of a version of the tenant.

    Each key is an object of the key's columns; values that JSON has no kind for are text, as rows are shown.
    """
    if not 0 < len(keys) <= KEYS_MAX:
        raise TooLarge(
            f"1 to {KEYS_MAX:,} rows are restored at once, not {len(keys):,}.",
            cause="All of them are looked at within the request.",
            remedy="Restore the whole stream, or the rows in several steps.",
        )
    found = tenant.stream(stream)
    table = key_table(found.columns(), found.key(), keys)
    return RowSelection(StreamName(stream), version, table, tuple(columns))


def key_table(columns: pa.Schema, key: Sequence[str], keys: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Keys from JSON in the stream's own types, each once."""
    if not key:
        raise InvalidOption(
            "The stream has no key, so single rows cannot be told apart.",
            cause="Its rows came by a file that was taken whole, or by an override without a key.",
            remedy="Restore the whole stream instead.",
        )
    for item in keys:
        if set(item) != set(key):
            raise BadInput(
                f"{json.dumps(dict(item))} is not a key of the stream.",
                cause=f"Its key is {', '.join(key)}.",
                remedy="Send an object with exactly these columns for each row.",
            )
    unique = list({json.dumps([item[name] for name in key]): item for item in keys}.values())
    return pa.table({name: _values(columns.field(name), [item[name] for item in unique]) for name in key})


def _values(field: pa.Field, given: list[Any]) -> pa.ChunkedArray:
    texts = [None if item is None else item if isinstance(item, str) else json.dumps(item) for item in given]
    values = exact_values(pa.chunked_array([pa.array(texts, pa.string())]), field.type, naive_is_utc=True)
    if values is None:
        raise BadInput(
            f"A key has a value that the column {field.name!r} cannot have.",
            cause=f"The column is of type {field.type}.",
            remedy="Send values as the rows show them.",
            column=field.name,
        )
    return values


# A row's history as JSON; the row is named by its key's text.


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
    """The row whose key has this text: the value, or a JSON array of the values of the key's columns."""
    scope = View(tenant.context)
    state = scope.state(until)
    there = tenant.at(state.version).stream(stream)
    names = there.key()
    keys = key_table(
        there.columns(), names, [dict(zip(names, _row_history_values(key, len(names)), strict=True))]
    )
    found = store.row_history(scope, StreamName(stream), keys, state, limit)
    return ToldHistory(
        json_value(found.key),
        json_value(found.row),
        tuple(_json_version(version) for version in found.versions),
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


def _row_history_values(text: str, count: int) -> list[Any]:
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
