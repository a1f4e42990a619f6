"""Scopes of reading and changing: a tenant, an open job, or a past version.

``Stream`` and ``Files`` work with any of the three. They read the scope's state and change it through
``changing()``: on a tenant this is a job of one change, in a job the job itself, and a past version
refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import InvalidOption, VersionNotFound
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log import Snapshot
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.table.reader import moment
from freezeframe.store.tenant_log.history import Point, version_at_point
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import stream_base, table_snapshot
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState
from freezeframe.store.transaction.transaction import TenantPlace
from freezeframe.store.transaction.unit_of_work import UnitOfWork


class TenantScope:
    """The current tenant; each change is a job of its own."""

    def __init__(self, place: TenantPlace) -> None:
        self.place = place

    @property
    def storage(self) -> Storage:
        """The tenant's storage."""
        return self.place.storage

    @property
    def log(self) -> TenantLog:
        """The tenant's log."""
        return self.place.log

    @property
    def engine(self) -> TableEngine:
        """The engine."""
        return self.place.engine

    @property
    def settings(self) -> Settings:
        """The settings of the process."""
        return self.place.settings

    def state(self, version: Point | None = None, as_of: datetime | str | None = None) -> TenantState:
        """The tenant now, at a version (by number, tag or moment), or at a moment."""
        if version is None and as_of is None:
            return self.present()
        if version is not None and as_of is not None:
            raise InvalidOption(
                "version and as_of cannot be used together.",
                cause="Each of them says by itself which version is meant.",
                remedy="Give one of them.",
            )
        newest = self.log.current_state()
        point: Point = moment(as_of) if as_of is not None else version  # type: ignore[assignment]  # one is given
        return listed_state(self.log, newest, version_at_point(self.log, newest, point))

    def present(self) -> TenantState:
        """The state for calls without a version."""
        return self.log.current_state()

    def snapshot(
        self, name: StreamName, past: TenantState | None = None, stream_version: int | None = None
    ) -> Snapshot:
        """The stream's table in the scope, at a past state, or at an older stream version."""
        state = self.present() if past is None else past
        return table_snapshot(self.storage, state, name, stream_version)

    def version_of(self, name: StreamName) -> int:
        """The tenant version of the stream's last change in the scope; -1 where there is no stream."""
        if self.present().table_version(name) < 0:
            return NO_VERSION
        return self.version_that_made(self.snapshot(name))

    def version_that_made(self, table: Snapshot) -> int:
        """The tenant version of the last commit in a stream's table."""
        made = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=table.timestamp)
        state = self.present()
        with suppress(VersionNotFound):  # a clone's table is older than the tenant
            return min(self.log.version_at(made), state.version)
        return state.kept_from()

    def base(self, name: StreamName) -> Snapshot:
        """The base of a change of the stream; version -1 where there is no stream yet."""
        return stream_base(self.storage, self.log, self.log.current_state(), name)

    def note_read(self, read: StreamName | FilePath) -> None:
        """Does nothing: outside of a job, reads do not precede a write."""

    @contextmanager
    def change(self, stream: StreamName | None = None) -> Iterator[UnitOfWork]:
        """A job of one change (of ``stream``, if given), committed at the end of the block."""
        with commit_at_end(UnitOfWork(self.place, is_single=True, stream=stream)) as work:
            yield work


class JobScope(TenantScope):
    """An open job: the tenant when the job began, with the job's own changes."""

    def __init__(self, place: TenantPlace, work: UnitOfWork) -> None:
        super().__init__(place)
        self._work = work

    def present(self) -> TenantState:
        """The state within the job."""
        return self._work.state()

    def snapshot(
        self, name: StreamName, past: TenantState | None = None, stream_version: int | None = None
    ) -> Snapshot:
        """See ``TenantScope.snapshot``; without a past state, the stream within the job."""
        if past is not None:
            return super().snapshot(name, past, stream_version)
        return self._work.snapshot(name, stream_version)

    def version_of(self, name: StreamName) -> int:
        """See ``TenantScope.version_of``; streams changed by the job have its future version."""
        made = self._work.version_to_make(name)
        return super().version_of(name) if made is None else made

    def base(self, name: StreamName) -> Snapshot:
        """See ``TenantScope.base``."""
        state = self._work.state()
        if state.table_version(name) >= 0:
            return self._work.snapshot(name)
        return stream_base(self.storage, self.log, state, name)

    def note_read(self, read: StreamName | FilePath) -> None:
        """Record a read, which later writes of the job to this stream or file may depend on."""
        self._work.note_read(read)

    @contextmanager
    def change(self, stream: StreamName | None = None) -> Iterator[UnitOfWork]:  # noqa: ARG002 - it is open already
        """The job itself: its end commits."""
        if self._work.is_over:
            raise InvalidOption(
                "This job is over.",
                cause="Its 'with' block has been left.",
                remedy="Begin a new job, or change the tenant directly.",
            )
        yield self._work


class MomentScope(TenantScope):
    """A past version, read-only."""

    def __init__(self, place: TenantPlace, state: TenantState) -> None:
        super().__init__(place)
        self._state = state

    def present(self) -> TenantState:
        """The state of that version."""
        return self._state

    def base(self, name: StreamName) -> Snapshot:
        """See ``TenantScope.base``."""
        return table_snapshot(self.storage, self._state, name)

    @contextmanager
    def change(self, stream: StreamName | None = None) -> Iterator[UnitOfWork]:  # noqa: ARG002 - whichever it is
        """Refused."""
        raise InvalidOption(
            f"Version {self._state.version} of the tenant is the past and cannot be changed.",
            remedy="Change the tenant itself; restore(version) brings the past back as a new version.",
        )
        yield Any  # type: ignore[unreachable]  # what makes this a generator


@contextmanager
def commit_at_end(work: UnitOfWork) -> Iterator[UnitOfWork]:
    """Commit ``work`` when the block ends without an error; else undo it."""
    try:
        yield work
        work.commit()
    except BaseException as error:
        work.abandon(error)
        raise


def listed_state(log: TenantLog, newest: TenantState, version: int | None) -> TenantState:
    """The state of a listed version."""
    if version is None or version == newest.version:
        return newest
    if version >= 0 and version <= newest.version and not newest.is_listed(version):
        raise VersionNotFound(
            f"Version {version} of the tenant is no longer kept.",
            cause=f"By its retention policy, or an erasure, versions from {newest.floor} on are.",
            remedy="Read a version that its history lists.",
            version=version,
        )
    try:
        return log.state_at(version)
    except VersionNotFound as error:
        if 0 <= version <= newest.version:
            raise
        # The log's messages name files that a tenant's user does not know.
        raise VersionNotFound(
            f"The tenant has no version {version}.",
            cause=f"Its newest is {newest.version}." if newest.version >= 0 else "Nothing was kept yet.",
            remedy="Read a version that its history lists.",
            version=version,
        ) from error
