"""A stream of a tenant: a named, keyed table."""

from __future__ import annotations

import contextlib
import functools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack, cast, overload

import pyarrow as pa

from freezeframe.clock import now_ms
from freezeframe.engine.frames.frames import DtypeBackend, Library, require_library, to_frame
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.scan.held_columns import columns_held
from freezeframe.log.scan.rows import file_names
from freezeframe.store.change_feed import change_feed, require_range
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.diff.row_changes import CHANGE_TYPE
from freezeframe.store.diff.row_pages import matching_count, row_page
from freezeframe.store.diff.tenant_diff import StreamDifference
from freezeframe.store.maintenance.repair import Repair, release, repair
from freezeframe.store.maintenance.restore import Restoration, restore
from freezeframe.store.maintenance.retyping import Retyping, retype
from freezeframe.store.maintenance.row_history import RowHistory, row_history
from freezeframe.store.maintenance.row_origins import RowOrigin, row_origin
from freezeframe.store.model.receipt import Receipt, html_table, rows_html
from freezeframe.store.model.update_options import (
    Author,
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
    as_spark,
    read_row_batches,
    read_sorted,
    row_columns,
    row_count,
    sort_frame,
    staged_frame,
)
from freezeframe.store.tenant_log.history import (
    History,
    Point,
    Version,
    history,
    require_one_version,
)
from freezeframe.store.tenant_log.lease import Lease
from freezeframe.store.tenant_log.roll_forward import require_no_case_twin
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import Scope
from freezeframe.store.transaction.staged import StagedTable
from freezeframe.store.transaction.transaction import Transaction
from freezeframe.store.updates.update import ChangeResult, Explanation, explain_state, explain_update

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame as SparkFrame

_SHOWN_ROWS = 10
_NO_CHANGES = pa.schema([(CHANGE_TYPE, pa.string())])
_T = TypeVar("_T")


class ReadOptions(TypedDict, total=False):
    """The options of ``Stream.read`` for every kind of frame."""

    version: Point | None
    as_of: datetime | str | None
    stream_version: int | None
    tenant_version: int | None
    columns: Sequence[str] | None
    where: object
    history: bool


class PandasOptions(ReadOptions, total=False):
    """The options of ``Stream.read`` for pandas frames."""

    dtype_backend: DtypeBackend | None


class Stream:
    """One stream, whether or not it exists yet: its first update makes it.

    It is read and changed in a scope of its tenant: now, in an open job, or (only read) at a past version.
    """

    def __init__(self, name: StreamName, scope: Scope) -> None:
        self._name = name
        self._scope = scope

    @property
    def name(self) -> str:
        """The stream's name."""
        return str(self._name)

    @property
    def scope(self) -> Scope:
        """The scope of the tenant in which the stream is read, for packages built on this one."""
        return self._scope

    def __repr__(self) -> str:
        return f"Stream({self.name!r})"

    def _repr_html_(self) -> str:
        """Return the first rows in a notebook, with the number of rows, the key and the version."""
        if self.stream_version < 0:
            return html_table(f"{self.name}, before its first update", (), ())
        caption = f"{self.name}, {self.count():,} rows, key {', '.join(self.key) or 'none'}"
        shown = self._first_rows(_SHOWN_ROWS)
        return rows_html(f"{caption}, version {self.version}", shown)

    @overload
    def read(self, *, as_: Literal["pandas"] = ..., **options: Unpack[PandasOptions]) -> pd.DataFrame: ...
    @overload
    def read(self, *, as_: Literal["arrow"], **options: Unpack[ReadOptions]) -> pa.Table: ...
    @overload
    def read(self, *, as_: Literal["polars"], **options: Unpack[ReadOptions]) -> pl.DataFrame: ...
    @overload
    def read(self, *, as_: Literal["spark"], **options: Unpack[ReadOptions]) -> SparkFrame: ...
    @overload
    def read(self, *, as_: Library, **options: Unpack[PandasOptions]) -> Any: ...
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
        as_: Library = "pandas",
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
        require_library(as_, dtype_backend)
        self._scope.note_read(self._name)
        rows = functools.partial(self._rows_of, as_=as_, columns=columns, where=where, history=history)
        found = self._reading(rows, version, as_of, stream_version, tenant_version)
        return found if as_ == "spark" else self._as(found, as_, dtype_backend)

    def _rows_of(
        self, snapshot: Snapshot, as_: Library, columns: Sequence[str] | None, where: Any, *, history: bool
    ) -> Any:
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
            return as_spark(snapshot, self._scope.context.engine, columns, history=history)
        order = (*(stored_key(snapshot.metadata) or ()), *((VALID_FROM,) if history else ()))
        return read_sorted(snapshot, order, columns, where, history=history)

    def read_batches(
        self, *, version: Point | None = None, stream_version: int | None = None
    ) -> pa.RecordBatchReader:
        """Return the rows of ``read`` as batches in no order, for streams larger than memory.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
            CorruptData: a file is missing or damaged, when the reading comes to it.
        """
        self._scope.note_read(self._name)
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
        self._scope.note_read(self._name)
        return self._snapshot(version, as_of, stream_version, tenant_version)

    def changes(
        self,
        since: Point | None = None,
        until: Point | None = None,
        *,
        starting_version: Point | None = None,
        ending_version: Point | None = None,
        as_: Library = "pandas",
        dtype_backend: DtypeBackend | None = None,
    ) -> Any:
        """Return the rows that the versions from ``starting_version`` on changed, version by version.

        ``starting_version`` and ``ending_version`` (default: the newest) are included; the version after the
        newest gives no rows. To the columns as they are at the end come ``_change_type`` (``insert``,
        ``update_preimage``, ``update_postimage``, ``delete``), ``_commit_version`` and
        ``_commit_timestamp``, as in Delta's change feed. ``as_`` is ``"pandas"``, ``"polars"`` or
        ``"arrow"``; ``dtype_backend`` as of ``read``.

        Until the next minor version ``since`` and ``until``, or no version, give the net changes, as
        ``diff(since, until).changes()`` does: an ``update`` is one row, with the old one in ``_before``.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
            SchemaDriftError: the columns at the end cannot hold an earlier value.
        """
        require_library(as_, dtype_backend)
        require_range(since, until, starting_version, ending_version)
        self._scope.note_read(self._name)

        def read() -> pa.Table:
            if starting_version is not None:
                return change_feed(self._scope, self._name, starting_version, ending_version)
            return Comparison(self._scope.table_before(self._name, since), self._snapshot(until)).table()

        return self._as(self._scope.reading(read), as_, dtype_backend)

    def history(self, limit: int | None = None, *, until: int | None = None) -> History:
        """Return the tenant's versions that changed the stream, the newest (or ``until``) first.

        At most ``limit`` are read. Each has counts, time, author and job.
        """
        scope = self._scope
        return history(scope.log, scope.state(), limit, until=until, stream=self.name)

    def diff(self, before: Point, after: Point | None = None) -> StreamDifference:
        """Return the difference between two versions of the tenant (default ``after``: now): counts and rows.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
        """
        return StreamDifference.between(
            self.name, self._scope.table_before(self._name, before), self._snapshot(after)
        )

    def row_history(self, key: Any, *, until: Point | None = None, limit: int | None = None) -> RowHistory:
        """Return the row with a key, and the versions of the tenant that inserted, updated or deleted it.

        ``key`` is the key's value; of a key of several columns a tuple, or a mapping by name. The newest
        ``limit`` versions (None: all) up to ``until`` (a version, tag or moment; None: now) are given.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
            BadInput: ``key`` is not a key of the stream.
            InvalidOption: the stream has no key.
        """
        return row_history(self._scope, self._name, *self._row_named(key, until), limit)

    def row_origin(self, key: Any, *, until: Point | None = None) -> RowOrigin:
        """Return where each value of the row with a key comes from.

        That is the version of the tenant that gave it the value, its job, and the hash of the job's script.
        Where the job's input is kept (``keep_inputs_days``) it is also the file and the line, or that the
        script computed the value. ``key``, ``until`` and errors are those of ``row_history``; a row that is
        not there has no cells.

        Raises:
            TryAgain: the storage failed.
        """
        return row_origin(self._scope, self._name, *self._row_named(key, until))

    def _row_named(self, key: Any, until: Point | None) -> tuple[pa.Table, TenantState]:
        """Return the key of a row as a table, and the state in which it is looked for."""
        snapshot = self._snapshot(until)
        keys = key_of_row(arrow_columns(snapshot.delta_schema), stored_key(snapshot.metadata) or (), key)
        return keys, self._scope.state(self._scope.state(until).version)  # what is committed, in a job too

    @property
    def schema(self) -> pa.Schema:
        """The columns now, without those that the stream keeps itself (``system_columns``).

        A column without any value yet is marked (``evolution.is_undecided``).

        Raises:
            StreamNotFound: there is no such stream.
        """
        snapshot = self._snapshot()
        return read_system_columns(snapshot.metadata).removed_from(arrow_columns(snapshot.delta_schema))

    @property
    def columns(self) -> list[str]:
        """The names of the columns now; errors as of ``schema``."""
        return list(self.schema.names)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row; empty for a stream without a key. Errors as of ``schema``."""
        return stored_key(self._snapshot().metadata) or ()

    @property
    def notes(self) -> dict[str, str]:
        """The notes that updates stored with the stream (``Update.notes``), by name."""
        return stored_notes(self._snapshot().metadata) if self.stream_version >= 0 else {}

    @property
    def has_history(self) -> bool:
        """Whether the stream has a row history (``history="scd2"``); false before its first update."""
        return self.stream_version >= 0 and read_system_columns(self._snapshot().metadata).has_history

    @property
    def version(self) -> int:
        """The version of the tenant that last changed the stream, -1 before its first update."""
        return self._scope.version_of(self._name)

    @property
    def stream_version(self) -> int:
        """The version of the stream's own table: 0 after its first update, -1 before it."""
        return self._scope.state().table_version(self._name)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # a stream without rows is one

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows of now as an Arrow C stream, for DuckDB, Polars and others; in no order."""
        return self.read_batches().__arrow_c_stream__(requested_schema)

    def to_pandas(self, **options: Unpack[PandasOptions]) -> pd.DataFrame:
        """Return the rows as a pandas frame; options and errors as of ``read``."""
        return self.read(as_="pandas", **options)

    def to_arrow(self, **options: Unpack[ReadOptions]) -> pa.Table:
        """Return the rows as an Arrow table; options and errors as of ``read``."""
        return self.read(as_="arrow", **options)

    def to_polars(self, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Return the rows as a Polars frame; options and errors as of ``read``."""
        return self.read(as_="polars", **options)

    def to_spark(self, **options: Unpack[ReadOptions]) -> SparkFrame:
        """Return the rows as a Spark frame; options and errors as of ``read``."""
        return self.read(as_="spark", **options)

    def head(self, n: int = 5, *, dtype_backend: DtypeBackend | None = None) -> pd.DataFrame:
        """Return the first ``n`` rows by key; reads little more than these, however large the stream is.

        Raises:
            StreamNotFound: there is no such stream.
        """
        found: pd.DataFrame = self._as(self._first_rows(n), "pandas", dtype_backend)
        return found

    def _first_rows(self, n: int) -> pa.Table:
        self._scope.note_read(self._name)
        return self._reading(lambda table: row_page(table, row_columns(table).names, limit=n).rows)

    def count(
        self, version: Point | None = None, *, stream_version: int | None = None, where: Any = None
    ) -> int:
        """Return the number of current rows (that match ``where``), now or at a version.

        Raises:
            StreamNotFound, VersionNotFound, MissingColumn, InvalidOption: as of ``read``.
        """
        self._scope.note_read(self._name)
        count = row_count if where is None else functools.partial(matching_count, where=where)
        return self._reading(count, version, None, stream_version)

    def _as(self, rows: pa.Table, as_: Library, dtype_backend: str | None = None) -> Any:
        """Return rows of the stream as a frame; without ``dtype_backend`` the settings say pandas' types."""
        default = self._scope.settings.dtype_backend if as_ == "pandas" else None
        return to_frame(rows, as_, dtype_backend, default)

    def _reading(self, read: Callable[[Snapshot], _T], *point: Any) -> _T:
        """Return ``read`` of the snapshot at a point; see ``Scope.reading``."""
        return self._scope.reading(lambda: read(self._snapshot(*point)))

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
        is_now = version is None and as_of is None and tenant_version is None
        past = None if is_now else self._scope.state(version, as_of, tenant_version)
        return self._scope.snapshot(self._name, past, stream_version)

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
        return self.apply(Rows(frame), parse_update(key, options))

    def apply(
        self,
        rows: Rows,
        update: Update | KeyedUpdate,
        check: Callable[[Transaction], None] = lambda _: None,
    ) -> Receipt:
        """Carry out an ``Update``, for packages built on this one; ``check`` sees its transaction first.

        Raises what ``update`` raises.
        """
        with self._scope.change(self._name) as transaction:
            check(transaction)
            receipt = transaction.update(self._name, rows, update)
        if transaction.receipt is not None:
            receipt = transaction.receipt.streams[self.name]
        return self.with_source(receipt)

    def with_source(self, receipt: Receipt) -> Receipt:
        """Return the receipt with the way to the rows that its update changed."""

        def changed_rows(as_: Library, dtype_backend: str | None = None) -> Any:
            require_library(as_, dtype_backend)
            until = receipt.stream_version
            if until < 0:  # nothing came and nothing was there
                return self._as(_NO_CHANGES.empty_table(), as_, dtype_backend)
            since = until - 1 if receipt.committed else until
            before = None if since < 0 else self.snapshot(stream_version=since)
            changed = Comparison(before, self.snapshot(stream_version=until)).table()
            return self._as(changed, as_, dtype_backend)

        return replace(receipt, source=changed_rows)

    def explain(
        self, frame: Any = None, key: Names | None = None, **options: Unpack[UpdateOptions]
    ) -> Explanation:
        """Return the plan of an ``update`` with the same arguments, and its reasons; nothing is written.

        Without a frame: what an update with new rows only would do with the stream's files.

        Raises:
            BadInput, InvalidOption, TooManyDeletions: as ``update`` does.
        """
        settings = self._scope.settings
        if frame is None:
            return explain_state(self.name, self._scope.base(self._name), settings)
        with self._staged(Rows(frame), parse_update(key, options)) as (table, result):
            return explain_update(self.name, table.base.version, result, settings)

    def preview(self, frame: Any, key: Names | None = None, **options: Unpack[UpdateOptions]) -> Receipt:
        """Preview an ``update`` with the same arguments; nothing is committed.

        The receipt's versions are those of now and ``committed`` is false; ``bytes_written`` would be
        written. Its ``changed_rows()`` are held in memory.

        Raises:
            BadInput, TooManyDeletions, InvalidOption: as ``update`` does.
        """
        with self._staged(Rows(frame), parse_update(key, options)) as (table, result):
            after = table.view()
            changed = (
                _NO_CHANGES.empty_table() if after.version < 0 else Comparison(table.base, after).table()
            )
        return replace(
            cast("Receipt", result.receipt),
            version=self._scope.state().version,
            stream_version=table.base.version,
            committed=False,
            source=functools.partial(self._as, changed),
        )

    def restore(
        self, version: Point, *, dry_run: bool = False, message: str | None = None, who: str | None = None
    ) -> Restoration:
        """Restore the stream alone to a version of the tenant; see ``Tenant.restore``.

        Raises:
            VersionNotFound: there is no such version, or it is no longer kept.
            StreamNotFound: the stream exists neither now nor then.
            InvalidOption: inside a job, or of a moment of the past.
        """
        context, author = self._scope.require_now(), Author(who or "", message or "")
        number = Version.parse(version).find(context.log, self._scope.state())
        return restore(context, number, streams=[self.name], files=(), dry_run=dry_run, author=author)

    def release(self, *, who: str | None = None) -> int:
        """Release the stream: its table stays, and any writer may change it; returns the tenant version.

        ``Tenant.adopt`` takes it back. Versions of the tenant from before can still be read.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: inside a job, or of a moment of the past.
        """
        return release(self._scope.require_now(), self._name, who or "")

    def repair(self, *, undo: bool = False, who: str | None = None) -> Repair:
        """Make the stream writable again after its table was changed around the tenant log.

        Foreign commits become versions of the stream if possible; if not, or with ``undo``, a new version
        restores the table's last own content. The result says what was done and why.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: inside a job, or of a moment of the past.
        """
        return repair(self._scope.require_now(), self._name, undo=undo, who=who or "")

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
        Every value must convert to the type and back unchanged. A column of whole numbers that became text
        still accepts whole numbers. With ``dry_run`` all values are checked and nothing is written.

        Raises:
            SchemaDriftError: a value would not survive; the first rows are named.
            StreamNotFound, MissingColumn: there is no such stream or column.
            InvalidOption: no such type, a nested column; or inside a job, or of a moment of the past.
        """
        context, text, author = self._scope.require_now(), message or "", who or ""
        return retype(context, self._name, column, kind, dry_run=dry_run, message=text, who=author)

    def update_and_read(
        self,
        rows: Rows,
        update: Update | KeyedUpdate,
        sort_columns: Sequence[str] = (),
        dtype_backend: str | None = None,
    ) -> Any:
        """Carry out an ``Update``; return the whole content after it, as a frame of the rows' library.

        It is sorted by columns or by key; ``dtype_backend`` as of ``read``.
        """
        # The update and the read need the same stored cells, which are decoded once.
        with contextlib.nullcontext() if rows.is_spark else columns_held():
            receipt = self.apply(rows, update)
            if receipt.stream_version < 0:  # the update had no rows, and the stream none before
                return rows.frame
            after = self.snapshot(stream_version=receipt.stream_version)
            if not rows.is_spark:
                return self._like_given(rows, after, sort_columns, dtype_backend)
            content = as_spark(after, self._scope.context.engine, like=rows.frame)
            return sort_frame(content, _order(after, sort_columns), after)

    def preview_and_read(
        self, rows: Rows, update: Update, sort_columns: Sequence[str] = (), dtype_backend: str | None = None
    ) -> Any:
        """Return what ``update_and_read`` would return; nothing is committed."""
        require_library(rows.library, dtype_backend)
        holds = contextlib.nullcontext() if rows.is_spark else columns_held()
        with holds, self._staged(rows, update) as (table, _):
            after = table.view()
            if not rows.is_spark:
                return self._like_given(rows, after, sort_columns, dtype_backend)
            content = staged_frame(rows.frame, table.base, after, self._scope.context.engine)
            return sort_frame(content, _order(after, sort_columns))

    @contextlib.contextmanager
    def _staged(self, rows: Rows, update: Update | KeyedUpdate) -> Iterator[tuple[StagedTable, ChangeResult]]:
        """Stage an update that is never committed; its files are deleted at the end of the block."""
        scope = self._scope
        state = scope.state()
        require_no_case_twin(state.streams, self._name)
        identity = CommitIdentity(uuid.uuid4().hex, state.next_timestamp_ms(now_ms()))
        table = StagedTable(
            self._name, scope.base(self._name), identity, scope.context.engine, scope.settings
        )
        lease = Lease(scope.storage, identity.write_id, None, scope.settings.lease_heartbeat_seconds)
        try:
            if state.version >= 0:  # a tenant without a version has no gc
                lease.hold()
            with table.open_batch(rows, table.with_key(update)) as change:
                result = table.apply(change.apply)
            yield table, result
        finally:
            table.discard()
            lease.release()

    def _like_given(
        self, rows: Rows, snapshot: Snapshot, sort_columns: Sequence[str], dtype_backend: str | None
    ) -> Any:
        with columns_held() as held:
            held.release({str(name) for name in file_names(snapshot)})
            content = read_sorted(snapshot, _order(snapshot, sort_columns))
        return rows.like_given(content, dtype_backend, self._scope.settings.dtype_backend)


def _order(snapshot: Snapshot, sort_columns: Sequence[str]) -> tuple[str, ...]:
    """Return the sort columns that the rows have, without a query to Spark."""
    there = set(row_columns(snapshot).names)
    names = tuple(sort_columns) or stored_key(snapshot.metadata) or ()
    return tuple(name for name in names if name in there)
