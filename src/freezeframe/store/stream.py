"""A stream of a tenant: a named, keyed table."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack, cast

import pyarrow as pa

from freezeframe.clock import now_ms
from freezeframe.engine.frames.frames import DtypeBackend, FrameKind, kind_of
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.store.diff.row_diff import CHANGE_TYPE, snapshot_changes
from freezeframe.store.maintenance.repair import Repair, release, repair
from freezeframe.store.maintenance.retyping import Retyping, retype
from freezeframe.store.maintenance.row_history import RowHistory, row_history
from freezeframe.store.model.receipt import Receipt, html_table
from freezeframe.store.model.update_options import (
    KeyedUpdate,
    Names,
    Update,
    UpdateOptions,
    parse_update,
)
from freezeframe.store.schema.columns import (
    VALID_FROM,
    arrow_columns,
    read_system_columns,
    stored_key,
    stored_notes,
)
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.table.keys import key_of_row
from freezeframe.store.table.reader import (
    as_kind,
    as_spark,
    previewed_frame,
    read_row_batches,
    read_rows,
    require_kind,
    row_columns,
    row_count,
    sort_frame,
    sort_rows,
)
from freezeframe.store.tenant_log.history import Point, require_one_version
from freezeframe.store.tenant_log.lease import Lease
from freezeframe.store.tenant_log.roll_forward import require_no_case_twin
from freezeframe.store.transaction.staged import StagedTable
from freezeframe.store.transaction.view import View
from freezeframe.store.updates.update import ChangeResult, Explanation, explain_state, explain_update

_NO_CHANGES = pa.schema([(CHANGE_TYPE, pa.string())])


class StreamReader:
    """Reads a stream in a view of its tenant: now, in an open job, or at a past version."""

    def __init__(self, name: StreamName, view: View) -> None:
        self._name = name
        self._view = view

    @property
    def name(self) -> str:
        """The stream's name."""
        return str(self._name)

    def __repr__(self) -> str:
        return f"Stream({self.name!r})"

    def _repr_html_(self) -> str:
        """Return the columns in a notebook."""
        if self.stream_version() < 0:
            return html_table(f"{self.name}, before its first update", ("column", "type"), ())
        key = self.key()
        caption = f"{self.name}, {self.row_count()} rows, key {', '.join(key) or 'none'}"
        return html_table(
            f"{caption}, version {self.version()}",
            ("column", "type"),
            [(field.name, field.type) for field in self.columns()],
        )

    def read(
        self,
        *,
        version: Point | None = None,
        as_of: datetime | str | None = None,
        stream_version: int | None = None,
        tenant_version: int | None = None,
        columns: Sequence[str] | None = None,
        where: Any = None,
        history: bool = False,
        as_: FrameKind = "pandas",
        dtype_backend: DtypeBackend | None = None,
    ) -> Any:
        """Return the rows now, at a version of the tenant or a moment, or at a version of the stream's own.

        ``version`` is a number, a tag or a moment; ``tenant_version`` is the same. ``stream_version`` counts
        the changes of this stream alone. ``dtype_backend`` says which types the columns of a pandas frame
        have, as in pandas; without it the setting of that name does.

        With ``history`` those of the past as well, of a stream that keeps them: each with
        ``_valid_from`` and ``_valid_to``, which is null for a row that holds now. They are sorted by
        the columns of the key that are read; a Spark frame is not.

        Raises:
            StreamNotFound: there is no such stream (then).
            VersionNotFound: there is no such version or moment.
            InvalidOption: more than one of them is given, or the stream has no history.
        """
        require_kind(as_, dtype_backend)
        self._view.note_read(self._name)
        snapshot = self._snapshot(version, as_of, stream_version, tenant_version)
        if history and not read_system_columns(snapshot.metadata).has_history:
            raise InvalidOption(
                f"The stream {self.name!r} keeps no history of its rows.",
                cause="It was never updated with history='scd2'.",
                remedy="Leave history out; earlier versions are read with version= or as_of=.",
            )
        if as_ == "spark":
            if where is not None:
                raise InvalidOption(
                    "where cannot be used with as_='spark'.",
                    remedy="Filter the Spark frame: frame.where('…').",
                )
            return as_spark(snapshot, self._view.context.engine, columns, history=history)
        order = (*(stored_key(snapshot.metadata) or ()), *((VALID_FROM,) if history else ()))
        rows = sort_rows(read_rows(snapshot, columns, where, history=history), order)
        return as_kind(rows, as_, self._dtype_backend(as_, dtype_backend))

    def read_batches(
        self, *, version: Point | None = None, stream_version: int | None = None
    ) -> pa.RecordBatchReader:
        """Return the rows of ``read`` as batches in no order, for streams larger than memory.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
            CorruptData: a file is missing or damaged, when the reading comes to it.
        """
        self._view.note_read(self._name)
        return read_row_batches(self._snapshot(version, None, stream_version))

    def snapshot(
        self,
        *,
        version: Point | None = None,
        as_of: datetime | str | None = None,
        stream_version: int | None = None,
        tenant_version: int | None = None,
    ) -> Snapshot:
        """Return the stream's table snapshot at one version; errors as of ``read``."""
        self._view.note_read(self._name)
        return self._snapshot(version, as_of, stream_version, tenant_version)

    def changes(
        self,
        since: Point | None = None,
        until: Point | None = None,
        *,
        as_: FrameKind = "pandas",
        dtype_backend: DtypeBackend | None = None,
    ) -> Any:
        """Return the row changes between two versions of the tenant (``since`` None: from the beginning).

        One row a change: ``_change_type`` (``insert``, ``update``, ``delete``), the columns as they
        are at ``until`` (default: now; for a deletion the deleted values) and ``_before``, a struct
        of the old values. ``as_`` is ``"pandas"``, ``"polars"`` or ``"arrow"``; ``dtype_backend`` as of
        ``read``.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
        """
        require_kind(as_, dtype_backend)
        self._view.note_read(self._name)
        before = None if since is None else self.before(since)
        changed = changes_between(before, self._snapshot(until))
        return as_kind(changed, as_, self._dtype_backend(as_, dtype_backend))

    def _dtype_backend(self, as_: str, requested: str | None) -> str | None:
        """Return the requested backend, or the one of the settings."""
        return requested or (self._view.settings.dtype_backend if as_ == "pandas" else None)

    def row_history(self, key: Any, *, until: Point | None = None, limit: int | None = None) -> RowHistory:
        """Return the row with a key, and the versions of the tenant that inserted, updated or deleted it.

        ``key`` is the key's value; of a key of several columns a tuple, or a mapping by name. The newest
        ``limit`` versions (None: all) up to ``until`` (a version, tag or moment; None: now) are given.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
            BadInput: ``key`` is not a key of the stream.
            InvalidOption: the stream has no key.
        """
        snapshot = self._snapshot(until)
        keys = key_of_row(arrow_columns(snapshot.schema), stored_key(snapshot.metadata) or (), key)
        state = self._view.state(self._view.state(until).version)  # what is committed, in a job as well
        return row_history(self._view, self._name, keys, state, limit)

    def before(self, since: Point) -> Snapshot | None:
        """Return the stream's table at a version of the tenant; None where the stream did not exist.

        Raises:
            VersionNotFound: there is no such version.
        """
        state = self._view.state(since)
        return self._view.snapshot(self._name, state) if self.name in state.streams else None

    def columns(self) -> pa.Schema:
        """Return the stream's columns now; one without any value yet is marked (``evolution.is_undecided``).

        Those that the stream keeps itself (``system_columns``) are not among them.

        Raises:
            StreamNotFound: there is no such stream.
        """
        snapshot = self._snapshot()
        return read_system_columns(snapshot.metadata).removed_from(arrow_columns(snapshot.schema))

    def has_history(self) -> bool:
        """Return whether the stream has a row history (``history="scd2"``); false before its first update."""
        return self.stream_version() >= 0 and read_system_columns(self._snapshot().metadata).has_history

    def key(self) -> tuple[str, ...]:
        """Return the columns that identify a row; empty for a stream without a key."""
        return stored_key(self._snapshot().metadata) or ()

    def notes(self) -> dict[str, str]:
        """Return the notes that updates stored with the stream (``Update.notes``), by name."""
        return stored_notes(self._snapshot().metadata) if self.stream_version() >= 0 else {}

    def version(self) -> int:
        """Return the version of the tenant that last changed the stream, -1 before its first update."""
        return self._view.version_of(self._name)

    def version_of(self, snapshot: Snapshot) -> int:
        """Return the version of the tenant that created the stream's state in ``snapshot``."""
        return self._view.version_that_made(snapshot)

    def stream_version(self) -> int:
        """Return the version of the stream's own table: 0 after its first update, -1 before it."""
        return self._view.state().table_version(self._name)

    def row_count(self, version: Point | None = None, *, stream_version: int | None = None) -> int:
        """Return the number of current rows, now or at a version."""
        return row_count(self._snapshot(version, None, stream_version))

    def byte_count(self, version: Point | None = None, *, stream_version: int | None = None) -> int:
        """Return the bytes of the data files, now or at a version."""
        return self._snapshot(version, None, stream_version).size

    def _snapshot(
        self,
        version: Point | None = None,
        as_of: datetime | str | None = None,
        stream_version: int | None = None,
        tenant_version: int | None = None,
    ) -> Snapshot:
        points = {
            "version": version,
            "as_of": as_of,
            "stream_version": stream_version,
            "tenant_version": tenant_version,
        }
        require_one_version(points)
        point = tenant_version if version is None else version
        past = None if point is None and as_of is None else self._view.state(point, as_of)
        return self._view.snapshot(self._name, past, stream_version)


class Stream(StreamReader):
    """One stream, whether or not it exists yet: its first update makes it."""

    def update(self, frame: Any, key: Names | None = None, **options: Unpack[UpdateOptions]) -> Receipt:
        """Update the stream by ``frame``; the receipt counts new, updated, unchanged and deleted rows.

        ``frame`` is a pandas, Polars, Arrow or Spark frame, or a PyArrow ``RecordBatchReader``, whose rows
        may be more than memory holds; the options are those of ``UpdateOptions``
        (``docs/reference/semantics.md``, "Options"). Without a change there is no new version.

        Raises:
            BadInput: the rows cannot be taken; nothing was written.
            TooManyDeletions: a full extract (``mode="full"``) would delete more than it may.
            InvalidOption: the call contradicts itself or the stream's key.
            ConflictError: others kept changing the stream at the same time.
        """
        return self.apply(frame, parse_update(key, options))

    def apply(self, frame: Any, update: Update | KeyedUpdate) -> Receipt:
        """Carry out an ``Update``; errors as of ``update``."""
        with self._view.change(self._name) as transaction:
            receipt = transaction.update(self._name, frame, update)
        if transaction.receipt is not None:
            receipt = transaction.receipt.streams[self.name]
        return replace(receipt, source=functools.partial(self.changed_by, receipt))

    def explain(
        self, frame: Any = None, key: Names | None = None, **options: Unpack[UpdateOptions]
    ) -> Explanation:
        """Return the plan of an ``update`` with the same arguments, and its reasons; nothing is written.

        Without a frame: what an update with new rows only would do with the stream's files.

        Raises:
            BadInput, InvalidOption, TooManyDeletions: as ``update`` does.
        """
        settings = self._view.settings
        if frame is None:
            return explain_state(self.name, self._view.base(self._name), settings)
        with self._staged(frame, parse_update(key, options)) as (table, result):
            return explain_update(self.name, table.base.version, result, settings)

    def preview(self, frame: Any, key: Names | None = None, **options: Unpack[UpdateOptions]) -> Receipt:
        """Preview an ``update`` with the same arguments; nothing is committed.

        The receipt's versions are those of now and ``committed`` is false; ``bytes_written`` would be
        written. Its ``changed_rows()`` are held in memory.

        Raises:
            BadInput, TooManyDeletions, InvalidOption: as ``update`` does.
        """
        with self._staged(frame, parse_update(key, options)) as (table, result):
            before, after = table.base, table.view()
            changed = _NO_CHANGES.empty_table() if after.version < 0 else changes_between(before, after)
        return replace(
            cast("Receipt", result.receipt),
            version=self._view.state().version,
            stream_version=before.version,
            committed=False,
            source=functools.partial(self._as_kind, changed),
        )

    def frame_after(
        self, receipt: Receipt, frame: Any, sort_columns: Sequence[str] = (), dtype_backend: str | None = None
    ) -> Any:
        """Return the whole content after an update with ``frame``, in the kind of ``frame``.

        It is sorted by columns or by key; ``dtype_backend`` as of ``read``.
        """
        kind = kind_of(frame)
        self._view.note_read(self._name)
        if receipt.stream_version < 0:  # the update had no rows, and the stream none before
            return frame
        snapshot = self._snapshot(stream_version=receipt.stream_version)
        if kind == "spark":
            rows = as_spark(snapshot, self._view.context.engine, like=frame)
            return sort_frame(rows, _order(snapshot, sort_columns), snapshot)
        return as_kind(_sorted_rows(snapshot, sort_columns), kind, self._dtype_backend(kind, dtype_backend))

    def preview_frame(
        self, frame: Any, update: Update, sort_columns: Sequence[str] = (), dtype_backend: str | None = None
    ) -> Any:
        """Return the frame that ``frame_after`` would return after the update; nothing is committed.

        Raises:
            BadInput, InvalidOption: as ``update`` does.
        """
        kind = kind_of(frame)
        require_kind(kind, dtype_backend)
        with self._staged(frame, update) as (table, _):
            after = table.view()
            if kind == "spark":
                rows = previewed_frame(frame, table.base, after, self._view.context.engine)
                return sort_frame(rows, _order(after, sort_columns))
            found = _sorted_rows(after, sort_columns)
        return as_kind(found, kind, self._dtype_backend(kind, dtype_backend))

    @contextmanager
    def _staged(self, frame: Any, update: Update | KeyedUpdate) -> Iterator[tuple[StagedTable, ChangeResult]]:
        """Stage an update that is never committed; its files are deleted at the end of the block."""
        view, state = self._view, self._view.state()
        require_no_case_twin(state.streams, self._name)
        identity = CommitIdentity(uuid.uuid4().hex, state.next_timestamp_ms(now_ms()))
        table = StagedTable(self._name, view.context, identity, view.base(self._name))
        lease = Lease(view.storage, identity.write_id, None, view.settings.lease_heartbeat_seconds)
        try:
            if state.version >= 0:  # a tenant without a version has no gc
                lease.hold()
            with table.take_in(frame, table.with_key(update)) as change:
                result = table.apply(change.apply)
            yield table, result
        finally:
            table.discard()
            lease.release()

    def release(self, *, who: str | None = None) -> int:
        """Release the stream: its table stays, and any writer may change it; returns the tenant version.

        ``Tenant.adopt`` takes it back. Versions of the tenant from before can still be read.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: inside a job, or of a moment of the past.
        """
        return release(self._view.require_now(), self._name, who or "")

    def repair(self, *, undo: bool = False, who: str | None = None) -> Repair:
        """Make the stream writable again after its table was changed around the tenant log.

        Commits of others are taken over if that is possible; if not, or with ``undo``, a new version makes
        the table what the log says. The answer says what was done and why.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: inside a job, or of a moment of the past.
        """
        return repair(self._view.require_now(), self._name, undo=undo, who=who or "")

    def retype(
        self,
        column: str,
        kind: str,
        *,
        dry_run: bool = False,
        message: str | None = None,
        who: str | None = None,
    ) -> Retyping:
        """Change the type of a column (also of the key) if no stored value is lost, as one new version.

        ``kind`` is a type by its name in Delta: ``"string"``, ``"long"``, ``"decimal(10,2)"`` and so on.
        Every value must come back from the type as it is. Text that was whole numbers goes on taking them.
        With ``dry_run`` all values are looked at, and nothing is written.

        Raises:
            SchemaDriftError: a value would not survive; the first rows are named.
            StreamNotFound, MissingColumn: there is no such stream or column.
            InvalidOption: no such type, a nested column; or inside a job, or of a moment of the past.
        """
        context = self._view.require_now()
        return retype(
            context, self._name, column, kind, dry_run=dry_run, message=message or "", who=who or ""
        )

    def _as_kind(self, rows: pa.Table, as_: FrameKind, dtype_backend: str | None = None) -> Any:
        return as_kind(rows, as_, self._dtype_backend(as_, dtype_backend))

    def changed_by(self, receipt: Receipt, as_: FrameKind, dtype_backend: str | None = None) -> Any:
        """Return the rows that an update of one version changed, as ``changes`` gives them."""
        require_kind(as_, dtype_backend)
        until = receipt.stream_version
        if until < 0:  # nothing came and nothing was there
            return self._as_kind(_NO_CHANGES.empty_table(), as_, dtype_backend)
        since = until - 1 if receipt.committed else until
        self._view.note_read(self._name)
        before = None if since < 0 else self._snapshot(stream_version=since)
        changed = changes_between(before, self._snapshot(stream_version=until))
        return self._as_kind(changed, as_, dtype_backend)


def _order(snapshot: Snapshot, sort_columns: Sequence[str]) -> tuple[str, ...]:
    """Return the sort columns that the rows have, without a query to Spark."""
    known = set(row_columns(snapshot).names)
    names = tuple(sort_columns) or stored_key(snapshot.metadata) or ()
    return tuple(name for name in names if name in known)


def _sorted_rows(snapshot: Snapshot, sort_columns: Sequence[str]) -> pa.Table:
    return sort_rows(read_rows(snapshot), _order(snapshot, sort_columns))


def changes_between(before: Snapshot | None, after: Snapshot) -> pa.Table:
    """Return the row changes between two snapshots (``before`` None: all are inserts)."""
    return snapshot_changes(before, after, stored_key(after.metadata) or ())
