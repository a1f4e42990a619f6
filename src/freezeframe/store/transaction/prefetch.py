"""Prefetches a job's first reads concurrently: log, format, table."""

from __future__ import annotations

from dataclasses import dataclass

from freezeframe.clock import now_ms
from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog
from freezeframe.storage import Storage
from freezeframe.storage.concurrency import run_concurrently
from freezeframe.store.directory.format import require_known_format
from freezeframe.store.directory.paths import table_folder
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import TenantState


@dataclass(frozen=True, slots=True)
class Prefetched:
    """Result of a job's first reads, each done once at about the same time."""

    state: TenantState
    has_format: bool
    """Whether the directory is known to be of the present format, so that it need not be written."""
    stream: StreamName | None
    """The stream whose table was looked at beside the log."""
    moment_ms: int
    """Before the looks."""

    def looked_at(self, name: StreamName) -> int | None:
        """The time of the table's read; None if it was not read."""
        return self.moment_ms if name == self.stream else None


def prefetch(storage: Storage, log: TenantLog, stream: StreamName | None) -> Prefetched:
    """Prefetch the tenant's state for a job, with the table of ``stream`` if it is given.

    Raises:
        FormatTooNew, CorruptLog: the tenant cannot be changed by this version, or is damaged.
        StorageUnavailable: it could not be looked at.
    """
    moment = now_ms()
    tables = (
        () if stream is None else (lambda: DeltaLog.for_table_with_snapshot(storage, table_folder(stream)),)
    )
    state, has_format, *_ = run_concurrently(
        storage, log.current_state, lambda: require_known_format(storage), *tables
    )
    return Prefetched(state, has_format, stream, moment)
