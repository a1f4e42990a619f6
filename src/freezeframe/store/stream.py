"""A stream of a tenant: a named, keyed table that updates change and reads travel through."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack

import pyarrow as pa

from freezeframe.engine.frames.frames import FrameKind, kind_of
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.store.diff.row_diff import CHANGE_TYPE, snapshot_changes
from freezeframe.store.keys.key_values import key_of_row
from freezeframe.store.maintenance.repair import Repair, release, repair
from freezeframe.store.maintenance.retyping import Retyping, retype
from freezeframe.store.model.html_table import html_table
from freezeframe.store.model.receipt import Receipt
from freezeframe.store.model.update_options import (
    KeyedUpdate,
    Names,
    Update,
    UpdateOptions,
    parse_update,
    replaces_rows,
    update_from,
)
from freezeframe.store.schema.column_mapping import arrow_columns
from freezeframe.store.schema.system_columns import VALID_FROM, read_system_columns
from freezeframe.store.schema.table_properties import stored_key, stored_notes
from freezeframe.store.stream_updates import Previewed, StreamPlace, explain, preview, write
from freezeframe.store.table.preview import previewed_frame
from freezeframe.store.table.reader import (
    as_kind,
    as_spark,
    read_row_batches,
    read_rows,
    require_kind,
    row_columns,
    row_count,
    sort_frame,
)
from freezeframe.store.table.row_order import sort_rows
from freezeframe.store.tenant_log.version_reference import Point
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.transaction.transaction import TenantPlace
from freezeframe.store.updates.explain import Explanation, explain_state
from freezeframe.store.versions.row_history import RowHistory, row_history

_NO_CHANGES = pa.schema([(CHANGE_TYPE, pa.string())])


class Stream:
    """One stream, whether or not it exists yet: its first update makes it."""

    def __init__(self, name: StreamName, scope: TenantScope) -> None:
        self._place = StreamPlace(name, scope)

    @property
    def name(self) -> str:
        """The stream's name."""
        return str(self._place.name)

    def __repr__(self) -> str:
        return f"Stream({self.name!r})"

    def _repr_html_(self) -> str:
        """The columns in a notebook."""
        if self.stream_version() < 0:
            return html_table(f"{self.name}, before its first update", ("column", "type"), ())
        key = self.key()
        caption = f"{self.name}, {self.row_count()} rows, key {', '.join(key) or 'none'}"
        return html_table(
            f"{caption}, version {self.version()}",
            ("column", "type"),
            [(field.name, field.type) for field in self.columns()],
        )

    def update(self, frame: Any, key: Names | None = None, **options: Unpack[UpdateOptions]) -> Receipt:
        """Bring new and changed rows in, and say how many were new, updated, unchanged and deleted.

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
        """Carry out an update that is already a value; errors as of ``update``."""
        receipt = write(self._place, frame, update)
        return replace(receipt, source=functools.partial(self.changed_by, receipt))

    def explain(
        self, frame: Any = None, key: Names | None = None, **options: Unpack[UpdateOptions]
    ) -> Explanation:
        """How ``update`` with the same arguments would be carried out, and why; nothing is kept.

        Without a frame: what an update with new rows only would do with the stream's files.

        Raises:
            BadInput, InvalidOption, TooManyDeletions: as ``update`` does.
        """
        if frame is None:
            settings = self._place.scope.settings
            return explain_state(self.name, self._place.scope.base(self._place.name), settings)
        needs_key = key is None and not replaces_rows(options)
        return explain(self._place, frame, update_from(self._stored_key() if needs_key else key, **options))

    def preview(self, frame: Any, key: Names | None = None, **options: Unpack[UpdateOptions]) -> Receipt:
        """What ``update`` with the same arguments would do; nothing is kept.

        The receipt's versions are those of now and ``committed`` is false; ``bytes_written`` would be
        written. Its ``changed_rows()`` are held in memory.

        Raises:
            BadInput, TooManyDeletions, InvalidOption: as ``update`` does.
        """
        needs_key = key is None and not replaces_rows(options)
        update = update_from(self._stored_key() if needs_key else key, **options)
        receipt: Receipt = preview(self._place, frame, update, self._preview_receipt)
        return receipt

    def merged(
        self, frame: Any, update: Update, *, persist: bool = True, sort_columns: Sequence[str] = ()
    ) -> Any:
        """The whole content after ``update``, in the kind of ``frame``, sorted by columns or by key.

        With ``persist=False`` nothing is kept.

        Raises:
            BadInput, InvalidOption, ConflictError: as ``update`` does.
        """
        kind, place = kind_of(frame), self._place.update_place
        if persist:
            receipt = write(self._place, frame, update)
            self._place.scope.note_stream_read(self._place.name)
            if receipt.stream_version < 0:  # nothing came and nothing was there
                return frame
            snapshot = self._snapshot(stream_version=receipt.stream_version)
            if kind == "spark":
                rows = as_spark(snapshot, place.storage, place.folder, place.engine, None, like=frame)
                return sort_frame(rows, _order(snapshot, sort_columns), snapshot)
            return as_kind(_sorted_rows(snapshot, sort_columns), kind)
        if kind == "spark":

            def previewed(seen: Previewed) -> Any:
                rows = previewed_frame(
                    frame, seen.before, seen.after, place.storage, place.folder, place.engine
                )
                return sort_frame(rows, _order(seen.after, sort_columns))

            return preview(self._place, frame, update, previewed)
        table = preview(self._place, frame, update, lambda seen: _sorted_rows(seen.after, sort_columns))
        return as_kind(table, kind)

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
    ) -> Any:
        """The rows now, at a version of the tenant or a moment, or at a version of the stream's own.

        ``version`` is a number, a tag or a moment; ``tenant_version`` is the same. ``stream_version`` counts
        the changes of this stream alone.

        With ``history`` those of the past as well, of a stream that keeps them: each with
        ``_valid_from`` and ``_valid_to``, which is null for a row that holds now. They are sorted by
        the columns of the key that are read; a Spark frame is not.

        Raises:
            StreamNotFound: there is no such stream (then).
            VersionNotFound: there is no such version or moment.
            InvalidOption: more than one of them is given, or the stream has no history.
        """
        require_kind(as_)
        self._place.scope.note_stream_read(self._place.name)
        snapshot = self._snapshot(version, as_of, stream_version, tenant_version)
        if history and not read_system_columns(snapshot.metadata).has_history:
            raise InvalidOption(
                f"The stream {self.name!r} keeps no history of its rows.",
                cause="Nobody has updated it with history='scd2' so far.",
                remedy="Leave history out; earlier versions are read with version= or as_of=.",
            )
        if as_ == "spark":
            if where is not None:
                raise InvalidOption(
                    "where cannot be used with as_='spark'.",
                    remedy="Filter the Spark frame: frame.where('…').",
                )
            place = self._place.update_place
            return as_spark(snapshot, place.storage, place.folder, place.engine, columns, history=history)
        order = (*(stored_key(snapshot.metadata) or ()), *((VALID_FROM,) if history else ()))
        return as_kind(sort_rows(read_rows(snapshot, columns, where, history=history), order), as_)

    def read_batches(
        self, *, version: Point | None = None, stream_version: int | None = None
    ) -> pa.RecordBatchReader:
        """The rows that ``read`` gives, piece by piece and in no order, for streams larger than memory.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
            CorruptData: a file is missing or damaged, when the reading comes to it.
        """
        self._place.scope.note_stream_read(self._place.name)
        return read_row_batches(self._snapshot(version, None, stream_version))

    def snapshot(
        self,
        *,
        version: Point | None = None,
        as_of: datetime | str | None = None,
        stream_version: int | None = None,
        tenant_version: int | None = None,
    ) -> Snapshot:
        """The stream's table at one version, for what looks at it in several ways; errors as of ``read``."""
        self._place.scope.note_stream_read(self._place.name)
        return self._snapshot(version, as_of, stream_version, tenant_version)

    def changes(
        self, since: Point | None = None, until: Point | None = None, *, as_: FrameKind = "pandas"
    ) -> Any:
        """What became of the rows between two versions of the tenant (``since`` None: from the beginning).

        One row a change: ``_change_type`` (``insert``, ``update``, ``delete``), the columns as they
        are at ``until`` (default: now; for a deletion the deleted values) and ``_before``, a struct
        of the old values. ``as_`` is ``"pandas"``, ``"polars"`` or ``"arrow"``.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
        """
        self._place.scope.note_stream_read(self._place.name)
        before = None if since is None else self.before(since)
        return _changes(before, self._snapshot(until), as_)

    def row_history(self, key: Any, *, until: Point | None = None, limit: int | None = None) -> RowHistory:
        """The row with a key, and the versions of the tenant that inserted, updated or deleted it.

        ``key`` is the key's value; of a key of several columns a tuple, or a mapping by name. The newest
        ``limit`` versions (None: all) up to ``until`` (a version, tag or moment; None: now) are given.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
            BadInput: ``key`` is no key of the stream.
            InvalidOption: the stream has no key.
        """
        snapshot = self._snapshot(until)
        keys = key_of_row(arrow_columns(snapshot.schema), stored_key(snapshot.metadata) or (), key)
        scope = self._place.scope
        state = scope.state(scope.state(until).version)  # what is committed, in a job as well
        return row_history(scope, self._place.name, keys, state, limit)

    def before(self, since: Point) -> Snapshot | None:
        """The stream's table at a version of the tenant; None where the tenant had no such stream then.

        Raises:
            VersionNotFound: there is no such version.
        """
        scope = self._place.scope
        state = scope.state(since)
        return scope.snapshot(self._place.name, state) if self.name in state.streams else None

    def columns(self) -> pa.Schema:
        """The stream's columns now; one without any value yet is marked (``evolution.is_undecided``).

        Those that the stream keeps itself (``system_columns``) are not among them.

        Raises:
            StreamNotFound: there is no such stream.
        """
        snapshot = self._snapshot()
        return read_system_columns(snapshot.metadata).removed_from(arrow_columns(snapshot.schema))

    def has_history(self) -> bool:
        """Whether the stream keeps its rows' past (``history="scd2"``); false before its first update."""
        return self.stream_version() >= 0 and read_system_columns(self._snapshot().metadata).has_history

    def key(self) -> tuple[str, ...]:
        """The columns that identify a row; empty for a stream without a key."""
        return stored_key(self._snapshot().metadata) or ()

    def notes(self) -> dict[str, str]:
        """What updates noted with the stream (``Update.notes``), by name; nothing before the first one."""
        return stored_notes(self._snapshot().metadata) if self.stream_version() >= 0 else {}

    def version(self) -> int:
        """The version of the tenant that made the stream what it is now, -1 before its first update."""
        return self._place.scope.version_of(self._place.name)

    def version_of(self, snapshot: Snapshot) -> int:
        """The version of the tenant that made the stream what ``snapshot`` shows."""
        return self._place.scope.version_that_made(snapshot)

    def stream_version(self) -> int:
        """How often the stream has been changed since it was made, -1 before its first update."""
        return self._place.scope.state().table_version(self._place.name)

    def row_count(self, version: Point | None = None, *, stream_version: int | None = None) -> int:
        """How many rows there are, or were at a version, without those of the past."""
        return row_count(self._snapshot(version, None, stream_version))

    def _preview_receipt(self, seen: Previewed) -> Receipt:
        before, after = seen.before, seen.after
        if after.version < 0:
            changed = _NO_CHANGES.empty_table()
        else:
            changed = snapshot_changes(before, after, stored_key(after.metadata) or ())
        return replace(
            seen.receipt,
            version=self._place.scope.state().version,
            stream_version=before.version,
            committed=False,
            source=functools.partial(as_kind, changed),
        )

    def _snapshot(
        self,
        version: Point | None = None,
        as_of: datetime | str | None = None,
        stream_version: int | None = None,
        tenant_version: int | None = None,
    ) -> Snapshot:
        given = {
            "version": version,
            "as_of": as_of,
            "stream_version": stream_version,
            "tenant_version": tenant_version,
        }
        require_one_version(given)
        scope, point = self._place.scope, tenant_version if version is None else version
        past = None if point is None and as_of is None else scope.state(point, as_of)
        return scope.snapshot(self._place.name, past, stream_version)

    def _tenant(self) -> TenantPlace:
        scope = self._place.scope
        if type(scope) is not TenantScope:
            raise InvalidOption(
                "This cannot be done inside of a job, or to the past.",
                remedy="Call it on the tenant's own stream: tenant.stream(name).",
            )
        return scope.place

    def _stored_key(self) -> tuple[str, ...] | None:
        # An upsert of a stream that has a key need not repeat it.
        return self.key() if self.stream_version() >= 0 else None

    def byte_count(self, version: Point | None = None, *, stream_version: int | None = None) -> int:
        """How many bytes its data files have, now or at a version."""
        return sum(self._snapshot(version, None, stream_version).files["size"].to_pylist())

    def release(self, *, who: str | None = None) -> int:
        """Let the stream go: its table stays and is anybody's to write; the tenant version.

        ``Tenant.adopt`` takes it back. Versions of the tenant from before can still be read.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: inside a job, or of a moment of the past.
        """
        return release(self._tenant(), self._place.name, who or "")

    def repair(self, *, undo: bool = False, who: str | None = None) -> Repair:
        """Make the stream writable again after its table was changed around the tenant log.

        What others committed is taken over if it can be; if not, or with ``undo``, a new version makes
        the table what the log says. The answer says what was done and why.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: inside a job, or of a moment of the past.
        """
        return repair(self._tenant(), self._place.name, undo=undo, who=who or "")

    def retype(
        self,
        column: str,
        kind: str,
        *,
        dry_run: bool = False,
        message: str | None = None,
        who: str | None = None,
    ) -> Retyping:
        """Give a column, also one of the key, another type, where no stored value is lost: one new version.

        ``kind`` is a type by its name in Delta: ``"string"``, ``"long"``, ``"decimal(10,2)"`` and so on.
        Every value must come back from the type as it is. Text that was whole numbers goes on taking them.
        With ``dry_run`` all values are looked at, and nothing is written.

        Raises:
            SchemaDriftError: a value would not survive; the first rows are named.
            StreamNotFound, MissingColumn: there is no such stream or column.
            InvalidOption: no such type, a nested column; or inside a job, or of a moment of the past.
        """
        place = self._tenant()
        return retype(
            place, self._place.name, column, kind, dry_run=dry_run, message=message or "", who=who or ""
        )

    def changed_by(self, receipt: Receipt, as_: FrameKind) -> Any:
        """The rows that an update changed, as ``changes`` gives them: it made exactly one version."""
        until = receipt.stream_version
        if until < 0:  # nothing came and nothing was there
            return as_kind(_NO_CHANGES.empty_table(), as_)
        since = until - 1 if receipt.committed else until
        self._place.scope.note_stream_read(self._place.name)
        before = None if since < 0 else self._snapshot(stream_version=since)
        return _changes(before, self._snapshot(stream_version=until), as_)


def require_one_version(given: Mapping[str, Any]) -> None:
    """Refuse a call that says more than once which version it means, by the names of its options.

    Raises:
        InvalidOption: more than one of them is not None.
    """
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InvalidOption(
            f"{' and '.join(named)} cannot be used together.",
            cause="Each of them says by itself which version is meant.",
            remedy="Give one of them.",
        )


def _changes(before: Snapshot | None, after: Snapshot, as_: FrameKind) -> Any:
    return as_kind(snapshot_changes(before, after, stored_key(after.metadata) or ()), as_)


def _order(snapshot: Snapshot, sort_columns: Sequence[str]) -> tuple[str, ...]:
    """The columns to sort by that the rows have; Spark is not asked for them."""
    known = set(row_columns(snapshot).names)
    names = tuple(sort_columns) or stored_key(snapshot.metadata) or ()
    return tuple(name for name in names if name in known)


def _sorted_rows(snapshot: Snapshot, sort_columns: Sequence[str]) -> pa.Table:
    return sort_rows(read_rows(snapshot), _order(snapshot, sort_columns))
