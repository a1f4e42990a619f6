"""Scope of a tenant: now, within an open job, or at a past version.

``Stream`` and ``Files`` work with any of the three. They read the scope's state and change it in
``change()``: on the tenant of now this is a job of one change, in a job the job itself, and a past version
refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from freezeframe.errors import InvalidOption, ReportDamage, VersionNotFound
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log import Snapshot
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.table.reader import moment
from freezeframe.store.tenant_log.history import Point, Version, require_one_version
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import stream_base, table_snapshot
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.transaction import Transaction

_T = TypeVar("_T")


class Scope:
    """A tenant as it is now; with a ``transaction`` as that job sees it; with ``past`` as it was then.

    ``turn`` is held during each call to the transaction, where several threads share the scope.
    """

    def __init__(
        self,
        context: TenantContext,
        transaction: Transaction | None = None,
        *,
        past: TenantState | None = None,
        turn: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.context = context
        self.transaction = transaction
        self._past = past
        self._turn = turn or nullcontext()

    @property
    def storage(self) -> Storage:
        """The tenant's storage."""
        return self.context.storage

    @property
    def log(self) -> TenantLog:
        """The tenant's log."""
        return self.context.log

    @property
    def settings(self) -> Settings:
        """The settings of the process."""
        return self.context.settings

    def state(
        self,
        version: Point | None = None,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> TenantState:
        """Return the scope's state, or that at a version (number, tag or moment), or at a moment."""
        require_one_version({"version": version, "as_of": as_of, "tenant_version": tenant_version})
        given = tenant_version if version is None else version
        if as_of is not None:
            given = moment(as_of)
        if given is None:
            return self._present()
        newest = self.log.current_state()
        return listed_state(self.log, newest, Version.parse(given).find(self.log, newest))

    def snapshot(
        self, name: StreamName, past: TenantState | None = None, stream_version: int | None = None
    ) -> Snapshot:
        """Return the stream's table in the scope, at a past state, or at an older stream version."""

        def load() -> Snapshot:
            with self._turn:
                if past is None and self.transaction is not None:
                    return self.transaction.snapshot(name, stream_version)
                return table_snapshot(self.log, past or self._present(), name, stream_version)

        return self.reading(load)

    def table_before(self, name: StreamName, since: Point | None) -> Snapshot | None:
        """Return the stream's table at a version of the tenant; None where the stream did not exist."""
        if since is None:
            return None
        state = self.state(since)
        return self.snapshot(name, state) if str(name) in state.streams else None

    def reading(self, read: Callable[[], _T]) -> _T:
        """Return ``read()``, again if an erasure or gc deleted the files of the version that it read.

        Raises:
            VersionNotFound: the scope's own version, or the one that ``read`` names, is no longer kept.
            ConflictError: it is gone, and the scope is a job's.
        """
        known = self.log.current_snapshot.state
        while True:
            try:
                return read()
            except (ReportDamage, VersionNotFound) as error:
                if self.transaction is not None:
                    self.transaction.require_kept(error)
                    raise
                newest = self.log.current_state()
                if self._past is not None:
                    listed_state(self.log, newest, self._past.version)
                if newest.has_same_past(known):
                    raise
                known = newest

    def version_of(self, name: StreamName) -> int:
        """Return the tenant version of the stream's last change in the scope; -1 if there is no stream.

        For a stream that the job has changed it is the version that the job creates, if no other job commits
        before it.
        """
        if self.transaction is not None:
            table = self.transaction.tables.get(str(name))
            if table is not None and table.content:
                return self.transaction.base.version + 1
        if self._present().table_version(name) < 0:
            return NO_VERSION
        return self.version_that_made(self.snapshot(name))

    def version_that_made(self, table: Snapshot) -> int:
        """Return the tenant version of the last commit in a stream's table."""
        made = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=table.timestamp)
        state = self._present()
        with suppress(VersionNotFound):  # a clone's table is older than the tenant
            return min(self.log.version_at(made), state.version)
        return state.kept_from()

    def base(self, name: StreamName) -> Snapshot:
        """Return the base of a change of the stream; version -1 if there is no stream yet."""
        with self._turn:
            state = self._present()
            if self._past is not None:
                return table_snapshot(self.log, state, name)
            if self.transaction is not None and state.table_version(name) >= 0:
                return self.transaction.snapshot(name)
            return stream_base(self.log, state, name)

    def note_read(self, read: StreamName | FilePath) -> None:
        """Record a read in a job, which later writes of the job to this stream or file may depend on."""
        if self.transaction is not None:
            self.transaction.note_read(read)

    def require_now(self) -> TenantContext:
        """Refuse a call that neither a job nor a past version supports."""
        if self.transaction is not None or self._past is not None:
            raise InvalidOption(
                "This is not possible inside a job, or for an earlier version.",
                remedy="Call it on the tenant's own stream: tenant.stream(name).",
            )
        return self.context

    @contextmanager
    def change(self, stream: StreamName | None = None) -> Iterator[Transaction]:
        """Open the transaction of a change (of ``stream``, if given), which is committed with the block.

        In a job it is the job's own, which the end of the job commits.
        """
        if self._past is not None:
            raise InvalidOption(
                f"Version {self._past.version} of the tenant is an earlier version and cannot be changed.",
                remedy="Change the tenant itself; restore(version) restores it as a new version.",
            )
        if self.transaction is None:
            with Transaction(self.context, is_single=True, stream=stream) as transaction:
                yield transaction
            return
        with self._turn:
            if self.transaction.is_over:
                raise InvalidOption(
                    "This job is over.",
                    cause="Its 'with' block has been left.",
                    remedy="Begin a new job, or change the tenant directly.",
                )
            yield self.transaction

    def _present(self) -> TenantState:
        """Return the state for calls without a version."""
        if self._past is not None:
            return self._past
        if self.transaction is None:
            return self.log.current_state()
        with self._turn:
            return self.transaction.state()


def listed_state(log: TenantLog, newest: TenantState, version: int | None) -> TenantState:
    """Return the state of a listed version."""
    if version is None or version == newest.version:
        return newest
    if version >= 0 and version <= newest.version and not newest.is_listed(version):
        raise VersionNotFound(
            f"Version {version} of the tenant is no longer kept.",
            cause=f"Its retention or an erasure deleted it; versions from {newest.floor} on are kept.",
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
