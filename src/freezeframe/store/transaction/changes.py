"""What one job changes until its commit: staged tables and files, and the checks of the commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

from freezeframe.engine.protocol import TableEngine
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.diff.tenant_diff import TenantDiff
from freezeframe.store.model.update_options import NO_REQUEST, RequestContext
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.entry import StreamChange, TenantChange
from freezeframe.store.tenant_log.lease import Lease
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import require_no_case_twin, stream_base
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.dry_run import DryRun
from freezeframe.store.transaction.staged import Prefetched, StagedFiles, StagedTable

Check = Callable[[TenantState], None]
"""Raises if changes may not be committed after this state."""
CommitCheck = Callable[[TenantState, "Changes"], None]
"""Raises if these changes may not be committed after this state."""
Review = Callable[[DryRun, TenantDiff], DryRun | None]
"""Sees what would be committed, while its rows and files can be read; None: it may be, else it is held."""


def blob_of(state: TenantState, path: str) -> str:
    """Return the blob of a file; empty: there is no file."""
    return state.files[path].blob if path in state.files else ""


class TenantGuard:
    """Hooks of every job against the deletion of its tenant: at its start, around its commit, at its end.

    Here they do nothing: this is the guard of a tenant outside of a store, which nothing deletes.
    ``folder`` is the tenant's folder in its store.
    """

    folder = ""

    def require_writable(self) -> None:
        """Refuse a read-only tenant; raises ``InvalidOption``."""

    def require_open(self) -> None:
        """Refuse a deleted tenant; raises ``TenantNotFound``."""

    def remove_orphans(self) -> None:
        """Delete files written into a deleted tenant; never raises."""


NO_GUARD = TenantGuard()


@dataclass(frozen=True, slots=True)
class TenantContext:
    """One tenant with the storage, engine and settings for its changes."""

    storage: Storage
    log: TenantLog
    engine: TableEngine
    settings: Settings
    guard: TenantGuard = NO_GUARD
    tenant_id: str = ""
    """Its id in a store; empty for a folder that is no store's."""
    request_context: RequestContext = NO_REQUEST
    checks: tuple[CommitCheck, ...] = ()
    """Checks that each commit has to pass: conditions and limits of a request."""
    after_commit: Callable[[TenantContext, int, str, Collection[str]], None] = lambda *_: None
    """Called after each commit with its version, its kind and the streams that changed; it does not fail."""
    review: Review | None = None
    """Called before the commit of a job; the job that it does not let through is held."""
    is_dry_run: bool = False
    """Whether the job is discarded after its review."""


class Changes:
    """The changes of one job: staged on a base, for one commit."""

    def __init__(
        self, context: TenantContext, base: TenantState, identity: CommitIdentity, begun: Prefetched
    ) -> None:
        self.context = context
        self.base = base
        self.identity = identity
        self.tables: dict[str, StagedTable] = {}
        self.files = StagedFiles(base, identity.timestamp_ms, context.log.spare_names)
        self.files_read: set[str] = set()
        self.streams_missed: set[str] = set()
        self.tenant: TenantChange | None = None
        self.taken_over: dict[str, StreamChange] = {}
        """Changes that were made outside of the tenant log, by stream."""
        self.restored: int | None = None
        """The version that the changes restore, if they are a restoration."""
        self.checks: list[Check] = []
        self.commit_checks: list[CommitCheck] = [*context.checks]
        self.token = ""
        """Names a run of the job; revoked when the job is taken over."""
        self.is_single = False
        """Whether this is a single call outside of a job, whose writes of files may follow others."""
        self.may_be_committed = False
        self.is_held = False
        """Whether its staged files stay without a commit."""
        heartbeat_seconds = context.settings.lease_heartbeat_seconds
        self.lease = Lease(context.storage, self.write_id, identity.job_id, heartbeat_seconds)
        self._begun = begun

    @property
    def write_id(self) -> str:
        """The id in the names of all staged files."""
        return self.identity.write_id

    @property
    def changed_tables(self) -> dict[str, StagedTable]:
        """The tables that get a new version, by stream."""
        return {name: table for name, table in self.tables.items() if table.content}

    @property
    def is_empty(self) -> bool:
        """Whether there are no changes to commit."""
        return not (self.changed_tables or self.files.changes or self.tenant or self.taken_over)

    @property
    def changed_streams(self) -> tuple[str, ...]:
        """The names of the streams that get a new version; of a dropped one its table does."""
        return tuple(sorted(self.changed_tables.keys() | self.taken_over.keys()))

    def changes_existing(self, state: TenantState) -> bool:
        """Return whether a stream or file of ``state`` is changed or removed."""
        streams = self.changed_tables.keys()
        return not (streams.isdisjoint(state.streams) and self.files.changes.keys().isdisjoint(state.files))

    def added_bytes(self, state: TenantState) -> int:
        """Return by how many bytes the tenant grows if this is committed after ``state``."""
        replaced = [state.files[path].size for path in self.files.changes if path in state.files]
        streams = [table.view().size - table.base.size for table in self.changed_tables.values()]
        return sum(change.size for change in self.files.changes.values()) - sum(replaced) + sum(streams)

    def state(self) -> TenantState:
        """Return the state that the job sees: its base, with its own changes."""
        fresh = {name: table.version for name, table in self.changed_tables.items()}
        streams = {**self.base.streams, **fresh} if fresh else self.base.streams
        return replace(self.base, streams=MappingProxyType(streams), files=self.files.current_files())

    def seen(self, newest: TenantState) -> tuple[dict[str, str], dict[str, str]]:
        """Return the tables that the job read, looked for or changes, and the files, as it saw them.

        These are the identity of each table and the blob of each file, empty where there was none.
        ``newest`` is the state on which the changes are rebased.
        """
        streams = dict.fromkeys(sorted(self.streams_missed), "")
        for name, table in self.tables.items():
            state = newest if table.changes else self.base
            streams[name] = table.base.identity if name in state.streams else ""
        paths = self.files.changes.keys() | self.files_read
        return streams, {path: blob_of(self.base, path) for path in sorted(paths)}

    def table(self, name: StreamName) -> StagedTable:
        """Return the staged table of the stream."""
        table = self.tables.get(str(name))
        if table is None:
            if str(name) not in self.base.streams:
                require_no_case_twin({*self.base.streams, *self.tables}, name)
            context = self.context
            since = self._begun.read_at(name)
            base = stream_base(context.log, self.base, name, since)
            table = StagedTable(name, base, self.identity, context.engine, context.settings)
            self.tables[str(name)] = table
        return table

    def staging_folders(self) -> Iterator[StagingFolder]:
        """Return the folders with the new files of all tables."""
        return (folder for table in self.tables.values() for folder in (*table.attempts, *table.intakes))

    def require(self, check: CommitCheck) -> None:
        """Add a check of the changes and of the state that their commit follows."""
        self.commit_checks.append(check)
