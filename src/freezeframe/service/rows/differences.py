"""Rows that differ between versions, the history of one row, and the restoration of rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field

from freezeframe.engine.frames.python_values import shown_rows
from freezeframe.errors import BadInput, InvalidOption, NotFound, StreamNotFound, TooLarge
from freezeframe.identifiers import StreamName
from freezeframe.script.types.written_values import exact_values, written_values
from freezeframe.service.rows.streams import json_value
from freezeframe.store import Stream, Tenant
from freezeframe.store.diff.comparison import ChangeCursor, Comparison
from freezeframe.store.diff.row_changes import BEFORE, CHANGE_TYPE, RowChanges
from freezeframe.store.diff.tenant_diff import NO_COLUMNS, ColumnChanges, StreamDifference
from freezeframe.store.maintenance import row_history as store
from freezeframe.store.maintenance import row_origins
from freezeframe.store.maintenance.restore import RowSelection, restore_rows
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import Author
from freezeframe.store.schema.columns import stored_key, type_names
from freezeframe.store.schema.type_compatibility import exact_cast
from freezeframe.store.tenant import with_check
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.conditions import TENANT, Conditions, tenant_tag
from freezeframe.store.transaction.scope import Scope


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that differs: `before` is empty for a new one, `after` for a deleted one."""

    fate: Literal["insert", "update", "delete"]
    before: dict[str, Any]
    after: dict[str, Any]
    changed: Annotated[
        tuple[str, ...], Field(description="Of an update: the columns whose values are not the same.")
    ]


def changed_rows(changes: RowChanges) -> Iterator[ChangedRow]:
    """Yield the rows of some changes, in their order."""
    for number, record in enumerate(shown_rows(changes.table)):
        fate = record.pop(CHANGE_TYPE)
        before = record.pop(BEFORE) or {}
        if fate == "delete":
            yield ChangedRow("delete", plain_row(record), {}, ())
            continue
        if fate == "insert":
            yield ChangedRow("insert", {}, plain_row(record), ())
            continue
        differing = tuple(name for name, mask in changes.changed.items() if mask[number])
        yield ChangedRow("update", plain_row(before), plain_row(record), differing)


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as JSON has it."""
    return {name: json_value(value) for name, value in row.items()}


@dataclass(frozen=True, slots=True)
class DifferenceCursor:
    """Where a page begins: between which versions of the tenant, after which change and how many of them.

    ``counts`` are those of all changes, where the first page knew them.
    """

    before: int
    after: int
    place: ChangeCursor
    rows_before: int
    counts: Counts | None


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Some of the rows of a stream that differ, and what became of all of them.

    Pages after the first one tell `changed` of their own rows.
    """

    key: tuple[str, ...]
    columns: Annotated[
        tuple[str, ...], Field(description="The key, then the others: most often changed first.")
    ]
    changed: Annotated[dict[str, int], Field(description="In how many updated rows each column changed.")]
    columns_added: Annotated[dict[str, str], Field(description="Delta's types by name.")]
    columns_dropped: dict[str, str]
    columns_retyped: Annotated[dict[str, tuple[str, str]], Field(description="The old type and the new one.")]
    counts: Counts
    total: Annotated[int, Field(description="How many rows differ, or at least.")]
    is_total_exact: Annotated[
        bool,
        Field(
            description="False: more rows differ than are counted unasked (`count=true`); `counts` are then "
            "0, and `changed` is of the rows of this page."
        ),
    ]
    before: Annotated[int, Field(description="The tenant's version that is compared with `after`.")]
    after: int
    next_cursor: Annotated[str | None, Field(description="Where the next page begins; null: there is none.")]
    rows: tuple[ChangedRow, ...]


@dataclass(frozen=True, slots=True)
class DifferenceRequest:
    """How many rows, how many to leave out first, whether to count all (None: where that is quick)."""

    limit: int = 100
    offset: int = 0
    counts: bool | None = None


def row_difference(
    tenant: Tenant,
    stream: str,
    before: int,
    after: int | None,
    requested: DifferenceRequest,
    cursor: DifferenceCursor | None = None,
) -> tuple[RowDifference, DifferenceCursor | None]:
    """Return the rows of a stream that differ between two versions of the tenant, and the next page's cursor.

    Without ``after`` the newest version counts. Finding a page takes little memory, however many rows differ.
    If more than some 200,000 rows would have to be read, all are counted only if the log has the counts, or
    on request.
    """
    difference = tenant.diff(before, after if cursor is None else cursor.after)
    changed_stream = difference.streams.get(stream)
    if changed_stream is None:
        if stream not in tenant.streams(before) and stream not in tenant.streams(difference.after):
            raise StreamNotFound(
                f"There is no stream {stream!r} at either version.",
                cause="It was created later, deleted earlier, or has another name.",
                remedy="Check the name.",
                stream=stream,
            )
        return _no_difference(difference.before, difference.after), None
    comparison = Comparison(changed_stream.before, changed_stream.after)
    page = comparison.page(requested.offset + requested.limit, None if cursor is None else cursor.place)
    seen = len(page.changes) + (0 if cursor is None else cursor.rows_before)
    changes = page.changes.slice(requested.offset)
    changed = dict[str, int]()
    if cursor is not None:
        counts = cursor.counts
    else:
        counts, changed = _summarize(tenant, changed_stream, difference.after, comparison, requested)
    following = None
    if page.following is not None:
        following = DifferenceCursor(difference.before, difference.after, page.following, seen, counts)
    elif counts is None and cursor is None:
        counts = comparison.counts()
    changed = changed or changes.changed_counts
    snapshot = changed_stream.after or changed_stream.before
    key = stored_key(snapshot.metadata) or () if snapshot else ()
    old, new = _columns(changed_stream.before), _columns(changed_stream.after)
    names = [name for name in (new or old) if name not in key]
    columns = ColumnChanges.between(old, new) if old and new else NO_COLUMNS
    rows = RowDifference(
        key=key,
        columns=(*key, *sorted(names, key=lambda name: -changed.get(name, 0))),
        changed=changed,
        columns_added=dict(columns.added),
        columns_dropped=dict(columns.dropped),
        columns_retyped=dict(columns.retyped),
        counts=counts or Counts(),
        total=counts.changed if counts else seen + int(following is not None),
        is_total_exact=counts is not None or following is None,
        before=difference.before,
        after=difference.after,
        next_cursor=None,
        rows=tuple(changed_rows(changes)),
    )
    return rows, following


def _no_difference(before: int, after: int) -> RowDifference:
    return RowDifference(
        key=(),
        columns=(),
        changed={},
        columns_added={},
        columns_dropped={},
        columns_retyped={},
        counts=Counts(),
        total=0,
        is_total_exact=True,
        before=before,
        after=after,
        next_cursor=None,
        rows=(),
    )


def _summarize(
    tenant: Tenant,
    changed_stream: StreamDifference,
    version: int,
    comparison: Comparison,
    requested: DifferenceRequest,
) -> tuple[Counts | None, dict[str, int]]:
    """Count all changes and changed columns, or take the counts of the one update that made them all."""
    if comparison.is_counted(requested.counts):
        counts, changed = Counts(), Counter[str]()
        for changes in comparison.batches():
            counts += changes.counts
            changed.update(changes.changed_counts)
        return counts, dict(changed)
    last = next(iter(tenant.history(1, until=version, stream=changed_stream.name)), None)
    before, after = (
        -1 if item is None else item.version for item in (changed_stream.before, changed_stream.after)
    )
    if last is None or last.kind not in ("commit", "restore") or before + 1 != after:
        return None, {}
    return replace(last.streams[changed_stream.name], unchanged=0), {}


def _columns(snapshot: Any) -> dict[str, str]:
    """Return the types of a snapshot's columns by name, as Delta names them."""
    return {} if snapshot is None else type_names(snapshot.delta_schema)


KEYS_MAX = 5000
ALL_ROWS_MAX = 200_000


@dataclass(frozen=True, slots=True)
class RowRestoration:
    """What a restoration of rows did, or would do: `committed` says which."""

    version: int
    tenant_version: int
    committed: bool
    key: tuple[str, ...]
    counts: Annotated[Counts, Field(description="Rows brought back (inserted), changed back and removed.")]
    selected: Annotated[int, Field(description="How many rows the request selects.")]
    changed_later: Annotated[
        int | None,
        Field(
            description="Of a dry run with `after`: how many of the rows are not any more what they were at "
            "that version."
        ),
    ]
    rows: Annotated[
        tuple[ChangedRow, ...],
        Field(description=f"The rows that differ from what they were, at most {KEYS_MAX:,} of them."),
    ]


def restored_rows(
    tenant: Tenant, selection: RowSelection, *, dry_run: bool, author: Author, after: int | None = None
) -> RowRestoration:
    """Restore rows to a version of the tenant, as one new version; errors as of the store.

    A dry run counts those rows that are not what they were at ``after``: later changes are reverted too.
    """
    later = None
    if dry_run and after is not None:
        since = replace(selection, version=after)
        later = len(restore_rows(tenant.context, since, dry_run=True).changes)
    done = restore_rows(tenant.context, selection, dry_run=dry_run, author=author)
    return RowRestoration(
        selection.version,
        done.tenant_version,
        done.committed,
        done.changes.key,
        done.changes.counts,
        len(selection.keys),
        later,
        tuple(changed_rows(done.changes.slice(0, KEYS_MAX))),
    )


def select_rows(
    tenant: Tenant,
    stream: str,
    version: int,
    keys: Sequence[Mapping[str, Any]],
    columns: Sequence[str] = (),
    after: int | None = None,
) -> RowSelection:
    """Return the rows (or only these columns of them) by their keys, as of a version of the tenant.

    Without keys they are all that differ between that version and ``after``.
    Each key is an object of the key's columns; values that JSON has no kind for are text, as rows are shown.
    """
    if not keys and after is None:
        raise InvalidOption(
            "No row is named.", remedy="Name keys, or the version (after) whose changes are reverted."
        )
    if len(keys) > KEYS_MAX:
        raise TooLarge(
            f"At most {KEYS_MAX:,} rows are restored by their keys, not {len(keys):,}.",
            cause="The request checks all of them.",
            remedy="Restore the whole stream, or the rows in several steps.",
        )
    found = tenant.stream(stream)
    table = key_table(found.schema, found.key, keys)
    if not keys:
        table = _all_keys(tenant.diff(version, after).streams.get(stream), table)
    return RowSelection(StreamName(stream), version, table, tuple(columns))


def _all_keys(difference: StreamDifference | None, none: pa.Table) -> pa.Table:
    """Return the keys of all rows that differ, in the columns of the table ``none``."""
    found, count = [none], 0
    batches = () if difference is None else Comparison(difference.before, difference.after).batches()
    for changes in batches:
        found.append(_keys_then(changes, none.schema))
        count += len(changes)
        if count > ALL_ROWS_MAX:
            raise TooLarge(
                f"More than {ALL_ROWS_MAX:,} rows differ.",
                cause="Single rows are restored in memory.",
                remedy="Restore the whole stream instead.",
            )
    return pa.concat_tables(found)


def _keys_then(changes: RowChanges, schema: pa.Schema) -> pa.Table:
    """Return the keys of some changes in the stream's key of now."""
    problem = "The stream had another key then."
    if set(changes.key) == set(schema.names):
        problem = "The key has another type since."
        columns = [exact_cast(changes.table[field.name], field.type) for field in schema]
        if None not in columns:
            return pa.table(columns, schema=schema)
    raise InvalidOption(
        problem,
        cause="Its rows cannot be matched by today's key.",
        remedy="Restore the whole stream instead.",
    )


def key_table(columns: pa.Schema, key: Sequence[str], keys: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Keys from JSON in the stream's own types, each once."""
    if not key:
        raise InvalidOption(
            "The stream has no key, so single rows cannot be identified.",
            cause="Its rows were imported or replaced without a key.",
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


def _values(field: pa.Field, values: list[Any]) -> pa.ChunkedArray:
    texts = [None if item is None else item if isinstance(item, str) else json.dumps(item) for item in values]
    written = pa.chunked_array([pa.array(texts, pa.string())])
    typed = written_values(written, field.type)
    if typed is None:
        typed = exact_values(written, field.type, naive_is_utc=True)
    if typed is None:
        raise BadInput(
            f"The column {field.name!r} cannot have the value.",
            cause=f"The column is of type {field.type}.",
            remedy="Send values in the form that the rows have.",
            column=field.name,
        )
    return typed


@dataclass(frozen=True, slots=True)
class RowChange:
    """What a change of some cells of a row did; without a difference there is no new version."""

    tenant_version: int
    committed: bool


def change_cells(
    tenant: Tenant, stream: str, key: Mapping[str, Any], values: Mapping[str, Any], author: Author
) -> RowChange:
    """Give some cells of a row other values, as one version."""
    found = tenant.stream(stream)
    names, columns = found.key, found.schema
    keys = key_table(columns, names, [key])
    for name in values:
        if name in names or name not in columns.names:
            raise BadInput(
                f"The column {name!r} cannot be changed in a row.",
                cause="It is a part of the key." if name in names else "The stream has no such column.",
                remedy="Name columns of the stream that are not its key.",
                column=name,
            )
    scope = Scope(tenant.context)
    state = scope.state(None)
    stored = store.row_history(scope, StreamName(stream), keys, state, 1).row
    if stored is None:
        raise NotFound(
            f"{stream} has no row {json.dumps(dict(key))}.",
            cause="It was deleted meanwhile, or the key is another one.",
            remedy="Look at the row again.",
            code="ROW_NOT_FOUND",
        )
    whole = {**json_value(stored), **values}
    row = pa.table({name: _values(columns.field(name), [whole.get(name)]) for name in columns.names})
    # The whole row is written, for a null to count as a value: nobody may have changed it since it was read.
    bound = with_check(tenant, Conditions(tenant_tag(state)).at_commit(TENANT))
    with bound.job(message=author.message, who=author.who) as job:
        job.stream(stream).update(row, list(names), nulls="overwrite")
    return RowChange(job.receipt.tenant_version, job.receipt.committed)


@dataclass(frozen=True, slots=True)
class RowVersion:
    """What one version of the tenant did to a row."""

    version: int
    timestamp: datetime
    kind: Annotated[
        str,
        Field(description="What made the version: commit, restore and so on, as in the history."),
    ]
    restored: Annotated[int | None, Field(description="Of a restoration, the version that it brought back.")]
    who: str
    job_id: str | None
    message: str
    row: ChangedRow


@dataclass(frozen=True, slots=True)
class RowHistory:
    """A row and the versions that inserted, updated or deleted it, the newest first."""

    key: Annotated[dict[str, Any], Field(description="The key's columns and values.")]
    row: Annotated[dict[str, Any] | None, Field(description="Its values at the newest version looked at.")]
    versions: tuple[RowVersion, ...]
    following: Annotated[
        int | None, Field(description="Pass it as `until` for older versions; null: that is all.")
    ]
    is_whole: Annotated[bool, Field(description="False: older versions are not kept, or had another key.")]


@dataclass(frozen=True, slots=True)
class CellOrigin:
    """A cell, and the version of the tenant that gave it its value; null where that is no longer kept."""

    column: str
    value: Any
    version: int | None
    timestamp: datetime | None
    kind: str | None
    who: str | None
    job_id: str | None
    message: str | None
    script_sha256: Annotated[
        str, Field(description="The hash of the job's script; empty without one, or where it is not known.")
    ]
    source: Annotated[
        row_origins.Source,
        Field(
            description="`file`: the job's input has the value, in the row of the same key. `script`: it has "
            "another one there; `no_row`: it has no such row; `unset`: no value, and no such column. Or why "
            "it is unknown: the input is not kept, cannot be read, or is hidden without `jobs:read`; no job "
            "made the version, or it is no longer kept (`unknown`)."
        ),
    ]
    text: Annotated[str, Field(description="The source in words.")]
    file: Annotated[str | None, Field(description="The file of the job's input with the row of the key.")]
    line: Annotated[int | None, Field(description="Its line there, from 1; null in Parquet.")]
    row: Annotated[int | None, Field(description="Its row there, from 1.")]


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where each cell of a row comes from; empty if there is no such row."""

    key: Annotated[dict[str, Any], Field(description="The key's columns and values.")]
    cells: tuple[CellOrigin, ...]


def row_origin(tenant: Tenant, stream: str, key: str, until: int | None, *, shows_inputs: bool) -> RowOrigin:
    """Return where each cell of a row comes from; ``key`` as of ``row_history``."""
    scope, state, keys = _row_named(tenant, stream, key, until)
    found = row_origins.row_origin(scope, StreamName(stream), keys, state, shows_inputs=shows_inputs)
    named: dict[str, dict[str, Any]] = {
        column: {name: getattr(cell.entry, name, None) for name in _OF_VERSION}
        | {name: getattr(cell, name) for name in _OF_CELL}
        for column, cell in found.cells.items()
    }
    cells = (
        CellOrigin(column, json_value(cell.value), **named[column]) for column, cell in found.cells.items()
    )
    (values,) = shown_rows(keys)
    return RowOrigin(plain_row(values), tuple(cells))


_OF_CELL = ("script_sha256", "source", "text", "file", "line", "row")
_OF_VERSION = ("version", "timestamp", "kind", "who", "job_id", "message")


def _row_named(
    tenant: Tenant, stream: str, key: str, until: int | None
) -> tuple[Scope, TenantState, pa.Table]:
    """Return the scope and the state in which a row is looked for, and its key as a table."""
    scope = Scope(tenant.context)
    state = scope.state(until)
    there = tenant.at(state.version).stream(stream)
    return scope, state, keys_of_texts(there, [key])


def row_history(tenant: Tenant, stream: str, key: str, until: int | None, limit: int) -> RowHistory:
    """Return a row's history; ``key`` is the key's value, or a JSON array of its columns' values."""
    scope, state, keys = _row_named(tenant, stream, key, until)
    found = store.row_history(scope, StreamName(stream), keys, state, limit)
    named = [item.name for item in fields(RowVersion) if item.name != "row"]
    versions = (
        RowVersion(
            **{name: getattr(item.entry, name) for name in named}, row=next(changed_rows(item.change_of_row))
        )
        for item in found.versions
    )
    return RowHistory(
        json_value(found.key), json_value(found.row), tuple(versions), found.following, found.is_whole
    )


def keys_of_texts(stream: Stream, texts: Sequence[str]) -> pa.Table:
    """Return keys of a stream, each given as its value, or as a JSON array of its columns' values."""
    names = stream.key
    keys = [dict(zip(names, _values_of_text(text, len(names)), strict=True)) for text in texts]
    return key_table(stream.schema, names, keys)


def _values_of_text(text: str, count: int) -> list[Any]:
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
