"""Takes one version, or several as one change, back as a new version, and keeps what came after.

A stream that nobody changed since becomes the table that it was. Else its rows go back cell by cell, as
``diff.reversal`` decides. A file goes back if it is what the version made it. What cannot be taken back stays
and is named with the reason. Rules: ``docs/how-to/undo-a-job.md``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from freezeframe.errors import BadInput, InvalidName, InvalidOption, StreamNotFound, TooLarge, VersionNotFound
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log import Snapshot
from freezeframe.log.scan.data_skipping import as_expression, columns_of
from freezeframe.store.blobs.blob_store import FileNames
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.diff.reversal import KeptRow, reverse
from freezeframe.store.diff.row_changes import BEFORE, CHANGE_TYPE, RowChanges, join_changes, paired_rows
from freezeframe.store.diff.tenant_diff import differing
from freezeframe.store.maintenance.restore import (
    Returning,
    at_version,
    drop_table,
    find_committed,
    kept_deliveries,
    plan_and_commit,
    put_rows,
    require_kept,
    require_there,
)
from freezeframe.store.model.directory import blob_file, snapshot_paths
from freezeframe.store.model.json_fields import JsonFields
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import SYSTEM, Author
from freezeframe.store.schema.columns import arrow_columns, read_system_columns, stored_key
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.schema.type_compatibility import comparison_type
from freezeframe.store.table.commit import is_same_table, own_configuration
from freezeframe.store.tenant_log.entry import FileChange, TenantChange
from freezeframe.store.tenant_log.roll_forward import stream_base, table_snapshot
from freezeframe.store.tenant_log.state import HeldFile, TenantState
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.commit import check_commit
from freezeframe.store.transaction.scope import listed_state
from freezeframe.store.transaction.transaction import Transaction
from freezeframe.store.updates.update import Change

Fate = Literal["changed", "brought back", "removed", "kept"]

ROWS_MAX = 1_000_000
"""So many rows of a stream are taken back cell by cell, which is done in memory."""
LISTED_MAX = 1_000
"""So many rows of a stream that stay, or change, are named."""


@dataclass(frozen=True, slots=True)
class StreamReversion(JsonFields):
    """Effect of a reversion on one stream: rows inserted (they return), updated and deleted, and cells.

    Without ``cells`` too many rows would have to be read: the counts are then those of the versions in the
    log, added up. ``reason`` says why a stream stays as it is. ``kept_rows`` stay in part or whole, and
    ``kept_cells`` of them; ``kept`` has the first ones. ``changes`` leads from the rows of now to what they
    become.
    """

    fate: Fate
    counts: Counts
    cells: int | None
    reason: str = ""
    kept_rows: int = 0
    kept_cells: int = 0
    kept: tuple[KeptRow, ...] = ()
    changes: RowChanges | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Reversion(JsonFields):
    """What taking ``version`` back does, or did: ``committed`` is false for a preview or if nothing changes.

    With ``since`` it is all versions from that one to ``version``, which then have no one job.
    ``tenant_version`` is the tenant's version after the call. ``files_kept`` were changed again since.
    """

    _names = {"version": "reverted_version"}  # noqa: RUF012 - declared as ClassVar by the base
    version: int
    job_id: str | None
    tenant_version: int
    committed: bool
    streams: Mapping[str, StreamReversion]
    files_written: tuple[str, ...]
    files_deleted: tuple[str, ...]
    files_kept: tuple[str, ...]
    since: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing goes back."""
        effects = (item.fate for item in self.streams.values())
        return not (self.files_written or self.files_deleted or any(fate != "kept" for fate in effects))


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a version is taken back: these streams and files (None: all), and these rows of a stream.

    ``where`` is a table of keys, or a condition: on a row as the version left it, and on one that it deleted
    as it was before.
    """

    only: tuple[str, ...] | None = None
    where: Any = None

    def __post_init__(self) -> None:
        if self.where is not None and (self.only is None or len(self.only) != 1):
            raise InvalidOption(
                "A selection of rows needs one stream.",
                cause="Streams have different columns.",
                remedy="Name the stream: only=['Account'].",
            )

    def rows_of(self, changes: RowChanges) -> RowChanges:
        """Return the changes of the rows that are selected."""
        if self.where is None:
            return changes
        if not isinstance(self.where, pa.Table):
            return _matching(changes, self.where)
        if set(self.where.column_names) != set(changes.key):
            raise BadInput(
                f"The keys have the columns {self.where.column_names}.",
                cause=f"The stream's key is {list(changes.key)}.",
                remedy="Pass a frame with exactly these columns.",
            )
        at, there = paired_rows(changes.table, self.where, changes.key)
        return RowChanges(changes.table.take(pa.array(at[(at >= 0) & (there >= 0)])), changes.key)


@dataclass(frozen=True, slots=True)
class _Versions:
    """The states before and after the version ``reverted``, and of now; its job, and its counts of rows.

    With ``since`` it is the last of several, and the state before is that before ``since``.
    """

    reverted: int
    since: int | None
    job_id: str | None
    counts: Mapping[str, Counts]
    before: TenantState
    after: TenantState
    now: TenantState


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What becomes of a stream: by rows, or (``is_whole``) the table ``target`` (None: it is removed)."""

    effect: StreamReversion
    target: Snapshot | None = None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    versions: _Versions
    streams: Mapping[str, StreamPlan]
    files: tuple[FileChange, ...]
    files_kept: tuple[str, ...]

    def outcome(self, tenant_version: int, *, committed: bool) -> Reversion:
        return Reversion(
            self.versions.reverted,
            self.versions.job_id,
            tenant_version,
            committed,
            {name: plan.effect for name, plan in self.streams.items()},
            tuple(change.path for change in self.files if change.blob is not None),
            tuple(change.path for change in self.files if change.blob is None),
            self.files_kept,
            self.versions.since,
        )


def version_of_job(context: TenantContext, job_id: str) -> int:
    """Return the version that a job made.

    Raises:
        VersionNotFound: it has made none, or its id is no longer kept.
    """
    record = context.log.known_job(context.log.current_state(), job_id)
    if record is not None:
        return record.version
    raise VersionNotFound(
        f"The tenant has no version of the job {job_id}.",
        cause="It has not committed, or ended longer ago than ids of jobs are kept (job_id_days).",
        remedy="Name the version: the tenant's history lists them.",
        job_id=job_id,
    )


def revert(
    context: TenantContext,
    version: int,
    selection: Selection,
    *,
    since: int | None = None,
    dry_run: bool = False,
    author: Author = SYSTEM,
) -> Reversion:
    """Take a version back, and keep what came after it; see ``Tenant.revert``."""
    known = None if dry_run else find_committed(context)
    if known is not None:
        versions = _versions(context, version, since, context.log.state_at(known.version - 1))
        return _plan(context, versions, selection).outcome(known.version, committed=True)

    def attempt() -> Reversion:
        plan = _plan(context, _versions(context, version, since, context.log.current_state()), selection)
        found = plan.outcome(plan.versions.now.version, committed=False)
        if dry_run:
            return found
        if found.is_empty:
            check_commit(Transaction(context, base=plan.versions.now), plan.versions.now)
            return found
        return plan.outcome(_commit(context, plan, author), committed=True)

    return plan_and_commit(context, attempt)


def _plan(context: TenantContext, versions: _Versions, selection: Selection) -> _Plan:
    before, after = versions.before, versions.after
    names = differing(before.streams, after.streams)
    only = selection.only
    if only is not None:
        _require_known(versions, only)
    streams = {
        name: plan
        for name in (names if only is None else filter(only.__contains__, names))
        if (plan := _plan_stream(context, versions, StreamName(name), selection)) is not None
    }
    # The targets are not taken back: what goes back in a stream is then pending for them.
    for name in kept_deliveries(context, before, after) if only is None else ():
        if name in streams:
            streams[name] = stay("it is what a target accepted, which still has it")
    # The file beside a stream is its content: it goes back with the whole stream, or stays with its rows.
    wholes, parts = (
        {path for name, plan in streams.items() if plan.is_whole == is_whole for path in snapshot_paths(name)}
        for is_whole in (True, False)
    )
    changed = [] if selection.where is not None else differing(before.files, after.files)
    paths = [
        path for path in changed if path not in parts and (only is None or path in only or path in wholes)
    ]
    files, kept = _plan_files(context, versions, paths)
    return _Plan(versions, streams, files, kept)


def _versions(context: TenantContext, version: int, since: int | None, now: TenantState) -> _Versions:
    first = version if since is None else since
    if first > version:
        raise InvalidOption(
            f"Version {first} comes after version {version}.", remedy="Name the first version in since."
        )
    newest = context.log.current_state()
    after = listed_state(context.log, newest, version)
    entry = context.log.entry(after.version)
    if since is None and entry.kind != "commit":
        raise InvalidOption(
            f"Version {version} cannot be taken back.",
            cause=f"No job made it: it is of the kind {entry.kind}.",
            remedy="Take back a version that changed rows or files, or restore the version before it.",
            version=version,
        )
    try:
        before = listed_state(context.log, newest, first - 1) if first else TenantState()
    except VersionNotFound as error:
        raise VersionNotFound(
            f"Version {first} cannot be taken back.",
            cause=f"Version {first - 1}, which it followed, is no longer kept.",
            remedy="Take back a later version; tenant.set_retention keeps versions for longer.",
            version=first,
        ) from error
    counts: dict[str, Counts] = {}
    for number in range(first, after.version + 1):
        for change in context.log.entry(number).streams:
            counts[str(change.stream)] = counts.get(str(change.stream), Counts()) + change.counts
    job_id = entry.job_id if since is None else None
    return _Versions(after.version, since, job_id, counts, before, after, now)


def _require_known(versions: _Versions, names: Sequence[str]) -> None:
    states = (versions.before, versions.after, versions.now)
    for name in names:
        if not any(name in state.streams or name in state.files for state in states):
            raise StreamNotFound(
                f"There is no stream and no file {name!r}, neither then nor now.",
                remedy="Check the name; the history says what a version changed.",
                stream=name,
            )


def _plan_stream(
    context: TenantContext, versions: _Versions, name: StreamName, selection: Selection
) -> StreamPlan | None:
    """Return how a stream that the version changed goes back; None: it is as it was."""
    log, now = context.log, versions.now
    if str(name) not in now.streams and str(name) not in now.dropped:
        return stay("it was released, so other programs may write to it")  # and its folder may be gone
    was, made = (
        table_snapshot(log, state, name) if str(name) in state.streams else None
        for state in (versions.before, versions.after)
    )
    base = stream_base(log, now, name)
    present = base if str(name) in now.streams else None
    is_untouched = now.streams.get(str(name)) == versions.after.streams.get(str(name))
    if is_untouched and selection.where is None:
        if was is not None and present is not None and is_same_table(base, was):
            return None
        require_kept(base, was)
        plan = _whole(present, was, versions.counts.get(str(name), Counts()))
        return None if was is not None and _is_idle(plan, base, was) else plan
    if made is None and is_untouched:
        return stay("the version dropped it; it comes back whole, without a condition on rows")
    if made is None:
        return stay("the version dropped it, and there is a stream of this name again")
    if present is None and was is None:
        return None
    if present is None:
        return stay("it was dropped since")
    reason = reason_to_stay(*(item for item in (was, made, base) if item is not None))
    return stay(reason) if reason else by_cells(was, made, base, selection)


def _is_idle(plan: StreamPlan, base: Snapshot, was: Snapshot) -> bool:
    """Return whether a whole table that goes back has just the rows of now: one version undid another."""
    effect = plan.effect
    return effect.fate == "changed" and effect.cells == 0 and is_unchanged(base, was, effect.counts)


def is_unchanged(present: Snapshot, target: Snapshot, counts: Counts) -> bool:
    """Return whether two tables whose differing rows were counted are the same, columns and settings too.

    Of one that keeps its rows' past only the current rows are counted, so it may differ.
    """
    return (
        not counts.changed
        and present.delta_schema == target.delta_schema
        and own_configuration(present.metadata) == own_configuration(target.metadata)
        and not read_system_columns(target.metadata).names
    )


def stay(reason: str) -> StreamPlan:
    """Return the plan of a stream that stays as it is."""
    return StreamPlan(StreamReversion("kept", Counts(), 0, reason))


def _whole(present: Snapshot | None, target: Snapshot | None, made: Counts) -> StreamPlan:
    """Return the plan of a stream that becomes the table that it was; the version ``made`` these changes."""
    fate: Fate = "removed" if target is None else "changed" if present is not None else "brought back"
    comparison = Comparison(present, target, keeps_dropped=True)
    if _has_names_of_changes(target) or not comparison.is_counted():
        back = Counts(made.deleted, made.updated, 0, made.inserted)
        return StreamPlan(StreamReversion(fate, back, None), target, is_whole=True)
    counts, cells, first = Counts(), 0, None
    for changes in comparison.batches():
        counts += changes.counts
        cells += sum(changes.changed_counts.values())
        first = changes.slice(0, LISTED_MAX) if first is None else first
    return StreamPlan(StreamReversion(fate, counts, cells, changes=first), target, is_whole=True)


def reason_to_stay(*tables: Snapshot) -> str:
    """Return why rows of these versions of a stream cannot be matched; empty if they can."""
    keys = [stored_key(table.metadata) or () for table in tables]
    if not all(keys):
        return "it has no key, so single rows of it cannot go back"
    if any(set(key) != set(keys[0]) for key in keys):
        return "it has another key since"
    if any(read_system_columns(table.metadata).names for table in tables):
        return "it keeps its rows' past or flags deleted ones, so single rows of it cannot go back"
    schemas = [arrow_columns(table.delta_schema) for table in tables]
    for name in keys[0]:
        kinds = [schema.field(name).type for schema in schemas]
        pairs = itertools.combinations(kinds, 2)
        if any(map(pa.types.is_nested, kinds)) or any(comparison_type(*pair) is None for pair in pairs):
            return "its key has another type since, or is nested"
    if any(_has_names_of_changes(table) for table in tables):
        return f"a column of it is called {CHANGE_TYPE} or {BEFORE}"
    return ""


def _has_names_of_changes(table: Snapshot | None) -> bool:
    return table is not None and bool({CHANGE_TYPE, BEFORE} & _columns(table))


def by_cells(was: Snapshot | None, made: Snapshot, base: Snapshot, selection: Selection) -> StreamPlan | None:
    """Return the plan of a stream whose rows become cell by cell what they were before ``made``.

    A cell of ``base`` that is no longer as ``made`` has it stays. None: nothing changes, and nothing stays.
    """
    found, count = list[RowChanges](), 0
    for changes in Comparison(was, made, keeps_dropped=True).batches():
        found.append(selection.rows_of(changes))
        count += len(found[-1])
        if count > ROWS_MAX:
            raise TooLarge(
                f"More than {ROWS_MAX:,} rows of a stream would go back one by one.",
                cause="The stream was changed since, so each row is compared, in memory.",
                remedy="Take the version back in parts by a condition on rows, or restore the stream.",
            )
    version = join_changes(found)
    if not len(version):
        return None
    now = join_changes(Comparison(None, base, version.keys).batches()).after
    columns = pa.schema(
        [
            pa.field(item.name, pa.null() if is_undecided(item) else item.type)
            for item in arrow_columns(base.delta_schema)
        ]
    )
    dropped = () if was is None else _columns(was) - _columns(made)
    done = reverse(version, now, columns, dropped, LISTED_MAX)
    if not (len(done.changes) or done.kept_rows):
        return None
    return StreamPlan(
        StreamReversion(
            "changed" if len(done.changes) else "kept",
            done.changes.counts,
            done.cells,
            kept_rows=done.kept_rows,
            kept_cells=done.kept_cells,
            kept=done.kept,
            changes=done.changes,
        )
    )


def _columns(table: Snapshot) -> set[str]:
    return set(arrow_columns(table.delta_schema).names)


def _matching(changes: RowChanges, where: Any) -> RowChanges:
    """Return the changes of the rows for which a condition is true."""
    after = changes.after
    expression = as_expression(where, after.schema)
    columns_of(expression, after.schema)
    number = next(name for name in map(str, range(after.num_columns + 1)) if name not in after.column_names)
    found = after.append_column(number, pa.array(np.arange(len(after)))).filter(expression)[number]
    return RowChanges(changes.table.take(found), changes.key)


def _plan_files(
    context: TenantContext, versions: _Versions, paths: Iterable[str]
) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """Return the changes of files, and the paths of those that stay because they were changed since."""
    before, after, now = (state.files for state in (versions.before, versions.after, versions.now))
    back, kept = list[str](), list[str]()
    for path in paths:
        old, new, current = (content_of(files.get(path)) for files in (before, after, now))
        if current == new != old:
            back.append(path)
        elif old not in (current, new):
            kept.append(path)
    names = FileNames(path for path in now if path not in back)
    changes = []
    for path in back:
        held = before.get(path)
        if held is None:
            changes.append(FileChange(path, None))
        elif _is_free(names, path):
            require_there(context.storage, blob_file(held.blob))
            changes.append(held.to_change(path))
        else:
            kept.append(path)
    return tuple(changes), tuple(kept)


def content_of(held: HeldFile | None) -> tuple[str, bool] | None:
    """Return what tells whether a file was changed; of a sealed one any writing does."""
    return None if held is None else (held.sha256, held.sealed)


def _is_free(names: FileNames, path: str) -> bool:
    try:
        names.require(FilePath(path))
    except InvalidName:  # a folder of that name, or another spelling
        return False
    names.add(path)
    return True


def _commit(context: TenantContext, plan: _Plan, author: Author) -> int:
    versions = plan.versions
    of_job = f" ({versions.job_id})" if versions.job_id else ""
    what = f"version {versions.reverted}{of_job}"
    if versions.since is not None:
        what = f"versions {versions.since} to {versions.reverted}"
    reverter = author.for_action(f"revert {what}")
    with Transaction(context, reverter, is_single=True) as transaction:
        transaction.require(at_version(versions.now.version))
        stage_plans(transaction, plan.streams, Returning)
        for change in plan.files:
            transaction.files.add(change)
    return transaction.done.tenant_version


def stage_plans(
    transaction: Transaction,
    plans: Mapping[str, StreamPlan],
    becoming: Callable[[Snapshot], Change],
) -> None:
    """Stage what becomes of streams; ``becoming`` returns the change by which one becomes a whole table."""
    for name, plan in plans.items():
        if plan.is_whole:
            change = drop_table if plan.target is None else becoming(plan.target)
            transaction.apply(StreamName(name), change)
        elif plan.effect.changes is not None:
            put_rows(transaction, StreamName(name), plan.effect.changes)
    dropped = tuple(name for name, plan in plans.items() if plan.is_whole and plan.target is None)
    if dropped:
        transaction.stage_tenant(TenantChange(dropped=dropped), "commit")
