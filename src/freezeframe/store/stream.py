"""A stream of a tenant: a named, keyed table."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import pyarrow as pa

from freezeframe.engine.frames.frames import FrameKind, kind_of
from freezeframe.errors import InvalidOption
from freezeframe.log import Snapshot
from freezeframe.store.diff.row_diff import CHANGE_TYPE, snapshot_changes
from freezeframe.store.maintenance.repair import Repair, release, repair
from freezeframe.store.maintenance.retyping import Retyping, retype
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
from freezeframe.store.readers.stream_reader import StreamReader, changes_between
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.stream_updates import Previewed, explain, preview, write
from freezeframe.store.table.reader import (
    as_kind,
    as_spark,
    previewed_frame,
    read_rows,
    require_kind,
    row_columns,
    sort_frame,
    sort_rows,
)
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.transaction.transaction import TenantPlace
from freezeframe.store.updates.strategy import Explanation, explain_state

_NO_CHANGES = pa.schema([(CHANGE_TYPE, pa.string())])


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
        receipt = write(self._place, frame, update)
        return replace(receipt, source=functools.partial(self.changed_by, receipt))

    def explain(
        self, frame: Any = None, key: Names | None = None, **options: Unpack[UpdateOptions]
    ) -> Explanation:
        """The plan of an ``update`` with the same arguments, and its reasons; nothing is written.

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
        """Preview an ``update`` with the same arguments; nothing is committed.

        The receipt's versions are those of now and ``committed`` is false; ``bytes_written`` would be
        written. Its ``changed_rows()`` are held in memory.

        Raises:
            BadInput, TooManyDeletions, InvalidOption: as ``update`` does.
        """
        needs_key = key is None and not replaces_rows(options)
        update = update_from(self._stored_key() if needs_key else key, **options)
        receipt: Receipt = preview(self._place, frame, update, self._preview_receipt)
        return receipt

    def update_frame(
        self,
        frame: Any,
        update: Update,
        *,
        persist: bool = True,
        sort_columns: Sequence[str] = (),
        dtype_backend: str | None = None,
    ) -> Any:
        """Update the stream; its whole content, in the kind of ``frame``, sorted by columns or by key.

        With ``persist=False`` nothing is kept. ``dtype_backend`` as of ``read``.

        Raises:
            BadInput, InvalidOption, ConflictError: as ``update`` does.
        """
        kind, place = kind_of(frame), self._place.update_place
        require_kind(kind, dtype_backend)
        backend = self._dtype_backend(kind, dtype_backend)
        if persist:
            receipt = write(self._place, frame, update)
            self._place.scope.note_read(self._place.name)
            if receipt.stream_version < 0:  # nothing came and nothing was there
                return frame
            snapshot = self._snapshot(stream_version=receipt.stream_version)
            if kind == "spark":
                rows = as_spark(snapshot, place.storage, place.folder, place.engine, None, like=frame)
                return sort_frame(rows, _order(snapshot, sort_columns), snapshot)
            return as_kind(_sorted_rows(snapshot, sort_columns), kind, backend)
        if kind == "spark":

            def previewed(seen: Previewed) -> Any:
                rows = previewed_frame(
                    frame, seen.before, seen.after, place.storage, place.folder, place.engine
                )
                return sort_frame(rows, _order(seen.after, sort_columns))

            return preview(self._place, frame, update, previewed)
        table = preview(self._place, frame, update, lambda seen: _sorted_rows(seen.after, sort_columns))
        return as_kind(table, kind, backend)

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
            source=functools.partial(self._as_kind, changed),
        )

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

    def release(self, *, who: str | None = None) -> int:
        """Release the stream: its table stays, and any writer may change it; returns the tenant version.

        ``Tenant.adopt`` takes it back. Versions of the tenant from before can still be read.

        Raises:
            StreamNotFound: there is no such stream.
            InvalidOption: inside a job, or of a moment of the past.
        """
        return release(self._tenant(), self._place.name, who or "")

    def repair(self, *, undo: bool = False, who: str | None = None) -> Repair:
        """Make the stream writable again after its table was changed around the tenant log.

        Commits of others are taken over if that is possible; if not, or with ``undo``, a new version makes
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
        """Change the type of a column (also of the key) if no stored value is lost, as one new version.

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

    def _as_kind(self, rows: pa.Table, as_: FrameKind, dtype_backend: str | None = None) -> Any:
        return as_kind(rows, as_, self._dtype_backend(as_, dtype_backend))

    def changed_by(self, receipt: Receipt, as_: FrameKind, dtype_backend: str | None = None) -> Any:
        """The rows that an update of one version changed, as ``changes`` gives them."""
        require_kind(as_, dtype_backend)
        until = receipt.stream_version
        if until < 0:  # nothing came and nothing was there
            return self._as_kind(_NO_CHANGES.empty_table(), as_, dtype_backend)
        since = until - 1 if receipt.committed else until
        self._place.scope.note_read(self._place.name)
        before = None if since < 0 else self._snapshot(stream_version=since)
        changed = changes_between(before, self._snapshot(stream_version=until))
        return self._as_kind(changed, as_, dtype_backend)


def _order(snapshot: Snapshot, sort_columns: Sequence[str]) -> tuple[str, ...]:
    """The sort columns that the rows have, without a query to Spark."""
    known = set(row_columns(snapshot).names)
    names = tuple(sort_columns) or stored_key(snapshot.metadata) or ()
    return tuple(name for name in names if name in known)


def _sorted_rows(snapshot: Snapshot, sort_columns: Sequence[str]) -> pa.Table:
    return sort_rows(read_rows(snapshot), _order(snapshot, sort_columns))
