"""Pages of a stream's rows, at a cost that does not grow with the stream.

A page is read where it lies (``store.row_pages``). How many rows there are in all comes from the log;
under a condition it takes reading a column, so that it is counted for small streams and on request.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.log.scan.data_skipping import as_expression
from freezeframe.service.rows.streams import Moment
from freezeframe.store import Stream
from freezeframe.store.change_feed import FeedCursor, feed_page, version_before
from freezeframe.store.diff.comparison import ChangeCursor, Comparison
from freezeframe.store.diff.row_pages import RowCursor, matching_count, row_page
from freezeframe.store.schema.columns import arrow_columns, read_system_columns
from freezeframe.store.table.written_rows import json_lines

COUNTED_ROWS_MAX = 200_000
_BATCH_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class PreviewCursor:
    """Where a page begins: after a row of a version of the stream, which so many rows lead up to.

    ``version`` is the tenant's, ``stream_version`` the stream's own. ``total`` is what the page before knew
    of all rows; None: nothing exact.
    """

    version: int
    stream_version: int
    after: RowCursor | None = None
    rows_before: int = 0
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ChangesCursor:
    """Where a page of changes begins: up to which version they are, and after which of them."""

    version: int
    stream_version: int
    after: ChangeCursor
    changes_before: int
    total: int | None


@dataclass(frozen=True, slots=True)
class Preview:
    """Some rows of one version, how many there are in all (or at least), and where the next page begins.

    ``version`` is the tenant's that made the stream so, ``stream_version`` the stream's own.
    """

    rows: pa.Table
    version: int
    stream_version: int
    total: int
    is_total_exact: bool = True
    following: PreviewCursor | ChangesCursor | FeedCursor | None = None

    def json_rows(self) -> Iterator[bytes]:
        """Yield each row as a JSON object: what JSON has no value for is text, as in exported JSON Lines."""
        for batch in json_lines(self.rows, _BATCH_ROWS):
            yield from batch.splitlines()

    def arrow(self) -> bytes:
        """Return the rows as an Arrow IPC stream."""
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, self.rows.schema) as writer:
            writer.write_table(self.rows)
        return sink.getvalue()


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """Which rows and columns: all conditions (SQL texts) must hold; without columns all of them.

    ``counts``: whether to count the rows that meet conditions; None does so for small streams.
    """

    columns: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    offset: int = 0
    limit: int = 100
    counts: bool | None = None


def preview(
    stream: Stream, moment: Moment, requested: RowsRequest, cursor: PreviewCursor | None = None
) -> Preview:
    """Return a page of the rows at a moment, in the order of the key, or without a key of the files.

    With ``cursor`` the page after another one, of the same version whatever came since.
    """
    snapshot = _snapshot(stream, moment, cursor)
    cursor = cursor or PreviewCursor(stream.scope.version_that_made(snapshot), snapshot.version)
    schema = read_system_columns(snapshot.metadata).removed_from(arrow_columns(snapshot.delta_schema))
    expression = as_expression(requested.where, schema) if requested.where else None
    page = row_page(
        snapshot,
        requested.columns or None,
        expression,
        after=cursor.after,
        offset=requested.offset,
        limit=requested.limit,
    )
    total = cursor.total
    if total is None and _is_counted(snapshot, requested):
        total = matching_count(snapshot, expression)
    seen = cursor.rows_before + (requested.offset + len(page.rows) if page.cursors else 0)
    if not page.has_more and (page.cursors or not requested.offset):
        total = seen
    following = (
        PreviewCursor(cursor.version, cursor.stream_version, page.cursors[-1], seen, total)
        if page.has_more and page.cursors
        else None
    )
    total_shown = seen + int(page.has_more) if total is None else total
    return Preview(page.rows, cursor.version, snapshot.version, total_shown, total is not None, following)


def change_preview(
    stream: Stream,
    since: int | None,
    until: int | None,
    limit: int = 100,
    cursor: ChangesCursor | None = None,
    *,
    counts: bool | None = None,
) -> Preview:
    """Return a page of what became of the rows between two versions of the tenant; see ``Stream.changes``.

    ``counts``: whether to count all changes; None does so where few rows have to be read.
    """
    after = (
        stream.snapshot(version=until)
        if cursor is None
        else stream.snapshot(stream_version=cursor.stream_version)
    )
    before = stream.scope.table_before(StreamName(stream.name), since)
    version = stream.scope.version_that_made(after) if cursor is None else cursor.version
    comparison = Comparison(before, after)
    page = comparison.page(limit, None if cursor is None else cursor.after)
    seen = len(page.changes) + (0 if cursor is None else cursor.changes_before)
    total = None if cursor is None else cursor.total
    if page.following is None:
        total = seen
    elif total is None and comparison.is_counted(counts):
        total = comparison.counts().changed
    following = None
    if page.following is not None:
        following = ChangesCursor(version, after.version, page.following, seen, total)
    total_shown = seen if total is None else total
    return Preview(page.changes.table, version, after.version, total_shown, total is not None, following)


def feed_preview(
    stream: Stream, start: int, end: int | None, limit: int, cursor: FeedCursor | None = None
) -> Preview:
    """Return a page of what the versions from ``start`` to ``end`` changed, one by one; see ``feed_page``."""
    scope = stream.scope
    cursor = cursor or FeedCursor(version_before(scope, start), scope.state(end).version)
    page = feed_page(scope, StreamName(stream.name), cursor, limit)
    following = page.following
    total = cursor.rows_before + len(page.rows) + (following is not None)
    return Preview(page.rows, cursor.until, page.stream_version, total, following is None, following)


def _snapshot(stream: Stream, moment: Moment, cursor: PreviewCursor | None) -> Snapshot:
    is_now = moment == Moment()
    requested = Moment(stream_version=cursor.stream_version) if cursor is not None and is_now else moment
    snapshot = stream.snapshot(**requested.arguments())
    if cursor is not None and snapshot.version != cursor.stream_version:
        raise InvalidOption(
            "The cursor belongs to another version of the stream.",
            cause="A newer version exists for the requested time.",
            remedy="Start again with the first page.",
        )
    return snapshot


def _is_counted(snapshot: Snapshot, requested: RowsRequest) -> bool:
    if not requested.where and not read_system_columns(snapshot.metadata).has_history:
        return True  # the log knows
    if requested.counts is not None:
        return requested.counts
    return rows.count(snapshot) <= COUNTED_ROWS_MAX
