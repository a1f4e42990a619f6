"""Updates of a stream as packages built on this one make them, and the frames that come of them.

Scripts call the methods of ``Stream``; each function here takes a stream first.
"""

from __future__ import annotations

import contextlib
import functools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from freezeframe.clock import now_ms
from freezeframe.engine.frames.frames import Library, require_library, to_frame
from freezeframe.engine.frames.rows import Rows
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.scan.held_columns import columns_held
from freezeframe.store.diff.row_diff import CHANGE_TYPE, snapshot_changes
from freezeframe.store.model.receipt import Receipt
from freezeframe.store.model.update_options import KeyedUpdate, Update
from freezeframe.store.schema.columns import stored_key, stored_notes
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.table.reader import as_spark, previewed_frame, read_sorted, row_columns, sort_frame
from freezeframe.store.tenant_log.history import Point
from freezeframe.store.tenant_log.lease import Lease
from freezeframe.store.tenant_log.roll_forward import require_no_case_twin
from freezeframe.store.transaction.staged import StagedTable
from freezeframe.store.updates.update import ChangeResult

if TYPE_CHECKING:
    from freezeframe.store.stream import StreamReader

_NO_CHANGES = pa.schema([(CHANGE_TYPE, pa.string())])


def apply_update(stream: StreamReader, rows: Rows, update: Update | KeyedUpdate) -> Receipt:
    """Carry out an ``Update``; errors as of ``Stream.update``."""
    name = StreamName(stream.name)
    with stream.view.change(name) as transaction:
        receipt = transaction.update(name, rows, update)
    if transaction.receipt is not None:
        receipt = transaction.receipt.streams[stream.name]
    return with_source(stream, receipt)


def with_source(stream: StreamReader, receipt: Receipt) -> Receipt:
    """Return the receipt with the way to the rows that its update changed."""
    return replace(receipt, source=functools.partial(changed_by, stream, receipt))


@contextlib.contextmanager
def staged_update(
    stream: StreamReader, rows: Rows, update: Update | KeyedUpdate
) -> Iterator[tuple[StagedTable, ChangeResult]]:
    """Stage an update that is never committed; its files are deleted at the end of the block."""
    view, name = stream.view, StreamName(stream.name)
    state = view.state()
    require_no_case_twin(state.streams, name)
    identity = CommitIdentity(uuid.uuid4().hex, state.next_timestamp_ms(now_ms()))
    table = StagedTable(name, view.base(name), identity, view.context.engine, view.settings)
    lease = Lease(view.storage, identity.write_id, None, view.settings.lease_heartbeat_seconds)
    try:
        if state.version >= 0:  # a tenant without a version has no gc
            lease.hold()
        with table.take_in(rows, table.with_key(update)) as change:
            result = table.apply(change.apply)
        yield table, result
    finally:
        table.discard()
        lease.release()


def staged_changes(table: StagedTable) -> pa.Table:
    """Return the row changes of a staged update."""
    after = table.view()
    return _NO_CHANGES.empty_table() if after.version < 0 else changes_between(table.base, after)


def changed_by(stream: StreamReader, receipt: Receipt, as_: Library, dtype_backend: str | None = None) -> Any:
    """Return the rows that an update of one version changed, as ``Stream.changes`` gives them."""
    require_library(as_, dtype_backend)
    until = receipt.stream_version
    if until < 0:  # nothing came and nothing was there
        changed = _NO_CHANGES.empty_table()
    else:
        since = until - 1 if receipt.committed else until
        after = stream.snapshot(stream_version=until)
        changed = changes_between(None if since < 0 else stream.snapshot(stream_version=since), after)
    return rows_as(stream, changed, as_, dtype_backend)


def rows_as(stream: StreamReader, rows: pa.Table, as_: Library, dtype_backend: str | None = None) -> Any:
    """Return rows of the stream as a frame; without ``dtype_backend`` the settings say pandas' types."""
    default = stream.view.settings.dtype_backend if as_ == "pandas" else None
    return to_frame(rows, as_, dtype_backend, default)


def update_and_read(
    stream: StreamReader,
    rows: Rows,
    update: Update | KeyedUpdate,
    sort_columns: Sequence[str] = (),
    dtype_backend: str | None = None,
) -> Any:
    """Carry out an ``Update`` and return ``frame_after`` it; both need the stored cells."""
    if rows.is_spark:
        return frame_after(stream, apply_update(stream, rows, update), rows, sort_columns, dtype_backend)
    with columns_held() as held:
        receipt = apply_update(stream, rows, update)
        held.releases = True
        return frame_after(stream, receipt, rows, sort_columns, dtype_backend)


def frame_after(
    stream: StreamReader,
    receipt: Receipt,
    rows: Rows,
    sort_columns: Sequence[str] = (),
    dtype_backend: str | None = None,
) -> Any:
    """Return the whole content after an update with ``rows``, as a frame of their library.

    It is sorted by columns or by key; ``dtype_backend`` as of ``Stream.read``.
    """
    if receipt.stream_version < 0:  # the update had no rows, and the stream none before
        return rows.frame
    snapshot = stream.snapshot(stream_version=receipt.stream_version)
    if rows.is_spark:
        content = as_spark(snapshot, stream.view.context.engine, like=rows.frame)
        return sort_frame(content, _order(snapshot, sort_columns), snapshot)
    content = _sorted_rows(snapshot, sort_columns)
    return rows.like_given(content, dtype_backend, stream.view.settings.dtype_backend)


def preview_frame(
    stream: StreamReader,
    rows: Rows,
    update: Update,
    sort_columns: Sequence[str] = (),
    dtype_backend: str | None = None,
) -> Any:
    """Return the frame that ``frame_after`` would return after the update; nothing is committed."""
    require_library(rows.library, dtype_backend)
    with staged_update(stream, rows, update) as (table, _):
        after = table.view()
        if rows.is_spark:
            content = previewed_frame(rows.frame, table.base, after, stream.view.context.engine)
            return sort_frame(content, _order(after, sort_columns))
        content = _sorted_rows(after, sort_columns)
    return rows.like_given(content, dtype_backend, stream.view.settings.dtype_backend)


def stream_notes(stream: StreamReader) -> dict[str, str]:
    """Return the notes that updates stored with the stream (``Update.notes``), by name."""
    return stored_notes(stream.snapshot().metadata) if stream.stream_version >= 0 else {}


def table_before(stream: StreamReader, since: Point | None) -> Snapshot | None:
    """Return the stream's table at a version of the tenant; None where the stream did not exist."""
    if since is None:
        return None
    state = stream.view.state(since)
    return stream.view.snapshot(StreamName(stream.name), state) if stream.name in state.streams else None


def changes_between(before: Snapshot | None, after: Snapshot) -> pa.Table:
    """Return the row changes between two snapshots (``before`` None: all are inserts)."""
    return snapshot_changes(before, after, stored_key(after.metadata) or ())


def _order(snapshot: Snapshot, sort_columns: Sequence[str]) -> tuple[str, ...]:
    """Return the sort columns that the rows have, without a query to Spark."""
    known = set(row_columns(snapshot).names)
    names = tuple(sort_columns) or stored_key(snapshot.metadata) or ()
    return tuple(name for name in names if name in known)


def _sorted_rows(snapshot: Snapshot, sort_columns: Sequence[str]) -> pa.Table:
    return read_sorted(snapshot, _order(snapshot, sort_columns))
