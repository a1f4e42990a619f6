"""Staged changes of a transaction: one staged table per stream, and the staged files."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote

from freezeframe.clock import now_ms
from freezeframe.engine.frames.rows import Rows
from freezeframe.engine.protocol import QueryBatcher, TableEngine
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log import DeltaLog, Snapshot
from freezeframe.settings import Settings
from freezeframe.storage.read_ahead import run_concurrently
from freezeframe.store.blobs.blob_store import FileNames, SpareNames
from freezeframe.store.diff.counts import net_counts, share_no_key
from freezeframe.store.model.directory import require_known_format, table_folder
from freezeframe.store.model.receipt import Counts, Receipt, join_receipts
from freezeframe.store.model.update_options import KeyedUpdate, Update
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.table.commit import (
    CommitIdentity,
    commit_fields,
    is_same_table,
    net_commit,
    restamp,
    row_metrics,
)
from freezeframe.store.table.staging import StagingFolder, staged_view
from freezeframe.store.tenant_log.entry import FileChange
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import HeldFile, TenantState
from freezeframe.store.updates.update import Change, ChangeResult, StreamUpdate, read_update


@dataclass(slots=True)
class StagedTable:
    """A stream's table at its base version, with the changes of one transaction.

    After any number of changes there is one commit, for version ``base.version + 1``. The changes are kept,
    not only their result: after another writer's commit to the stream, the positions of rows may differ, so
    they are applied again to the new state, with the batches that were read once.
    """

    name: StreamName
    base: Snapshot
    identity: CommitIdentity
    engine: TableEngine
    settings: Settings
    changes: list[Change] = field(default_factory=list)
    results: list[ChangeResult] = field(default_factory=list)
    attempts: list[StagingFolder] = field(default_factory=list)
    intakes: list[StagingFolder] = field(default_factory=list)
    """Folders with batches that Spark wrote; they live as long as the transaction."""
    content: str = ""
    depends_on_rows_read: bool = False
    """Whether rows were read before a change, so that the change may depend on them."""
    was_read: bool = False
    _view: Snapshot | None = None
    _net: Counts | None = None

    @property
    def version(self) -> int:
        """The stream's version inside the transaction."""
        return self.base.version + (1 if self.content else 0)

    @property
    def counts(self) -> Counts:
        """Net row counts of the single commit over all changes; see ``net_counts``."""
        if self._net is None:
            total = sum((result.counts for result in self.results), Counts())
            self._net = total if self._counts_add_up() else net_counts(self.base, self.view(), total)
        return self._net

    def set_counts(self, counts: Counts) -> None:
        """Set the net counts, which are known."""
        self._net = counts

    def _counts_add_up(self) -> bool:
        """Return whether only one change touched rows, or no two of them touched the same row."""
        effective = [result for result in self.results if result.content]
        if not self.content or not all(result.counts_are_net for result in effective):
            return not self.content
        return len(effective) == 1 or share_no_key([result.changed_keys for result in effective])

    def view(self) -> Snapshot:
        """Return the table with the changes so far, visible to this transaction only."""
        if not self.content:
            return self.base
        if self._view is None:
            self._view = self._overlaid(self.content)
        return self._view

    def content_at(self, timestamp_ms: int) -> str:
        """Return the commit with its final timestamp and the metrics of all changes."""
        metrics = row_metrics(self.counts) if len(self.results) > 1 else None
        return restamp(self.content, timestamp_ms, metrics)

    def receipt(self, tenant_version: int) -> Receipt | None:
        """Return the receipt of all updates of the stream; None if it was changed otherwise."""
        receipts = tuple(result.receipt for result in self.results if result.receipt is not None)
        if not receipts:
            return None
        counts = self.counts
        return replace(
            join_receipts(receipts),
            inserted=counts.inserted,
            updated=counts.updated,
            unchanged=counts.unchanged,
            deleted=counts.deleted,
            version=tenant_version,
            stream_version=self.version,
            committed=bool(self.content),
        )

    def with_key(self, update: Update | KeyedUpdate) -> Update:
        """Return the update with the stream's key inside the transaction, if it has none of its own."""
        snapshot = self.view()
        key = stored_key(snapshot.metadata) or () if snapshot.version >= 0 else None
        if not isinstance(update, Update):
            return update(key)
        return update if update.key or update.sets_key or key is None else replace(update, key=key)

    @contextmanager
    def open_batch(
        self, batch: Rows, update: Update, engine: TableEngine | None = None
    ) -> Iterator[StreamUpdate]:
        """Read the batch of an update once; if the block fails, delete the files that were written for it."""
        intake = self._staging_folder("-in")
        try:
            yield read_update(self.name, engine or self.engine, self.settings, batch, update, intake)
        except BaseException:
            intake.discard()
            raise
        self.intakes.append(intake)

    def apply(self, change: Change, *, is_replay: bool = False) -> ChangeResult:
        """Apply a change to the table; a failure leaves the table as it was."""
        staging = self._staging_folder()
        self.attempts.append(staging)
        try:
            result = change(self.view(), staging, self.identity)
            content = self._join(result) if result.content else self.content
        except BaseException:
            staging.discard()
            self.attempts.remove(staging)
            raise
        staging.release()
        if content != self.content:
            self.content, self._view = content, None
        self.results.append(result)
        self._net = None
        if not is_replay:
            self.changes.append(change)
            self.depends_on_rows_read |= self.was_read
        return result

    def _staging_folder(self, part: str = "") -> StagingFolder:
        name = f"{self.identity.write_id}{part}-{uuid.uuid4().hex[:8]}"
        return StagingFolder(self.base, name, is_synced_later=True)

    def replay(self, base: Snapshot) -> None:
        """Apply all changes again, to a newer state of the table."""
        self._discard_attempts()
        self.base, self.content, self._view, self._net = base, "", None, None
        self.results.clear()
        for change in self.changes:
            self.apply(change, is_replay=True)

    def new_files(self) -> tuple[str, ...]:
        """Return the new files of the commit, relative to the table."""
        paths = tuple(path for result in self.results for path in result.paths)
        if len(self.results) <= 1:
            return paths
        # Files of an earlier change that a later one replaced are unreferenced.
        gone = {path for path in paths if path.endswith(".parquet") and quote(path) not in self.content}
        return tuple(path for path in paths if path not in gone)

    def discard(self, keep: Iterable[str] = ()) -> None:
        """Delete all staged files except ``keep``; never raises."""
        kept = tuple(keep)
        self._discard_attempts(kept)
        for intake in self.intakes:
            intake.discard(keep=kept)

    def _discard_attempts(self, keep: Iterable[str] = ()) -> None:
        for staging in self.attempts:
            staging.discard(keep=keep)
        self.attempts.clear()

    def _join(self, result: ChangeResult) -> str:
        """Squash the previous commit and the new one into one."""
        if not self.content:
            return result.content
        final = self._overlaid(self.content, result.content)
        if is_same_table(self.base, final):
            return ""
        info = {**commit_fields(result.content), "operationMetrics": {}}
        return net_commit(self.base, final, info, self.identity)

    def _overlaid(self, *contents: str) -> Snapshot:
        return staged_view(self.base, self.base.version, contents, self.identity.timestamp_ms)


class StagedFiles:
    """Staged file changes of a transaction over its base state; not thread-safe.

    A job may write ten thousand files, and a tenant have more: no call goes through all of them, except
    where another job has committed meanwhile.
    """

    def __init__(self, base: TenantState, timestamp_ms: int, spare: SpareNames) -> None:
        self.changes: dict[str, FileChange] = {}
        self._base_version = base.version
        self._timestamp_ms = timestamp_ms
        self._seen = dict(base.files)
        self._is_shown = False
        self._spare = spare
        self._names: FileNames | None = None
        self._checked: set[str] = set()

    def current_files(self) -> Mapping[str, HeldFile]:
        """Return the files by path, without later changes."""
        self._is_shown = True
        return MappingProxyType(self._seen)

    def add(self, change: FileChange) -> None:
        """Stage a change; a later one of the same path replaces it."""
        if self._is_shown:
            self._seen, self._is_shown = dict(self._seen), False
        self.changes[change.path] = change
        self._seen.pop(change.path, None)
        if change.blob is not None:
            held = (change.blob, change.sha256, change.size, change.sealed)
            self._seen[change.path] = HeldFile(*held, self._base_version, self._timestamp_ms)
        if self._names is not None:
            if change.blob is None:
                self._names.remove(change.path)
            else:
                self._names.add(change.path)

    def require_path(self, path: FilePath, moved: str | None = None) -> None:
        """Refuse a path that conflicts with the current files, except the one being moved."""
        if str(path) not in self._seen:  # an existing file conflicts with none
            if self._names is None:
                self._names = self._spare.take(self._seen.keys())
            if moved is not None:
                self._names.remove(moved)
            try:
                self._names.require(path)
            finally:
                if moved is not None and moved in self._seen:
                    self._names.add(moved)
        self._checked.add(str(path))

    def close(self) -> None:
        """End the transaction and return its path index to the pool."""
        if self._names is not None:
            self._spare.give_back(self._names)
            self._names = None

    def require_paths(self, newest: TenantState) -> None:
        """Repeat the conflict check of all new paths against ``newest``."""
        if newest.version == self._base_version:
            return
        others = [
            path
            for path, held in newest.files.items()
            if held.version > self._base_version and path not in self.changes
        ]
        if not others:
            return
        names = FileNames((*self._seen, *others))
        for path in sorted(self._checked & self._seen.keys()):
            names.require(FilePath(path))


# Runs several updates of one call concurrently and batches their Spark queries.
#
# An update of a few thousand rows spends nearly all its time on a Spark query. A job that updates ten
# streams in one call sends one query instead of ten: see `engine.protocol.query_batcher`.

TOGETHER_MAX = 16
"""Updates at once: more would make Spark's plan long and hold too many rows in memory."""

_Done = TypeVar("_Done")


def run_together(
    engine: TableEngine, works: Sequence[Callable[[TableEngine], _Done]]
) -> list[_Done | Exception]:
    """Call each of ``works`` with the engine to use, and return its result or error, in order.

    They run in threads, so no two of them may touch the same stream.
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
    except Exception as error:  # noqa: BLE001 - the caller raises it once the others have ended
        return error


@dataclass(frozen=True, slots=True)
class Prefetched:
    """Results of a job's first reads."""

    state: TenantState
    has_format: bool
    """Whether the directory has the current format, so that the format need not be written."""
    stream: StreamName | None = None
    """The stream whose table was read as well."""
    moment_ms: int = 0
    """The time before the reads."""

    def read_at(self, name: StreamName) -> int | None:
        """Return the time of the table's read; None if it was not read."""
        return self.moment_ms if name == self.stream else None


def prefetch(log: TenantLog, stream: StreamName | None) -> Prefetched:
    """Prefetch the tenant's state for a job, with the table of ``stream`` if it is given."""
    moment, storage = now_ms(), log.storage
    tables = (
        () if stream is None else (lambda: DeltaLog.for_table_with_snapshot(storage, table_folder(stream)),)
    )
    state, has_format, *_ = run_concurrently(
        storage, log.current_state, lambda: require_known_format(storage), *tables
    )
    return Prefetched(state, has_format, stream, moment)
