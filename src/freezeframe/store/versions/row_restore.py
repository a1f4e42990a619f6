"""Restores selected rows of a stream to an earlier version.

Rows of the earlier version are written with their old values; rows that did not exist then are deleted.
Both are one new version, an upsert and deletion marks, and change no other row. Columns added since
keep their values; columns dropped since stay dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import InvalidOption, MissingColumn, SchemaDriftError
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.scan import rows
from freezeframe.log.write.row_deletion import VECTORS_KEY, mark_rows
from freezeframe.store.diff.row_diff import CHANGE_TYPE, DELETE, INSERT, UPDATE, table_changes
from freezeframe.store.keys.key_scan import KeyNumbers, files_with, keys_as, scan
from freezeframe.store.model.author import SYSTEM, Author
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.column_mapping import arrow_columns
from freezeframe.store.schema.comparison import comparison_type, exact_cast
from freezeframe.store.schema.system_columns import read_system_columns, stored_key
from freezeframe.store.table.commit import CommitIdentity, TableChange, commit_text
from freezeframe.store.table.data_files import deleted_positions, has_vectors
from freezeframe.store.table.reader import as_typed_so_far, in_schema
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.roll_forward import table_snapshot
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import commit_at_end, listed_state
from freezeframe.store.transaction.transaction import TenantPlace, Transaction, require_commit
from freezeframe.store.transaction.unit_of_work import UnitOfWork
from freezeframe.store.updates.update_step import Step, StepResult
from freezeframe.store.versions.restore import at_version, plan_and_commit


@dataclass(frozen=True, slots=True)
class RowRestoration:
    """What becomes, or became, of the rows: ``changes`` is as of ``Stream.changes``.

    ``tenant_version`` is the tenant's version after the call.
    """

    key: tuple[str, ...]
    changes: pa.Table
    tenant_version: int
    committed: bool

    @property
    def counts(self) -> Counts:
        """The numbers of restored, changed and removed rows."""
        kinds = self.changes[CHANGE_TYPE].to_pylist()
        return Counts(kinds.count(INSERT), kinds.count(UPDATE), 0, kinds.count(DELETE))


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Rows of a stream by key, and the version of the tenant that they are to be as of."""

    stream: StreamName
    version: int
    keys: pa.Table
    """The key's columns in the stream's own types; each row once."""
    columns: tuple[str, ...] = ()
    """Only these cells, of rows that are there now and were then; without any, whole rows."""


@dataclass(frozen=True, slots=True)
class _Plan:
    now: TenantState
    key: tuple[str, ...]
    changes: pa.Table
    back: pa.Table
    """The rows to be written, as they were."""
    gone: pa.Table
    """Keys of the rows that are to go."""


def restore_rows(
    place: TenantPlace,
    selection: RowSelection,
    *,
    dry_run: bool = False,
    author: Author = SYSTEM,
) -> RowRestoration:
    """Restore the selected rows, as one new version; with ``dry_run`` nothing is written."""
    known = place.log.known_job(place.log.current_state(), place.request_context.job_id)
    if known is not None and not dry_run:
        before = _plan(place, selection, place.log.state_at(known.version - 1))
        return RowRestoration(before.key, before.changes, known.version, committed=True)

    def attempt() -> RowRestoration:
        plan = _plan(place, selection, place.log.current_state())
        if not (dry_run or len(plan.changes)):
            require_commit(Transaction(place, base=plan.now))
        if dry_run or not len(plan.changes):
            return RowRestoration(plan.key, plan.changes, plan.now.version, committed=False)
        version = _commit_plan(place, selection, plan, author)
        return RowRestoration(plan.key, plan.changes, version, committed=True)

    return plan_and_commit(place, attempt)


def _plan(place: TenantPlace, selection: RowSelection, now: TenantState) -> _Plan:
    then = listed_state(place.log, place.log.current_state(), selection.version)
    base = table_snapshot(place.storage, now, selection.stream)
    target = table_snapshot(place.storage, then, selection.stream)
    key = _shared_key(base, target)
    known = arrow_columns(target.schema)
    old_names = set(known.names)
    fields = [field for field in arrow_columns(base.schema) if field.name in old_names]
    shared = pa.schema([field.remove_metadata() for field in fields])
    keys = selection.keys.select(list(key))
    held = in_schema(_rows_of(base, keys, shared.names), shared)
    found = _rows_of(target, keys_as(keys, known), shared.names)
    misfits = [field.name for field in shared if exact_cast(found[field.name], field.type) is None]
    if misfits:
        raise SchemaDriftError(
            f"The rows of the stream {str(selection.stream)!r} cannot be told in its columns of now.",
            cause=f"The columns {misfits} have other types since, which cannot hold the values.",
            remedy="Restore the whole stream instead.",
            columns=misfits,
        )
    wanted = in_schema(found, shared)
    if selection.columns:
        held, wanted = _with_cells(held, wanted, key, selection.columns)
    changes = table_changes(held, wanted, key)
    kinds = changes[CHANGE_TYPE]
    changed_keys = changes.filter(pc.not_equal(kinds, DELETE)).select(list(key))
    gone = changes.filter(pc.equal(kinds, DELETE)).select(list(key))
    return _Plan(now, key, changes, _with_keys(wanted, changed_keys), gone)


def _with_cells(
    held: pa.Table, wanted: pa.Table, key: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[pa.Table, pa.Table]:
    """The rows that exist on both sides, and the same rows with the cells of ``columns`` from ``wanted``."""
    unknown = [name for name in columns if name in key or name not in wanted.column_names]
    if unknown:
        raise MissingColumn(
            f"The cells of {unknown} cannot be restored.",
            cause="They are of the key, or the stream lacks the column now or lacked it then.",
            remedy=f"Choose among {[name for name in wanted.column_names if name not in key]}.",
            column=unknown[0],
        )
    order = [(name, "ascending") for name in key]
    now = _with_keys(held, wanted.select(list(key))).sort_by(order)
    then = _with_keys(wanted, held.select(list(key))).sort_by(order)
    return now, pa.table({name: (then if name in columns else now)[name] for name in now.column_names})


def _shared_key(base: Snapshot, target: Snapshot) -> tuple[str, ...]:
    key = stored_key(base.metadata) or ()
    problem = ""
    if not key:
        problem = "The stream has no key, so single rows cannot be told apart."
    elif set(stored_key(target.metadata) or ()) != set(key):
        problem = "The stream had another key then, so its rows cannot be told apart by today's."
    elif read_system_columns(base.metadata).names or read_system_columns(target.metadata).names:
        problem = "The stream keeps its rows' past or flags deleted rows."
    elif not all(
        comparison_type(*(arrow_columns(item.schema).field(name).type for item in (base, target)))
        for name in key
    ):
        problem = "The key has another type since."
    if problem:
        raise InvalidOption(problem, remedy="Restore the whole stream instead.")
    return key


def _rows_of(snapshot: Snapshot, keys: pa.Table, names: list[str]) -> pa.Table:
    """The rows with one of the keys; files that cannot hold one are not read."""
    where = None
    for name in keys.column_names:
        column = keys[name]
        one = pc.field(name).isin(column.combine_chunks().unique())
        if not column.null_count and not pa.types.is_floating(column.type):
            ends = pc.min_max(column)
            one = one & (pc.field(name) >= ends["min"]) & (pc.field(name) <= ends["max"])
        where = one if where is None else where & one
    return _with_keys(as_typed_so_far(snapshot, rows.read(snapshot, names, where)), keys)


def _with_keys(table: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows of ``table`` whose key is one of ``keys``."""
    if not len(keys):
        return table.slice(0, 0)
    places, _ = KeyNumbers(keys).found_in(table.select(keys.column_names))
    return table.take(pa.array(places))


def _commit_plan(place: TenantPlace, selection: RowSelection, plan: _Plan, author: Author) -> int:
    name, version = selection.stream, selection.version
    count = f"{len(plan.changes)} {'row' if len(plan.changes) == 1 else 'rows'}"
    restorer = author.for_action(f"restore {count} of {name} as of version {version}")
    with commit_at_end(UnitOfWork(place, restorer, is_single=True, restored=version)) as work:
        work.require(at_version(plan.now.version))
        if len(plan.gone):
            step = Step(_Removing(plan.key, plan.gone))
            work.add_step(name, step)
        if len(plan.back):
            update = Update(key=plan.key, mode="upsert", nulls="overwrite", null_keys="match")
            work.update(name, plan.back, update)
    return work.done.tenant_version


@dataclass(frozen=True, slots=True)
class _Removing:
    """The step that marks the rows of some keys as deleted."""

    key: tuple[str, ...]
    keys: pa.Table

    def __call__(self, snapshot: Snapshot, staging: StagingFolder, identity: CommitIdentity) -> StepResult:
        staging.prepare()
        positions = self._positions(snapshot)
        deletion = mark_rows(snapshot, positions, prefix=staging.name, timestamp_ms=identity.timestamp_ms)
        if not deletion.deleted_rows:
            return StepResult("", Counts())
        if deletion.file is not None:
            staging.store(deletion.file.name, deletion.file.content)
        switches_on = not has_vectors(snapshot)
        rewrite = TableChange(
            "DELETE",
            self.key,
            snapshot.schema if switches_on else None,
            (),
            replaces_files=False,
            counts=Counts(deleted=deletion.deleted_rows),
            properties={VECTORS_KEY: "true"} if switches_on else {},
            marks=deletion.actions,
            vector_file=deletion.file,
            plan=f"restore: {deletion.deleted_rows} rows that were not there then are marked",
        )
        return StepResult(commit_text(snapshot, rewrite, identity), rewrite.counts, rewrite.new_paths)

    def _positions(self, snapshot: Snapshot) -> dict[str, list[int]]:
        files = files_with(snapshot, self.keys)
        paths = files["path"].to_pylist()
        if not paths:
            return {}
        found, gone = scan(snapshot, files, self.keys), deleted_positions(snapshot, files)
        file, row = found["file"].to_numpy(), found["row"].to_numpy()
        nothing = np.empty(0, np.int64)
        return {
            path: alive.tolist()
            for number, path in enumerate(paths)
            if len(alive := np.setdiff1d(row[file == number], gone.get(path, nothing)))
        }
