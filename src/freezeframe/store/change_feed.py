"""The change feed of a stream: what each version of the tenant changed, in the words of Delta and Spark.

A comparison of two versions (``diff.comparison``) has a row for each row that differs, with the old one in
``_before``. A feed has the versions one by one, and an update as two rows: it is made of these comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.clock import moment
from freezeframe.errors import InvalidOption, SchemaDriftError, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.delta_log import CHANGE_COLUMNS
from freezeframe.store.diff.comparison import ChangeCursor, Comparison
from freezeframe.store.diff.row_changes import CHANGE_TYPE, DELETE, INSERT, UPDATE, RowChanges
from freezeframe.store.model.directory import table_folder
from freezeframe.store.model.update_options import exclusive_options
from freezeframe.store.table.reader import in_schema, read_row_batches, row_columns
from freezeframe.store.tenant_log.history import HistoryEntry, Point, Version, history
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import Scope

_VERSIONS_AT_ONCE = 64
UPDATE_BEFORE, UPDATE_AFTER = "update_preimage", "update_postimage"


_SIDES = (
    ("before", {UPDATE: UPDATE_BEFORE, DELETE: DELETE}),
    ("after", {UPDATE: UPDATE_AFTER, INSERT: INSERT}),
)
"""Of which changes a feed has which side, and under which words."""


def require_range(since: object, until: object, starting_version: object, ending_version: object) -> None:
    """Refuse a call that mixes the words of a feed with those of before, or names the end of a feed alone."""
    named = {"starting_version": starting_version, "ending_version": ending_version}
    known = [name for name, version in named.items() if version is not None]
    if known and (since is not None or until is not None):
        raise exclusive_options([known[0], "since or until"], "These are the words of before for them.")
    if known and starting_version is None:
        raise InvalidOption("ending_version alone names no changes.", remedy="Pass starting_version too.")


def change_feed(scope: Scope, name: StreamName, start: Point, end: Point | None) -> pa.Table:
    """Return the rows that the versions from ``start`` to ``end`` (None: the newest) changed, both included.

    The columns are those at ``end``, and ``CHANGE_COLUMNS``.

    Raises:
        StreamNotFound: the stream was neither there nor dropped or released before.
        VersionNotFound: there is no such version, or one between is no longer kept.
        SchemaDriftError: the columns at ``end`` cannot hold an earlier value.
    """
    state = scope.state(scope.state(end).version)  # what is committed, in a job as well
    since = version_before(scope, start)
    _, schema = _last(scope, name, state)
    parts = [schema.empty_table()]
    for entry in changed_versions(scope, name, since, state.version):
        parts += [fitted(rows, schema, entry.version) for rows in changed_rows(scope, name, entry.version)]
    return pa.concat_tables(parts)


@dataclass(frozen=True, slots=True)
class FeedCursor:
    """Where a page of a feed begins: behind ``since``, after a change of the version that follows it."""

    since: int
    until: int
    after: ChangeCursor | None = None
    rows_before: int = 0


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Rows of a feed, the stream's version that their columns are of, and where the next page begins."""

    rows: pa.Table
    stream_version: int
    following: FeedCursor | None


def feed_page(scope: Scope, name: StreamName, cursor: FeedCursor, limit: int) -> FeedPage:
    """Return the first rows of ``change_feed`` behind a cursor, those of ``limit`` changes at most.

    An update is one change of two rows, which follow each other. Reads little more than a page's rows.

    Raises:
        TooLarge: too many rows without a common key differ in one version.
        StreamNotFound, VersionNotFound, SchemaDriftError: as for ``change_feed``.
    """
    last, schema = _last(scope, name, scope.state(cursor.until))
    parts, left, after = [schema.empty_table()], limit, cursor.after
    following: tuple[int, ChangeCursor | None] | None = None
    for entry in changed_versions(scope, name, cursor.since, cursor.until):
        if not left:
            following = entry.version - 1, None
            break
        sides = _sides(scope, name, entry.version)
        if sides == (None, None):  # made and dropped at once
            continue
        page = Comparison(*sides).page(left, after)
        fates = page.changes.table[CHANGE_TYPE]
        tables = _feed_rows(page.changes, scope.state(entry.version))
        rows = pa.concat_tables([fitted(table, schema, entry.version) for table in tables])
        order = [
            2 * np.flatnonzero(pc.is_in(fates, pa.array(list(words)))) + place
            for place, (_, words) in enumerate(_SIDES)
        ]
        parts.append(rows.take(np.argsort(np.concatenate(order))))
        if page.following is not None:
            following = entry.version - 1, page.following
            break
        left, after = left - len(page.changes), None
    found = pa.concat_tables(parts)
    seen = cursor.rows_before + len(found)
    next_page = None if following is None else FeedCursor(following[0], cursor.until, following[1], seen)
    return FeedPage(found, last.version, next_page)


def version_before(scope: Scope, start: Point) -> int:
    """Return the version after which the changes from ``start`` on come; ``start`` may be the next version.

    Raises:
        VersionNotFound: there is no such version, or it is no longer kept.
    """
    newest = scope.log.current_state().version
    return newest if Version.parse(start).number == newest + 1 else scope.state(start).version - 1


def changed_versions(scope: Scope, name: StreamName, since: int, until: int) -> Iterator[HistoryEntry]:
    """Yield the versions after ``since`` up to ``until`` that changed the stream, the oldest first.

    Raises:
        VersionNotFound: one of them is no longer kept.
        InvalidOption: they are no range.
    """
    newest = scope.log.current_state()
    if since > until:
        raise InvalidOption(
            f"The changes cannot begin with version {since + 1} and end with version {until}.",
            remedy="Name the earlier version first.",
        )
    # A tagged version below the floor is listed, those between are not.
    if since != until and max(since, 0) < newest.floor:
        raise VersionNotFound(
            f"The changes after version {since} of the tenant are no longer kept.",
            cause=f"Its retention or an erasure deleted them; versions from {newest.floor} on are kept.",
            remedy=f"Read the rows of now, and from version {newest.floor + 1} on their changes; "
            "a stream of Spark begins anew with another checkpoint.",
            version=since,
        )
    # A log is read downwards: in pieces, each twice as long, because who reads a page ends early.
    count = _VERSIONS_AT_ONCE
    while since < until:
        top = min(since + count, until)
        piece = list(history(scope.log, newest, top - since, until=top))
        yield from (entry for entry in reversed(piece) if entry.version > since and _is_named(entry, name))
        since, count = top, 2 * count


def deletes_rows(scope: Scope, name: StreamName, entry: HistoryEntry) -> bool:
    """Return whether a version deletes rows of the stream, or takes it away."""
    if entry.kind != "external":
        return str(name) in entry.streams_dropped or entry.streams[str(name)].deleted > 0
    # A release has no counts, nor has what another program did.
    before, after = _sides(scope, name, entry.version)
    if before is None or after is None:
        return before is not None
    found = changed_rows(scope, name, entry.version)
    return any(pc.any(pc.equal(rows[CHANGE_TYPE], DELETE)).as_py() for rows in found)


def changed_rows(scope: Scope, name: StreamName, version: int) -> Iterator[pa.Table]:
    """Yield the rows that a version changed, old values in their own types, with ``CHANGE_COLUMNS``."""
    before, after = _sides(scope, name, version)
    state = scope.state(version)
    if after is None:  # it was dropped or released
        for batch in () if before is None else read_row_batches(before):
            yield _marked(pa.Table.from_batches([batch]), DELETE, state)
        return
    changes = scope.reading(lambda: RowChanges(Comparison(before, after).table()))
    yield from _feed_rows(changes, state)


def _feed_rows(changes: RowChanges, state: TenantState) -> Iterator[pa.Table]:
    """Yield the rows before and those after of changes that a version made."""
    fates = changes.table[CHANGE_TYPE]
    for side, words in _SIDES:
        part = changes.filter(pc.is_in(fates, pa.array(list(words))))
        own = part.table[CHANGE_TYPE]
        told = pc.if_else(pc.equal(own, UPDATE), words[UPDATE], own)
        yield _marked(getattr(part, side), told, state)


def _marked(rows: pa.Table, words: str | pa.ChunkedArray, state: TenantState) -> pa.Table:
    """Return rows with ``CHANGE_COLUMNS``."""
    values = (words, state.version, moment(state.timestamp_ms))
    for field, value in zip(CHANGE_COLUMNS, values, strict=True):
        is_one = not isinstance(value, pa.ChunkedArray)
        rows = rows.append_column(
            field, pa.repeat(pa.scalar(value, field.type), len(rows)) if is_one else value
        )
    return rows


def _last(scope: Scope, name: StreamName, state: TenantState) -> tuple[Snapshot, pa.Schema]:
    """Return the stream's last table at a state, and the columns of a feed that ends there."""
    last = last_table(scope, name, state) or scope.snapshot(name, state)
    return last, with_own_columns(row_columns(last), CHANGE_COLUMNS, name)


def last_table(scope: Scope, name: StreamName, state: TenantState) -> Snapshot | None:
    """Return the stream's table at a state, or of before its drop or release; None: none is kept."""
    if str(name) in state.streams:
        return scope.snapshot(name, state)
    newest = scope.log.current_state()
    has_table = next(scope.storage.list_from(f"{table_folder(name)}/_delta_log"), None) is not None
    entries = history(scope.log, newest, until=state.version) if has_table else ()
    # The newest version that names it is the one with which it went.
    before = next((entry.version - 1 for entry in entries if _is_named(entry, name)), -1)
    return scope.snapshot(name, scope.state(before)) if before >= 0 and newest.is_listed(before) else None


def with_own_columns(columns: pa.Schema, own: Sequence[pa.Field], name: object) -> pa.Schema:
    """Return columns of a stream with those that are added to them.

    Raises:
        InvalidOption: the stream has one of these names itself.
    """
    taken = next((field.name for field in own if field.name in columns.names), None)
    if taken is not None:
        raise InvalidOption(
            f"The stream {str(name)!r} has a column {taken!r} of its own.",
            cause="A column of this name is added to its rows.",
            remedy="Rename the stream's column.",
            column=taken,
        )
    return pa.schema([*columns, *own])


def fitted(rows: pa.Table, schema: pa.Schema, version: int) -> pa.Table:
    """Return rows of a version in the columns of a later one.

    Raises:
        SchemaDriftError: these cannot hold a value.
    """
    try:
        return in_schema(rows, schema)
    except pa.ArrowException as error:
        raise SchemaDriftError(
            f"A value of version {version} does not fit the columns of the last version that is read.",
            cause=str(error),
            remedy=f"Read the changes up to version {version} and those from {version + 1} on one by one.",
            version=version,
        ) from error


def _is_named(entry: HistoryEntry, name: StreamName) -> bool:
    return str(name) in entry.streams or str(name) in entry.streams_dropped


def _sides(scope: Scope, name: StreamName, version: int) -> tuple[Snapshot | None, Snapshot | None]:
    """Return the stream's table before a version of the tenant and at it; None: it is not there."""
    states = [scope.state(at) if at >= 0 else None for at in (version - 1, version)]
    before, after = (
        None if state is None or str(name) not in state.streams else scope.snapshot(name, state)
        for state in states
    )
    return before, after
