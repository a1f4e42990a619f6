"""What jobs that ran again in a copy of the tenant would have made of it, as changes of what stands now.

Three sides of each cell: what the jobs made, what their replay made in the copy, and now. A cell that is
still as the jobs made it becomes what the replay made; one that was changed since stays, by the rule of
``revert``. A stream that nobody changed since becomes what it is in the copy, also where its rows cannot be
matched.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from freezeframe.errors import InvalidName, TooLarge
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.diff.delivery_state import delivery_states
from freezeframe.store.diff.tenant_diff import differing
from freezeframe.store.files import Files
from freezeframe.store.maintenance.revert import (
    Fate,
    Selection,
    StreamPlan,
    StreamReversion,
    by_cells,
    content_of,
    is_unchanged,
    reason_to_stay,
    stage_plans,
    stay,
)
from freezeframe.store.model.directory import snapshot_paths
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import arrow_columns, stored_key, written_columns
from freezeframe.store.table.commit import (
    CommitIdentity,
    commit_info,
    replacing_commit,
    row_metrics,
)
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant import Job, Tenant
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import stream_base, table_snapshot
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState
from freezeframe.store.transaction.transaction import Transaction
from freezeframe.store.updates.update import ChangeResult


@dataclass(frozen=True, slots=True)
class Made:
    """What the jobs made: the states before and after them, and the streams and files that they changed."""

    before: TenantState
    after: TenantState
    streams: Collection[str]
    files: Collection[str]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was staged of a replay: the effect on each stream, and the files that were changed again since."""

    streams: Mapping[str, StreamReversion]
    files_kept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Copy:
    """The copy's log, and its states before and after the replay."""

    log: TenantLog
    begun: TenantState
    done: TenantState


def stage_replay(job: Job, made: Made, copy: Tenant) -> Replayed:
    """Stage in a job what leads from now to what a replay made in a copy of the tenant.

    The copy's version 0 is what the jobs began with, if there was anything. What the changes rest on counts
    as read: the job cannot be committed if others change it meanwhile.
    """
    begun = TenantState() if made.before.version == NO_VERSION else copy.scope.state(0)
    ended = _Copy(copy.context.log, begun, copy.scope.state())
    with job.scope.change() as transaction:
        plans = _plan_streams(transaction, made, ended)
        stage_plans(transaction, plans, _Replacing)
        wholes = {name for name, plan in plans.items() if plan.is_whole}
        kept = _stage_files(transaction, job, made, (ended, Files(copy.scope)), wholes)
    return Replayed({name: plan.effect for name, plan in plans.items()}, kept)


def _plan_streams(transaction: Transaction, made: Made, copy: _Copy) -> dict[str, StreamPlan]:
    """Return what becomes of each stream that the jobs or their replay changed."""
    names = sorted({*made.streams, *differing(copy.begun.streams, copy.done.streams)})
    for name in names:
        transaction.note_read(StreamName(name))
    delivered = {
        found
        for log, state in ((transaction.context.log, made.after), (copy.log, copy.done))
        for found in delivery_states(
            filter(state.streams.__contains__, names), functools.partial(table_snapshot, log, state)
        )
    }
    plans = {
        name: stay("it is what a target accepted, which still has it")
        if name in delivered
        else _plan_stream(transaction, made, copy, StreamName(name))
        for name in names
    }
    return {name: plan for name, plan in plans.items() if plan is not None}


def _stage_files(
    transaction: Transaction, job: Job, made: Made, copied: tuple[_Copy, Files], wholes: Collection[str]
) -> tuple[str, ...]:
    """Stage what becomes of each file that the jobs or their replay changed; return those that stay."""
    (copy, files), now = copied, transaction.base
    of_rows = {
        path for name in (now.streams.keys() | copy.done.streams.keys()) for path in snapshot_paths(name)
    }
    of_rows -= {path for name in wholes for path in snapshot_paths(name)}
    kept = []
    for path in sorted({*made.files, *differing(copy.begun.files, copy.done.files)} - of_rows):
        transaction.note_read(FilePath(path))
        # A sealed file has other bytes in the copy, also where nothing changed it.
        is_as_begun = copy.begun.files.get(path) == copy.done.files.get(path)
        was, after = (made.before if is_as_begun else copy.done).files.get(path), made.after.files.get(path)
        mine, theirs, current = map(content_of, (was, after, now.files.get(path)))
        if current != theirs or mine == theirs:
            kept += [path] if mine not in (current, theirs) else []
        elif was is None:
            job.files.delete(path)
        else:
            try:
                job.files.write(path, files.chunks(path), sealed=was.sealed)
            except InvalidName:  # a folder of that name is there now, or another spelling
                kept.append(path)
    return tuple(kept)


def _plan_stream(transaction: Transaction, made: Made, copy: _Copy, name: StreamName) -> StreamPlan | None:
    """Return what becomes of a stream; None: it is what the replay made."""
    log, now, known = transaction.context.log, transaction.base, str(name)
    after = table_snapshot(log, made.after, name) if known in made.after.streams else None
    if after is not None and known not in now.streams and known not in now.dropped:
        return stay("it was released, so other programs may write to it")
    target = table_snapshot(copy.log, copy.done, name) if known in copy.done.streams else None
    base = stream_base(log, now, name)
    present = base if known in now.streams else None
    others = {*now.streams, *copy.done.streams} - {known}
    is_anywhere = target is not None or present is not None
    if is_anywhere and any(other.casefold() == known.casefold() for other in others):
        return stay("its name differs by case alone from another stream's")
    if now.streams.get(known) == made.after.streams.get(known):
        return _plan_untouched(target, present)
    if after is None or present is None:
        reason = "there is a stream of this name since" if after is None else "it was dropped since"
        return None if target is None else stay(reason)
    reason = reason_to_stay(*(item for item in (target, after, base) if item is not None))
    return stay(reason) if reason else by_cells(target, after, base, Selection())


def _plan_untouched(target: Snapshot | None, present: Snapshot | None) -> StreamPlan | None:
    """Return what becomes of a stream that nobody changed since: the table ``target`` of the copy."""
    if target is None and present is None:
        return None
    if target is None or present is None:
        return _whole("removed" if target is None else "brought back", present, target)
    if not reason_to_stay(target, present) and _has_columns_of(target, present):
        try:
            return by_cells(target, present, present, Selection())
        except TooLarge:
            return _whole("changed", present, target)
    return _whole("changed", present, target)


def _has_columns_of(target: Snapshot, present: Snapshot) -> bool:
    """Return whether a table has each column of another one, in the same type, and its key."""
    there = {field.name: field.type for field in arrow_columns(target.delta_schema)}
    columns = arrow_columns(present.delta_schema)
    return stored_key(target.metadata) == stored_key(present.metadata) and all(
        there.get(field.name) == field.type for field in columns
    )


def _whole(fate: Fate, present: Snapshot | None, target: Snapshot | None) -> StreamPlan | None:
    comparison, counts = Comparison(present, target), _replaced(present, target)
    if comparison.is_counted():
        counts = comparison.counts()
    if present is not None and target is not None and is_unchanged(present, target, counts):
        return None
    return StreamPlan(StreamReversion(fate, counts, None), target, is_whole=True)


def _replaced(present: Snapshot | None, target: Snapshot | None) -> Counts:
    there, gone = (
        0 if table is None or table.version < 0 else rows.count(table) for table in (target, present)
    )
    return Counts(inserted=there, deleted=gone)


@dataclass(frozen=True, slots=True)
class _Replacing:
    """The change that makes a stream's table what another tenant's is: its rows are written anew."""

    target: Snapshot

    def __call__(self, snapshot: Snapshot, staging: StagingFolder, identity: CommitIdentity) -> ChangeResult:
        staging.prepare()
        schema, counts = written_columns(self.target.delta_schema), _replaced(snapshot, self.target)
        files = staging.seal(staging.write(self._rows(schema["fields"]), schema), schema)
        info = commit_info("REPLAY", {}, identity, row_metrics(counts))
        content = replacing_commit(snapshot, self.target, files, info, identity)
        return ChangeResult(content, counts, tuple(file.path for file in files))

    def _rows(self, fields: list[dict[str, str]]) -> Iterator[pa.Table]:
        for batch in rows.read_batches(self.target, [field["name"] for field in fields]):
            yield pa.Table.from_batches([batch])
