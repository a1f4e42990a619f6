"""Restores an earlier version, or single rows of it, as a new version.

Data files and blobs of retained versions still exist, so a restoration references them again. ``gc`` deletes
only files below a floor set by an earlier entry of the log, and a restoration checks the floor of the state
that it is committed on.
"""

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import (
    ConflictError,
    CorruptData,
    FileNotFound,
    InvalidOption,
    MissingColumn,
    StreamNotFound,
)
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.log.scan.data_files import file_name, read_range
from freezeframe.log.table.row_deletion import VECTORS_KEY, mark_rows
from freezeframe.storage import Storage
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.diff.delivery_state import delivery_states
from freezeframe.store.diff.row_changes import CHANGE_TYPE, DELETE, RowChanges, join_changes
from freezeframe.store.model.directory import blob_file, snapshot_paths
from freezeframe.store.model.json_fields import JsonFields
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import SYSTEM, Author, Update
from freezeframe.store.schema.columns import arrow_columns, read_system_columns, stored_key
from freezeframe.store.schema.type_compatibility import comparison_type
from freezeframe.store.table.commit import (
    CommitIdentity,
    TableChange,
    commit_info,
    commit_text,
    drop_commit,
    is_same_table,
    net_commit,
)
from freezeframe.store.table.keys import positions_of
from freezeframe.store.table.reader import has_vectors
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.entry import FileChange, TenantChange
from freezeframe.store.tenant_log.roll_forward import require_stream, stream_base, table_snapshot
from freezeframe.store.tenant_log.state import JobRecord, TenantState
from freezeframe.store.transaction.changes import Changes, CommitCheck, TenantContext
from freezeframe.store.transaction.commit import check_commit
from freezeframe.store.transaction.scope import listed_state
from freezeframe.store.transaction.transaction import Transaction
from freezeframe.store.updates.update import ChangeResult

Fate = Literal["changed", "brought back", "removed"]
_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, slots=True)
class StreamRestoration(JsonFields):
    """Effect of a restoration on one stream: rows before and after, data files added and removed."""

    fate: Fate
    rows_before: int
    rows_after: int
    files_added: int
    files_removed: int


@dataclass(frozen=True, slots=True)
class Restoration(JsonFields):
    """What restoring ``version`` does, or did: ``committed`` is false for a preview or if nothing differs.

    ``tenant_version`` is the tenant's version after the call. ``deliveries`` names the streams with what
    targets accepted and rejected, which are left as they are: a target still has what it accepted.
    """

    _names = {"version": "restored_version"}  # noqa: RUF012 - declared as ClassVar by the base
    version: int
    tenant_version: int
    committed: bool
    streams: Mapping[str, StreamRestoration]
    files_written: tuple[str, ...]
    files_deleted: tuple[str, ...]
    deliveries: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the restoration changes nothing."""
        return not (self.streams or self.files_written or self.files_deleted)


@dataclass(frozen=True, slots=True)
class _Plan:
    now: TenantState
    then: TenantState
    targets: Mapping[str, Snapshot | None]
    """The table that each differing stream becomes; None: it is removed."""
    files: tuple[FileChange, ...]
    streams: Mapping[str, StreamRestoration]
    deliveries: tuple[str, ...]

    def outcome(self, tenant_version: int, *, committed: bool) -> Restoration:
        written = tuple(change.path for change in self.files if change.blob is not None)
        deleted = tuple(change.path for change in self.files if change.blob is None)
        return Restoration(
            self.then.version, tenant_version, committed, self.streams, written, deleted, self.deliveries
        )


def restore(
    context: TenantContext,
    version: int,
    *,
    streams: Iterable[str] | None = None,
    files: Iterable[str] | None = None,
    dry_run: bool = False,
    author: Author = SYSTEM,
) -> Restoration:
    """Make streams and files what they were at a tenant version; see ``Tenant.restore``."""
    before = None if dry_run else find_committed(context)
    if before is not None:
        return _repeat_restoration(context, version, before, everything=streams is None and files is None)

    def attempt() -> Restoration:
        plan = _plan(context, version, streams, files)
        if dry_run:
            return plan.outcome(plan.now.version, committed=False)
        if not (plan.targets or plan.files):
            check_commit(Transaction(context, base=plan.now), plan.now)
            return plan.outcome(plan.now.version, committed=False)
        return plan.outcome(_commit_plan(context, plan, author), committed=True)

    return plan_and_commit(context, attempt)


def plan_and_commit(context: TenantContext, attempt: Callable[[], _Outcome]) -> _Outcome:
    """Plan and commit by ``attempt``; retry if the tenant is no longer ``at_version``."""
    for _ in range(context.settings.commit_tries_max):
        with suppress(_Moved):
            return attempt()
    raise ConflictError(
        "The tenant kept changing while it was to be restored.",
        cause="Other jobs committed during each try.",
        remedy="Run the call again when they are done; nothing of it was written.",
    )


def at_version(version: int) -> CommitCheck:
    """Return the check that a commit follows the version that it was planned for; see ``plan_and_commit``."""

    def check(state: TenantState, _: Changes) -> None:
        if state.version != version:
            raise _Moved

    return check


def drop_stream(context: TenantContext, name: StreamName, author: Author = SYSTEM) -> int:
    """Remove a stream in a new version; see ``Tenant.drop_stream``."""
    before = find_committed(context)
    if before is not None:
        return before.version
    require_stream(context.log.current_state(), name)
    with Transaction(context, author.for_action(f"drop {name}")) as transaction:
        transaction.apply(name, drop_table)
        # The next run of a script would make the stream of them again.
        for path in snapshot_paths(str(name)):
            if path in transaction.state().files:
                transaction.files.add(FileChange(path, None))
        transaction.stage_tenant(TenantChange(dropped=(str(name),)), "commit")
    return transaction.done.tenant_version


def find_committed(context: TenantContext) -> JobRecord | None:
    """Return the earlier commit of the same request, if its response was lost."""
    return context.log.known_job(context.log.current_state(), context.request_context.job_id)


def _repeat_restoration(
    context: TenantContext, version: int, record: JobRecord, *, everything: bool
) -> Restoration:
    """Return the result of a committed restoration, from the versions before and after it."""
    now = context.log.state_at(record.version - 1) if record.version else TenantState()
    then = context.log.state_at(record.version)
    entry = context.log.entry(record.version)
    effects = {}
    for name in sorted({*(str(change.stream) for change in entry.streams), *entry.tenant.dropped}):
        tables = [
            table_snapshot(context.log, state, StreamName(name)) if name in state.streams else None
            for state in (now, then)
        ]
        effects[name] = _effect(*tables)
    return Restoration(
        version,
        record.version,
        committed=True,
        streams=effects,
        files_written=tuple(change.path for change in entry.files if change.blob is not None),
        files_deleted=tuple(change.path for change in entry.files if change.blob is None),
        deliveries=kept_deliveries(context, then) if everything else (),
    )


class _Moved(Exception):
    """The tenant's version differs from that of the plan."""


def _plan(
    context: TenantContext, version: int, streams: Iterable[str] | None, files: Iterable[str] | None
) -> _Plan:
    now = context.log.current_state()
    then = listed_state(context.log, now, version)
    everything = streams is None and files is None
    names = _all_streams(now, then) if everything else _named_streams(now, then, streams or ())
    delivered = kept_deliveries(context, then, now) if everything else ()
    names = [name for name in names if name not in delivered]
    paths = now.files.keys() | then.files.keys() if everything else _named_files(now, then, files or ())
    # A snapshot file that is newer than its stream would be adopted next, and undo this.
    of_streams = {path for name in names for path in snapshot_paths(name)}
    paths = {*paths, *(of_streams & (now.files.keys() | then.files.keys()))}
    targets: dict[str, Snapshot | None] = {}
    effects: dict[str, StreamRestoration] = {}
    for name in names:
        if now.streams.get(name) == then.streams.get(name):
            continue  # the same version of its table, or at neither
        target = table_snapshot(context.log, then, StreamName(name)) if name in then.streams else None
        base = stream_base(context.log, now, StreamName(name))
        if name in now.streams and target is not None and is_same_table(base, target):
            continue
        require_kept(base, target)
        targets[name] = target
        effects[name] = _effect(base if name in now.streams else None, target)
    changes = tuple(_file_changes(context.storage, now, then, sorted(paths)))
    return _Plan(
        now, then, targets, changes, effects, tuple(name for name in delivered if name in now.streams)
    )


def _commit_plan(context: TenantContext, plan: _Plan, author: Author) -> int:
    version = plan.then.version
    restorer = author.for_action(f"restore version {version}")
    with Transaction(context, restorer, is_single=True) as transaction:
        transaction.restored = version
        transaction.require(at_version(plan.now.version))
        for name, target in plan.targets.items():
            carry_out = drop_table if target is None else Returning(target)
            transaction.apply(StreamName(name), carry_out)
        for change in plan.files:
            transaction.files.add(change)
        dropped = tuple(name for name, target in plan.targets.items() if target is None)
        if dropped:
            transaction.stage_tenant(TenantChange(dropped=dropped), "commit")
    return transaction.done.tenant_version


@dataclass(frozen=True, slots=True)
class Returning:
    """The change that makes a stream's table what it was, without writing rows."""

    target: Snapshot

    def __call__(self, snapshot: Snapshot, _: StagingFolder, identity: CommitIdentity) -> ChangeResult:
        """Return the commit that refers to its files again."""
        counts = Counts(_rows_only_in(self.target, snapshot), deleted=_rows_only_in(snapshot, self.target))
        info = commit_info("RESTORE", {"version": str(self.target.version)}, identity)
        return ChangeResult(net_commit(snapshot, self.target, info, identity), counts)


def drop_table(snapshot: Snapshot, _: StagingFolder, identity: CommitIdentity) -> ChangeResult:
    """Remove a stream's rows, columns and key."""
    info = commit_info("DROP", {}, identity)
    return ChangeResult(drop_commit(snapshot, info, identity), Counts(deleted=rows.count(snapshot)))


def _all_streams(now: TenantState, then: TenantState) -> list[str]:
    names = sorted(now.streams.keys() | then.streams.keys())
    # A released stream is out of custody; the other streams can still be restored.
    return [name for name in names if name in now.streams or name in now.dropped]


def kept_deliveries(context: TenantContext, *states: TenantState) -> tuple[str, ...]:
    """Return the streams that keep what targets answered, now or then: targets are not restored."""
    found = set[str]()
    for state in states:
        found.update(delivery_states(state.streams, functools.partial(table_snapshot, context.log, state)))
    return tuple(sorted(found))


def _named_streams(now: TenantState, then: TenantState, names: Iterable[str]) -> list[str]:
    wanted = sorted({str(StreamName(name)) for name in names})
    for name in wanted:
        if name not in then.streams and name not in now.streams:
            raise StreamNotFound(
                f"There is no stream {name!r}, neither now nor at version {then.version}.",
                remedy="Check the name.",
                stream=name,
            )
        if name not in now.streams and name not in now.dropped:
            raise StreamNotFound(
                f"The stream {name!r} was released from the tenant.",
                cause="Other programs may write to its table.",
                remedy=f"Adopt it first: tenant.adopt({name!r}).",
                stream=name,
            )
    return wanted


def _named_files(now: TenantState, then: TenantState, paths: Iterable[str]) -> set[str]:
    wanted = {str(FilePath(path)) for path in paths}
    for path in wanted - now.files.keys() - then.files.keys():
        raise FileNotFound(
            f"There is no file {path!r}, neither now nor at version {then.version}.",
            remedy="Check the path.",
            path=path,
        )
    return wanted


def _file_changes(
    storage: Storage, now: TenantState, then: TenantState, paths: Iterable[str]
) -> Iterable[FileChange]:
    for path in paths:
        old, new = now.files.get(path), then.files.get(path)
        if new is None:
            yield FileChange(path, None)
        elif old is None or old.blob != new.blob:
            require_there(storage, blob_file(new.blob))
            yield new.to_change(path)


def _effect(before: Snapshot | None, target: Snapshot | None) -> StreamRestoration:
    mine, theirs = _paths(before), _paths(target)
    return StreamRestoration(
        fate="removed" if target is None else "changed" if before is not None else "brought back",
        rows_before=0 if before is None else rows.count(before),
        rows_after=0 if target is None else rows.count(target),
        files_added=len(theirs - mine),
        files_removed=len(mine - theirs),
    )


def _rows_only_in(snapshot: Snapshot, other: Snapshot) -> int:
    if snapshot.version < 0:
        return 0
    known = _paths(other)
    pairs = zip(snapshot.files["path"].to_pylist(), snapshot.files["stats"].to_pylist(), strict=True)
    return sum(json.loads(text or "{}").get("numRecords", 0) for path, text in pairs if path not in known)


def require_kept(base: Snapshot, target: Snapshot | None) -> None:
    """Refuse a target of which a file is gone."""
    for path in sorted(_paths(target) - _paths(base)):
        require_there(base.storage, file_name(base.storage, base.table, path))


def _paths(snapshot: Snapshot | None) -> set[str]:
    return set() if snapshot is None or snapshot.version < 0 else set(snapshot.files["path"].to_pylist())


def require_there(storage: Storage, name: str | Path) -> None:
    """Refuse a file that is gone."""
    try:
        read_range(storage, name, 0, 1)
    except CorruptData:
        raise CorruptData(
            f"The file {str(name)!r} of that version is gone.",
            cause="Another program deleted it.",
            remedy="Restore it from a backup, or restore another version.",
            file=str(name),
        ) from None


# Rows of the earlier version are written with their old values; rows that did not exist then are deleted.
# Both are one new version. Columns added since keep their values; columns dropped since stay dropped.


@dataclass(frozen=True, slots=True)
class RowRestoration:
    """Effect of restoring rows: those brought back (inserted), changed back and removed.

    ``tenant_version`` is the tenant's version after the call.
    """

    changes: RowChanges
    tenant_version: int
    committed: bool


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Rows of a stream by key, and the version of the tenant to restore them from."""

    stream: StreamName
    version: int
    keys: pa.Table
    """The key's columns in the stream's own types; each row once."""
    columns: tuple[str, ...] = ()
    """Only these cells, of rows that exist now and existed then; empty: whole rows."""


@dataclass(frozen=True, slots=True)
class _RowPlan:
    now: TenantState
    changes: RowChanges


def restore_rows(
    context: TenantContext, selection: RowSelection, *, dry_run: bool = False, author: Author = SYSTEM
) -> RowRestoration:
    """Restore the selected rows as a new version; with ``dry_run`` nothing is written."""
    known = None if dry_run else find_committed(context)
    if known is not None:
        before = _plan_rows(context, selection, context.log.state_at(known.version - 1))
        return RowRestoration(before.changes, known.version, committed=True)

    def attempt() -> RowRestoration:
        plan = _plan_rows(context, selection, context.log.current_state())
        if not (dry_run or len(plan.changes)):
            check_commit(Transaction(context, base=plan.now), plan.now)
        if dry_run or not len(plan.changes):
            return RowRestoration(plan.changes, plan.now.version, committed=False)
        version = _commit_rows(context, selection, plan, author)
        return RowRestoration(plan.changes, version, committed=True)

    return plan_and_commit(context, attempt)


def _plan_rows(context: TenantContext, selection: RowSelection, now: TenantState) -> _RowPlan:
    then = listed_state(context.log, context.log.current_state(), selection.version)
    base = table_snapshot(context.log, now, selection.stream)
    target = table_snapshot(context.log, then, selection.stream)
    key = _shared_key(base, target)
    there = set(arrow_columns(target.delta_schema).names)
    fields = [field for field in arrow_columns(base.delta_schema) if field.name in there]
    shared = pa.schema([field.remove_metadata() for field in fields])
    unknown = [name for name in selection.columns if name in key or name not in shared.names]
    if unknown:
        raise MissingColumn(
            f"The cells of {unknown} cannot be restored.",
            cause="They belong to the key, or the column does not exist in both versions.",
            remedy=f"Choose among {[name for name in shared.names if name not in key]}.",
            column=unknown[0],
        )
    comparison = Comparison(base, target, selection.keys.select(list(key)), columns=shared)
    changes = join_changes(comparison.batches())
    return _RowPlan(now, changes.of_columns(selection.columns) if selection.columns else changes)


def _shared_key(base: Snapshot, target: Snapshot) -> tuple[str, ...]:
    key = stored_key(base.metadata) or ()
    problem = ""
    if not key:
        problem = "The stream has no key, so single rows cannot be identified."
    elif set(stored_key(target.metadata) or ()) != set(key):
        problem = "The stream had another key then, so its rows cannot be matched by today's key."
    elif read_system_columns(base.metadata).names or read_system_columns(target.metadata).names:
        problem = "The stream keeps its rows' past or flags deleted rows."
    elif not all(
        comparison_type(*(arrow_columns(item.delta_schema).field(name).type for item in (base, target)))
        for name in key
    ):
        problem = "The key has another type since."
    if problem:
        raise InvalidOption(problem, remedy="Restore the whole stream instead.")
    return key


def _commit_rows(context: TenantContext, selection: RowSelection, plan: _RowPlan, author: Author) -> int:
    name, version = selection.stream, selection.version
    count = f"{len(plan.changes)} {'row' if len(plan.changes) == 1 else 'rows'}"
    restorer = author.for_action(f"restore {count} of {name} as of version {version}")
    with Transaction(context, restorer, is_single=True) as transaction:
        transaction.restored = version
        transaction.require(at_version(plan.now.version))
        put_rows(transaction, name, plan.changes)
    return transaction.done.tenant_version


def put_rows(transaction: Transaction, name: StreamName, changes: RowChanges) -> None:
    """Make the rows of a stream what ``changes`` lead to; columns that these lack keep their cells."""
    gone = changes.of(DELETE).keys
    there = changes.filter(pc.not_equal(changes.table[CHANGE_TYPE], DELETE)).after
    if len(gone):
        transaction.apply(name, _Removing(changes.key, gone))
    if len(there):
        update = Update(key=changes.key, mode="upsert", nulls="overwrite", null_keys="match")
        transaction.update(name, Rows(there), update)


@dataclass(frozen=True, slots=True)
class _Removing:
    key: tuple[str, ...]
    keys: pa.Table

    def __call__(self, snapshot: Snapshot, staging: StagingFolder, identity: CommitIdentity) -> ChangeResult:
        staging.prepare()
        positions = {path: rows.tolist() for path, rows in positions_of(snapshot, self.keys).items()}
        deletion = mark_rows(snapshot, positions, prefix=staging.name, timestamp_ms=identity.timestamp_ms)
        if not deletion.deleted_rows:
            return ChangeResult("", Counts())
        if deletion.file is not None:
            staging.store(deletion.file.name, deletion.file.content)
        switches_on = deletion.file is not None and not has_vectors(snapshot)
        rewrite = TableChange(
            "DELETE",
            self.key,
            snapshot.delta_schema if switches_on else None,
            (),
            replaces_files=False,
            counts=Counts(deleted=deletion.deleted_rows),
            properties={VECTORS_KEY: "true"} if switches_on else {},
            marks=deletion.actions,
            vector_file=deletion.file,
            plan=f"restore: {deletion.deleted_rows} rows that were not there then are marked",
        )
        return ChangeResult(commit_text(snapshot, rewrite, identity), rewrite.counts, rewrite.new_paths)
