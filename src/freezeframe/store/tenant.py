"""A tenant: everything that is kept for one customer, reached through one log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from freezeframe.engine.base import TableEngine
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.entries import Counts, Entry
from freezeframe.store.format import require_known_format
from freezeframe.store.job import Job, open_job
from freezeframe.store.scope import TenantScope
from freezeframe.store.stream import Stream
from freezeframe.store.tenant_log import TenantLog
from freezeframe.store.transaction import TenantPlace


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version of a tenant: when, by which job, and what became of each stream's rows."""

    version: int
    timestamp: datetime
    job_id: str | None
    message: str
    streams: dict[str, Counts]

    def to_json(self) -> dict[str, Any]:
        """The entry as JSON values; the moment is RFC 3339."""
        return {
            "version": self.version,
            "timestamp": self.timestamp.isoformat().replace("+00:00", "Z"),
            "jobId": self.job_id,
            "message": self.message,
            "streams": {name: counts.to_json() for name, counts in self.streams.items()},
        }


class Tenant:
    """One tenant's snapshot directory. Cheap to make; nothing is written before the first update."""

    def __init__(self, storage: Storage, engine: TableEngine, settings: Settings) -> None:
        require_known_format(storage)
        self._place = TenantPlace(storage, TenantLog(storage, settings), engine, settings)
        self._scope = TenantScope(self._place)

    def __repr__(self) -> str:
        return f"Tenant({self._place.storage.root!r})"

    @property
    def version(self) -> int:
        """The newest tenant version, -1 before the first commit."""
        return self._scope.state().version

    def stream(self, name: str | StreamName) -> Stream:
        """The stream of that name, whether or not it exists yet.

        Raises:
            InvalidName: no stream can have that name.
        """
        return Stream(name if isinstance(name, StreamName) else StreamName(name), self._scope)

    def job(
        self, job_id: str | None = None, *, message: str | None = None, who: str | None = None
    ) -> AbstractContextManager[Job]:
        """A job: all that is changed in its ``with`` block becomes visible at once, or not at all.

        With a ``job_id`` (unique for each run) the job is done once: when it comes again with the same
        input, it changes nothing and has the receipt of the first time. Ids are remembered for
        ``job_id_days``. ``message`` and ``who`` go into the history.

        Raises:
            IdempotencyConflict: the id is committed with other input.
            ConflictError: others changed what the job read and then wrote, or a file that it wrote.
            JobRevoked: the job stood still for so long that it was declared dead.
            OutcomeUnknown: the answer of the commit was lost; it is there whole or not at all.
        """
        return open_job(self._place, job_id, message=message, who=who)

    def streams(self, version: int | None = None) -> tuple[str, ...]:
        """The names of the streams at a tenant version (default: now), sorted."""
        return tuple(sorted(self._scope.state(version).streams))

    def history(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        """The tenant's versions, the newest first, at most ``limit`` of them."""
        newest = self._scope.state().version
        oldest = 0 if limit is None else max(0, newest - limit + 1)
        for version in range(newest, oldest - 1, -1):
            yield _history_entry(version, self._place.log.entry(version))


def _history_entry(version: int, entry: Entry) -> HistoryEntry:
    return HistoryEntry(
        version=version,
        timestamp=datetime.fromtimestamp(entry.timestamp_ms / 1000, UTC),
        job_id=entry.job_id,
        message=entry.message,
        streams={str(change.stream): change.counts for change in entry.streams},
    )
