"""The reading half of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.frames import DtypeBackend, FrameKind
from freezeframe.errors import InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.store.diff.row_diff import snapshot_changes
from freezeframe.store.keys.key_scan import key_of_row
from freezeframe.store.model.receipt import html_table
from freezeframe.store.schema.columns import (
    VALID_FROM,
    arrow_columns,
    read_system_columns,
    stored_key,
    stored_notes,
)
from freezeframe.store.table.reader import (
    as_kind,
    as_spark,
    read_row_batches,
    read_rows,
    require_kind,
    row_count,
    sort_rows,
)
from freezeframe.store.tenant_log.history import Point, require_one_version
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.transaction.stream_place import StreamPlace
from freezeframe.store.versions.row_history import RowHistory, row_history


class StreamReader:
    """Reads a stream in a scope: a tenant, an open job, or a past version."""

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
        """The rows now, at a version of the tenant or a moment, or at a version of the stream's own.

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
        self._place.scope.note_read(self._place.name)
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
        rows = sort_rows(read_rows(snapshot, columns, where, history=history), order)
        return as_kind(rows, as_, self._dtype_backend(as_, dtype_backend))

    def read_batches(
        self, *, version: Point | None = None, stream_version: int | None = None
    ) -> pa.RecordBatchReader:
        """The rows of ``read`` as batches in no order, for streams larger than memory.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
            CorruptData: a file is missing or damaged, when the reading comes to it.
        """
        self._place.scope.note_read(self._place.name)
        return read_row_batches(self._snapshot(version, None, stream_version))

    def snapshot(
        self,
        *,
        version: Point | None = None,
        as_of: datetime | str | None = None,
        stream_version: int | None = None,
        tenant_version: int | None = None,
    ) -> Snapshot:
        """The stream's table snapshot at one version; errors as of ``read``."""
        self._place.scope.note_read(self._place.name)
        return self._snapshot(version, as_of, stream_version, tenant_version)

    def changes(
        self,
        since: Point | None = None,
        until: Point | None = None,
        *,
        as_: FrameKind = "pandas",
        dtype_backend: DtypeBackend | None = None,
    ) -> Any:
        """The row changes between two versions of the tenant (``since`` None: from the beginning).

        One row a change: ``_change_type`` (``insert``, ``update``, ``delete``), the columns as they
        are at ``until`` (default: now; for a deletion the deleted values) and ``_before``, a struct
        of the old values. ``as_`` is ``"pandas"``, ``"polars"`` or ``"arrow"``; ``dtype_backend`` as of
        ``read``.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
        """
        require_kind(as_, dtype_backend)
        self._place.scope.note_read(self._place.name)
        before = None if since is None else self.before(since)
        changed = changes_between(before, self._snapshot(until))
        return as_kind(changed, as_, self._dtype_backend(as_, dtype_backend))

    def _dtype_backend(self, as_: str, given: str | None) -> str | None:
        """What was asked for, else what the tenant's settings say."""
        return given or (self._place.scope.settings.dtype_backend if as_ == "pandas" else None)

    def row_history(self, key: Any, *, until: Point | None = None, limit: int | None = None) -> RowHistory:
        """The row with a key, and the versions of the tenant that inserted, updated or deleted it.

        ``key`` is the key's value; of a key of several columns a tuple, or a mapping by name. The newest
        ``limit`` versions (None: all) up to ``until`` (a version, tag or moment; None: now) are given.

        Raises:
            StreamNotFound, VersionNotFound: there is no such stream or version.
            BadInput: ``key`` is not a key of the stream.
            InvalidOption: the stream has no key.
        """
        snapshot = self._snapshot(until)
        keys = key_of_row(arrow_columns(snapshot.schema), stored_key(snapshot.metadata) or (), key)
        scope = self._place.scope
        state = scope.state(scope.state(until).version)  # what is committed, in a job as well
        return row_history(scope, self._place.name, keys, state, limit)

    def before(self, since: Point) -> Snapshot | None:
        """The stream's table at a version of the tenant; None where the stream did not exist.

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
        """Whether the stream has a row history (``history="scd2"``); false before its first update."""
        return self.stream_version() >= 0 and read_system_columns(self._snapshot().metadata).has_history

    def key(self) -> tuple[str, ...]:
        """The columns that identify a row; empty for a stream without a key."""
        return stored_key(self._snapshot().metadata) or ()

    def notes(self) -> dict[str, str]:
        """The notes that updates stored with the stream (``Update.notes``), by name."""
        return stored_notes(self._snapshot().metadata) if self.stream_version() >= 0 else {}

    def version(self) -> int:
        """The version of the tenant that last changed the stream, -1 before its first update."""
        return self._place.scope.version_of(self._place.name)

    def version_of(self, snapshot: Snapshot) -> int:
        """The version of the tenant that created the stream's state in ``snapshot``."""
        return self._place.scope.version_that_made(snapshot)

    def stream_version(self) -> int:
        """The version of the stream's own table: 0 after its first update, -1 before it."""
        return self._place.scope.state().table_version(self._place.name)

    def row_count(self, version: Point | None = None, *, stream_version: int | None = None) -> int:
        """The number of current rows, now or at a version."""
        return row_count(self._snapshot(version, None, stream_version))

    def byte_count(self, version: Point | None = None, *, stream_version: int | None = None) -> int:
        """The bytes of the data files, now or at a version."""
        return self._snapshot(version, None, stream_version).size

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


def changes_between(before: Snapshot | None, after: Snapshot) -> pa.Table:
    """The row changes between two snapshots, as of ``Stream.changes``; ``before`` None: all are inserts."""
    return snapshot_changes(before, after, stored_key(after.metadata) or ())
