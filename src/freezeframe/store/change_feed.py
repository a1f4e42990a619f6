"""The change feed of a stream: what each version of the tenant changed, in the words of Delta and Spark.

A comparison of two versions (``diff.comparison``) has a row for each row that differs, with the old one in
``_before``. A feed has the versions one by one, and an update as two rows: it is made of these comparisons.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.clock import moment
from freezeframe.errors import InvalidOption, SchemaDriftError, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.delta_log import CHANGE_COLUMNS
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.diff.row_changes import CHANGE_TYPE, DELETE, INSERT, UPDATE, RowChanges
from freezeframe.store.model.directory import table_folder
from freezeframe.store.table.reader import in_schema, read_row_batches, row_columns
from freezeframe.store.tenant_log.history import HistoryEntry, Point, Version, history
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import Scope

UPDATE_BEFORE, UPDATE_AFTER = "update_preimage", "update_postimage"


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
    last = last_table(scope, name, state) or scope.snapshot(name, state)
    schema = with_own_columns(row_columns(last), CHANGE_COLUMNS, name)
    parts = [schema.empty_table()]
    for entry in changed_versions(scope, name, since, state.version):
        parts += [fitted(rows, schema, entry.version) for rows in changed_rows(scope, name, entry.version)]
    return pa.concat_tables(parts)


def version_before(scope: Scope, start: Point) -> int:
    """Return the version after which the changes from ``start`` on come; ``start`` may be the next version.

    Raises:
        VersionNotFound: there is no such version, or it is no longer kept.
    """
    newest = scope.log.current_state().version
    return newest if Version.parse(start).number == newest + 1 else scope.state(start).version - 1


def changed_versions(scope: Scope, name: StreamName, since: int, until: int) -> list[HistoryEntry]:
    """Return the versions after ``since`` up to ``until`` that changed the stream, the oldest first.

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
    newer = itertools.takewhile(lambda entry: entry.version > since, history(scope.log, newest, until=until))
    return [entry for entry in newer if _is_named(entry, name)][::-1]


def deletes_rows(scope: Scope, name: StreamName, entry: HistoryEntry) -> bool:
    """Return whether a version deletes rows of the stream, or takes it away."""
    if entry.kind != "external":
        return str(name) in entry.streams_dropped or entry.streams[str(name)].deleted > 0
    # A release has no counts, nor has what another program did.
    before, after = (_table(scope, name, at) for at in (entry.version - 1, entry.version))
    if before is None or after is None:
        return before is not None
    found = changed_rows(scope, name, entry.version)
    return any(pc.any(pc.equal(rows[CHANGE_TYPE], DELETE)).as_py() for rows in found)


def changed_rows(scope: Scope, name: StreamName, version: int) -> Iterator[pa.Table]:
    """Yield the rows that a version changed, old values in their own types, with ``CHANGE_COLUMNS``."""
    before, after = (_table(scope, name, at) for at in (version - 1, version))
    made = moment(scope.state(version).timestamp_ms)

    def marked(rows: pa.Table, words: str | pa.ChunkedArray) -> pa.Table:
        for field, value in zip(CHANGE_COLUMNS, (words, version, made), strict=True):
            is_one = not isinstance(value, pa.ChunkedArray)
            held = pa.repeat(pa.scalar(value, field.type), len(rows)) if is_one else value
            rows = rows.append_column(field, held)
        return rows

    if after is None:  # it was dropped or released
        for batch in () if before is None else read_row_batches(before):
            yield marked(pa.Table.from_batches([batch]), DELETE)
        return
    changes = scope.reading(lambda: RowChanges(Comparison(before, after).table()))
    for words, side in (({UPDATE: UPDATE_BEFORE, DELETE: DELETE}, "before"), (_AFTER, "after")):
        fates = changes.table[CHANGE_TYPE]
        part = changes.filter(pc.is_in(fates, pa.array(list(words))))
        fates = part.table[CHANGE_TYPE]
        told = pc.if_else(pc.equal(fates, UPDATE), words[UPDATE], fates)
        yield marked(getattr(part, side), told)


_AFTER = {INSERT: INSERT, UPDATE: UPDATE_AFTER}


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


def _table(scope: Scope, name: StreamName, version: int) -> Snapshot | None:
    state = scope.state(version) if version >= 0 else None
    return None if state is None or str(name) not in state.streams else scope.snapshot(name, state)
