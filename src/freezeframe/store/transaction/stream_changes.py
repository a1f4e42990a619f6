"""Changes of streams within a transaction."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

from freezeframe.clock import now_ms
from freezeframe.engine.protocol import QueryBatcher, TableEngine
from freezeframe.errors import ConflictError
from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog, Snapshot
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import run_concurrently
from freezeframe.store.diff.counts import net_counts, share_no_key
from freezeframe.store.model.directory import require_known_format, table_folder
from freezeframe.store.model.receipt import Counts
from freezeframe.store.table.commit import (
    CommitIdentity,
    commit_fields,
    is_same_table,
    net_commit,
    restamp,
    row_metrics,
)
from freezeframe.store.table.staging import StagingFolder, staged_view
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.updates.update_step import Step, StepResult

# Changes of one stream in a transaction, and the commit that results.
#
# The transaction retains the steps, not only their result. After another writer's commit to the stream
# the positions of rows may differ, so the steps run again on the new state, with the rows that they
# read once.


@dataclass(slots=True)
class StagedStream:
    """A stream's table at its base version, and the steps of this transaction on it.

    After any number of steps there is one commit, for version ``base.version + 1``.
    """

    name: StreamName
    storage: Storage
    engine: TableEngine
    identity: CommitIdentity
    base: Snapshot
    steps: list[Step] = field(default_factory=list)
    results: list[StepResult] = field(default_factory=list)
    attempts: list[StagingFolder] = field(default_factory=list)
    content: str = ""
    rests_on_read: bool = False
    """Whether rows were read before a step, so that the step's rows may be made from them."""
    was_read: bool = False
    _view: Snapshot | None = None
    _net: Counts | None = None

    @property
    def folder(self) -> str:
        """The stream's table."""
        return table_folder(self.name)

    @property
    def version(self) -> int:
        """The stream's version inside the transaction."""
        return self.base.version + (1 if self.content else 0)

    @property
    def counts(self) -> Counts:
        """Net row counts of the single commit over all steps; see ``net_counts``."""
        if self._net is None:
            steps = sum((result.counts for result in self.results), Counts())
            self._net = steps if self._counts_add_up() else self._compared_counts(steps)
        return self._net

    def _counts_add_up(self) -> bool:
        """Whether only one step changed rows, or no two of them changed the same one."""
        changes = [result for result in self.results if result.content]
        if not self.content or not all(result.is_net for result in changes):
            return not self.content
        return len(changes) == 1 or share_no_key([result.changed_keys for result in changes])

    def _compared_counts(self, steps: Counts) -> Counts:
        # A restoration and its like need no Spark, so they start none to be counted.
        is_update = all(result.is_net for result in self.results if result.content)
        return net_counts(self.base, self.view(), steps, self.engine if is_update else None)

    def view(self) -> Snapshot:
        """The table with the steps so far, visible to this transaction only."""
        if not self.content:
            return self.base
        if self._view is None:
            self._view = self._overlaid(self.content)
        return self._view

    def content_at(self, timestamp_ms: int) -> str:
        """The commit with its final timestamp and the metrics of all steps."""
        metrics = row_metrics(self.counts) if len(self.results) > 1 else None
        return restamp(self.content, timestamp_ms, metrics)

    def add(self, step: Step) -> StepResult:
        """Execute one more step; a failure leaves the stream as before it."""
        result = self._carry_out(step)
        self.steps.append(step)
        self.rests_on_read |= self.was_read
        return result

    def replay(self, base: Snapshot) -> None:
        """Execute all steps again on a newer state of the table."""
        self.discard(keep_intakes=True)
        self.base, self.content, self._view, self._net = base, "", None, None
        self.results.clear()
        for step in self.steps:
            self._carry_out(step)

    def new_files(self) -> tuple[str, ...]:
        """The new files of the commit, relative to the table."""
        paths = tuple(path for result in self.results for path in result.paths)
        if len(self.results) <= 1:
            return paths
        # Files of an earlier step that a later one replaced are unreferenced.
        gone = {path for path in paths if path.endswith(".parquet") and quote(path) not in self.content}
        return tuple(path for path in paths if path not in gone)

    def discard(self, keep: Iterable[str] = (), *, keep_intakes: bool = False) -> None:
        """Delete the files of all attempts except ``keep``; never raises."""
        kept = tuple(keep)
        for staging in self.attempts:
            staging.discard(keep=kept)
        self.attempts.clear()
        if not keep_intakes:
            for step in self.steps:
                if step.intake is not None:
                    step.intake.discard(keep=kept)

    def _carry_out(self, step: Step) -> StepResult:
        self._require_version(step)
        staging = StagingFolder(self.storage, self.folder, f"{self.identity.write_id}-{uuid.uuid4().hex[:8]}")
        self.attempts.append(staging)
        try:
            result = step.carry_out(self.view(), staging, self.identity)
            content = self._join(result) if result.content else self.content
        except BaseException:
            staging.discard()
            self.attempts.remove(staging)
            raise
        if content != self.content:
            self.content, self._view = content, None
        self.results.append(result)
        self._net = None
        return result

    def _join(self, result: StepResult) -> str:
        """The previous commit and the new one, squashed into one."""
        if not self.content:
            return result.content
        final = self._overlaid(self.content, result.content)
        if is_same_table(self.base, final):
            return ""
        info = {**commit_fields(result.content), "operationMetrics": {}}
        return net_commit(self.base, final, info, self.identity)

    def _overlaid(self, *contents: str) -> Snapshot:
        storage, moment = self.base.storage, self.identity.timestamp_ms
        return staged_view(storage, self.folder, self.base.version, contents, moment)

    def _require_version(self, step: Step) -> None:
        expected = step.expected_version
        if expected is not None and expected != self.version:
            raise ConflictError(
                f"The stream {str(self.name)!r} is at version {self.version}, not at {expected} any more.",
                cause="Another job changed it after the rows of this call were made from it.",
                remedy="Read it again and repeat the call; nothing of it was written.",
                stream=str(self.name),
                version=self.version,
            )


# Runs several updates of one call concurrently and batches their Spark queries.
#
# An update of a few thousand rows spends nearly all its time on a Spark query. A job that updates ten
# streams
# in one call sends one query in place of ten: see `engine.protocol.QueryBatcher`.

TOGETHER_MAX = 16
"""So many at once: more would make Spark's plan long and hold more rows than one update at a time."""

_Done = TypeVar("_Done")


def run_together(
    engine: TableEngine, works: Sequence[Callable[[TableEngine], _Done]]
) -> list[_Done | Exception]:
    """The result or error of each work, in order; each work receives the engine to use.

    They are done in threads, so no two of them may touch the same stream.
    """
    outcomes: list[_Done | Exception] = []
    for begin in range(0, len(works), TOGETHER_MAX):
        group = works[begin : begin + TOGETHER_MAX]
        meeting = QueryBatcher(engine, len(group))
        with ThreadPoolExecutor(len(group)) as pool:
            outcomes += pool.map(lambda work, meeting=meeting: _outcome(work, meeting), group)
    return outcomes


def _outcome(work: Callable[[TableEngine], _Done], meeting: QueryBatcher) -> _Done | Exception:
    try:
        with meeting.party():
            return work(meeting)
    except Exception as error:  # noqa: BLE001 - the caller raises it, once the others have come to an end
        return error


# Prefetches a job's first reads concurrently: log, format, table.


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
    """Prefetch the tenant's state for a job, with the table of ``stream`` if it is given."""
    moment = now_ms()
    tables = (
        () if stream is None else (lambda: DeltaLog.for_table_with_snapshot(storage, table_folder(stream)),)
    )
    state, has_format, *_ = run_concurrently(
        storage, log.current_state, lambda: require_known_format(storage), *tables
    )
    return Prefetched(state, has_format, stream, moment)
