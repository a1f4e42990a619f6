"""From an update and a stream's present state to staged files and counts: nothing visible yet.

A batch that meets no stored rows, or replaces all of them, is itself the new data file: Spark is
then not asked to move rows. Everything else is one merge by the engine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from freezeframe.engine.base import MergeResult, MergeTask, TableEngine, Validity
from freezeframe.errors import BadInput, SchemaDriftError
from freezeframe.log import Snapshot
from freezeframe.log.row_deletion import VECTORS_KEY, marked_rows
from freezeframe.storage import Storage
from freezeframe.store.columns import arrow_columns, physical_names, written_columns
from freezeframe.store.deletion_guard import require_few_deletions
from freezeframe.store.entries import Counts
from freezeframe.store.evolution import evolve
from freezeframe.store.file_choice import FileRule
from freezeframe.store.guard import stored_key, stored_notes
from freezeframe.store.incoming import Incoming
from freezeframe.store.live_files import deleted_positions, has_vectors
from freezeframe.store.own_columns import (
    DELETED,
    VALID_FROM,
    VALID_TO,
    stored_own_columns,
)
from freezeframe.store.patching import Patching, batch_rows, can_be_patched, described, patch
from freezeframe.store.plan import NO_COLUMNS, Plan, plan_update
from freezeframe.store.reading import live_row_count
from freezeframe.store.staging import Attempt
from freezeframe.store.table_commit import Rewrite
from freezeframe.store.update import Update

_OPERATIONS = {"upsert": "MERGE", "full": "MERGE", "overwrite": "WRITE", "replace_where": "WRITE"}


@dataclass(frozen=True, slots=True)
class Staged:
    """The outcome of planning: what happened to the rows, and the commit to make (None: nothing changes)."""

    counts: Counts
    plan: Plan | None
    rewrite: Rewrite | None


def stage(
    engine: TableEngine,
    storage: Storage,
    folder: str,
    snapshot: Snapshot,
    incoming: Incoming,
    update: Update,
    attempt: Attempt,
    rule: FileRule,
) -> Staged:
    """Write the stream's new content into ``attempt`` and count what became of the rows.

    ``folder`` is the stream's table, ``rule`` says what becomes of its files. Nothing becomes visible.

    Raises:
        TooManyDeletions: a full extract lacks more rows than it may.
    """
    if _says_nothing(snapshot, incoming, update):
        return Staged(Counts(), None, None)
    incoming = _with_columns(snapshot, incoming, update)
    plan = plan_update(snapshot, incoming, update)
    if update.mode == "full" and not incoming.rows:
        stored_rows = live_row_count(snapshot)
        require_few_deletions(update, lost=stored_rows, live=stored_rows)
    attempt.prepare()
    live = _live_paths(snapshot)
    work = _Work(engine, storage, folder, snapshot, incoming, plan, attempt, live, _moment_us(snapshot))
    if update.mode == "overwrite" or (update.mode != "replace_where" and not live):
        return _staged_content(work)
    rows = batch_rows(plan, incoming, attempt) if can_be_patched(plan, snapshot) else None
    if rows is not None:
        return _patched(Patching(engine, storage, folder, snapshot, plan, rule, attempt), rows)
    engine.require_shared(storage.uri(""))
    result = engine.merge(_merge_task(work))
    if update.mode == "full":
        require_few_deletions(update, lost=result.lost, live=result.live)
    return _staged(plan, snapshot, _counts(result), attempt.merged_paths(result.files), attempt)


@dataclass(frozen=True, slots=True)
class _Work:
    """One update that is being staged."""

    engine: TableEngine
    storage: Storage
    folder: str
    snapshot: Snapshot
    incoming: Incoming
    plan: Plan
    attempt: Attempt
    live: tuple[str, ...]
    moment_us: int

    def batch(self) -> tuple[str, ...]:
        """The batch's files, written if the rows are in memory."""
        plan = self.plan
        return self.incoming.paths or (self.attempt.land(plan.evolution.batch, plan.batch_schema),)


def _patched(work: Patching, rows: pa.Table) -> Staged:
    """Stage an upsert that leaves most files as they are."""
    plan, snapshot, attempt = work.plan, work.snapshot, work.attempt
    patched = patch(work, rows)
    changes_metadata = _changes_metadata(plan, snapshot)
    if not (patched.counts.changed or changes_metadata):
        return Staged(patched.counts, plan, None)
    folder = attempt.name
    deletion = marked_rows(snapshot, patched.marked, prefix=folder) if patched.marked else None
    vectors = deletion.file if deletion else None
    if vectors is not None:
        attempt.store(vectors.name, vectors.content)
    switches_on = deletion is not None and not has_vectors(snapshot)
    rewrite = Rewrite(
        _OPERATIONS[plan.update.mode],
        plan.key,
        plan.schema if changes_metadata or switches_on else None,
        attempt.seal(patched.written, written_columns(plan.schema)),
        replaces_files=False,
        counts=patched.counts,
        notes=plan.update.notes,
        properties={**plan.own.properties, **({VECTORS_KEY: "true"} if switches_on else {})},
        removed=patched.removed,
        marks=deletion.actions if deletion else (),
        vector_file=vectors,
        plan=described(patched.choices),
    )
    return Staged(patched.counts, plan, rewrite)


def _changes_metadata(plan: Plan, snapshot: Snapshot) -> bool:
    key_changes = snapshot.version >= 0 and stored_key(snapshot.metadata) != plan.key
    own_changes = plan.own != plan.stored_own
    return plan.changes_schema or key_changes or own_changes or _changes_notes(plan, snapshot)


def _says_nothing(snapshot: Snapshot, incoming: Incoming, update: Update) -> bool:
    """Whether an update without rows leaves everything as it is."""
    if incoming.rows or update.notes or update.mode not in ("upsert", "full"):
        return False
    if snapshot.version < 0:
        return not incoming.table.num_columns
    begins_history = update.history == "scd2" and not stored_own_columns(snapshot.metadata).has_history
    return update.mode == "upsert" and not begins_history


def _with_columns(snapshot: Snapshot, incoming: Incoming, update: Update) -> Incoming:
    """A full extract without rows often has no columns either: then it has those of the key."""
    if update.mode != "full" or incoming.rows or incoming.table.num_columns or snapshot.version < 0:
        return incoming
    stored = arrow_columns(snapshot.schema)
    key = pa.schema([stored.field(name) for name in update.key if name in stored.names])
    return replace(incoming, table=key.remove_metadata().empty_table())


def _moment_us(snapshot: Snapshot) -> int:
    """The moment of this update: after the stream's last commit, whatever the clock says."""
    return max(time.time_ns() // 1_000_000, snapshot.timestamp + 1) * 1_000


def _staged_content(work: _Work) -> Staged:
    """Stage rows that are the whole new content: a first write, or an overwrite."""
    plan, incoming, attempt = work.plan, work.incoming, work.attempt
    if work.live:
        work.engine.require_shared(work.storage.uri(""))
    if _is_data_file(plan, incoming):
        batch = incoming.paths or (_landed_content(work),)
        counts = _overwrite_counts(work, batch) if work.live else Counts(inserted=incoming.rows)
        return _staged(plan, work.snapshot, counts, batch if incoming.rows else (), attempt)
    work.engine.require_shared(work.storage.uri(""))
    task = _merge_task(work)
    if plan.is_plain:
        # The stored rows need not be unique under a key that they never had: rows are compared whole.
        result = work.engine.merge(replace(task, key=()) if _has_other_key(work) else task)
        return _staged(plan, work.snapshot, _counts(result), attempt.merged_paths(result.files), attempt)
    counts = _overwrite_counts(work, incoming.paths) if work.live else Counts(inserted=incoming.rows)
    result = work.engine.merge(replace(task, stored=()))
    return _staged(plan, work.snapshot, counts, attempt.merged_paths(result.files), attempt)


def _landed_content(work: _Work) -> str:
    """The batch as a data file, with what the stream keeps beside its columns."""
    plan = work.plan
    content = plan.own.filled(plan.evolution.batch, work.moment_us)
    return work.attempt.land(content, written_columns(plan.schema, set(content.column_names)))


def _has_other_key(work: _Work) -> bool:
    return set(stored_key(work.snapshot.metadata) or ()) != set(work.plan.key)


def _staged(
    plan: Plan, snapshot: Snapshot, counts: Counts, paths: tuple[str, ...], attempt: Attempt
) -> Staged:
    rewrites = bool(counts.changed) or plan.evolution.changes_stored_files or _rows_written_anew(plan)
    changes_metadata = _changes_metadata(plan, snapshot)
    if not (rewrites or changes_metadata):
        return Staged(counts, plan, None)
    schema = plan.schema if changes_metadata else None
    files = attempt.seal(paths, written_columns(plan.schema)) if rewrites else ()
    operation = _OPERATIONS[plan.update.mode] if snapshot.version >= 0 else "CREATE TABLE AS SELECT"
    properties = {**plan.own.properties}
    rewrite = Rewrite(operation, plan.key, schema, files, rewrites, counts, plan.update.notes, properties)
    return Staged(counts, plan, rewrite)


def _changes_notes(plan: Plan, snapshot: Snapshot) -> bool:
    known = {} if snapshot.version < 0 else stored_notes(snapshot.metadata)
    return any(known.get(name) != text for name, text in plan.update.notes)


def _rows_written_anew(plan: Plan) -> bool:
    # An override that gives a column another type replaces the files even if no value differs; rows
    # that get a past say since when they hold.
    begins_history = plan.own.has_history and not plan.stored_own.has_history
    return begins_history or (plan.update.mode == "overwrite" and plan.changes_schema)


def _merge_task(work: _Work) -> MergeTask:
    plan, update = work.plan, work.plan.update
    return MergeTask(
        stored=tuple(work.storage.uri(f"{work.folder}/{path}") for path in work.live),
        stored_schema=written_columns(plan.stored_schema or NO_COLUMNS),
        batch=tuple(work.attempt.uri(path) for path in work.batch()),
        batch_schema=plan.batch_schema,
        target_schema=written_columns(plan.schema),
        key=plan.key,
        mode=update.mode,
        nulls=update.nulls,
        null_keys="match" if update.null_keys == "match" else "error",
        where=update.where,
        output=work.attempt.merged_uri,
        deleted=_deleted(work),
        flag=DELETED if plan.own.flags_deleted else "",
        flags_absent=update.mode == "full" and plan.own.flags_deleted and update.deletes != "remove",
        validity=_validity(work) if plan.own.has_history else None,
    )


def _validity(work: _Work) -> Validity:
    return Validity(VALID_FROM, VALID_TO, work.moment_us, work.snapshot.timestamp * 1_000)


def _overwrite_counts(work: _Work, batch: tuple[str, ...]) -> Counts:
    """How the whole new content differs from the stored one, by key or as a multiset of rows."""
    plan, other_key = work.plan, _has_other_key(work)
    if not _comparable(plan) or (plan.stored_own.has_history and other_key):
        return Counts(inserted=work.incoming.rows, deleted=live_row_count(work.snapshot))
    task = MergeTask(
        stored=tuple(work.storage.uri(f"{work.folder}/{path}") for path in work.live),
        stored_schema=written_columns(plan.stored_schema or NO_COLUMNS),
        batch=tuple(work.attempt.uri(path) for path in batch),
        batch_schema=plan.batch_schema,
        target_schema=_compared_columns(plan),
        key=() if other_key else plan.key,
        mode="overwrite",
        null_keys="match" if plan.update.null_keys == "match" else "error",
        deleted=_deleted(work),
        validity=_validity(work) if plan.stored_own.has_history else None,
        write=False,
    )
    return _counts(work.engine.merge(task))


def _compared_columns(plan: Plan) -> dict[str, Any]:
    """The new columns, and the stored ones that say which rows are of the past."""
    names = set(plan.evolution.target.names)
    new = written_columns(plan.schema, names)
    if not plan.stored_own.has_history:
        return new
    periods = written_columns(plan.stored_schema or NO_COLUMNS, set(plan.stored_own.names))
    return {**new, "fields": [*new["fields"], *periods["fields"]]}


def _comparable(plan: Plan) -> bool:
    """Whether stored rows have the new key and types that the new ones can be compared with."""
    stored = plan.stored_own.removed_from(arrow_columns(plan.stored_schema or NO_COLUMNS))
    if not set(plan.key) <= set(stored.names):
        return False
    try:
        evolve(stored, plan.evolution.batch.slice(0, 0), key=plan.key, values_known=False)
    except (SchemaDriftError, BadInput):
        return False
    return True


def _counts(result: MergeResult) -> Counts:
    return Counts(result.inserted, result.updated, result.unchanged, result.deleted)


def _is_data_file(plan: Plan, incoming: Incoming) -> bool:
    """Whether the landed batch already is what the table would hold."""
    if incoming.in_memory:
        return True
    names = physical_names(plan.schema)
    same_names = all(name == physical for name, physical in names.items())
    return same_names and not plan.own.names and incoming.table.schema.equals(plan.evolution.batch.schema)


def _live_paths(snapshot: Snapshot) -> tuple[str, ...]:
    return () if snapshot.version < 0 else tuple(map(unquote, snapshot.files["path"].to_pylist()))


def _deleted(work: _Work) -> dict[str, Any]:
    """For the engine: by file the positions of rows that are deleted."""
    if not work.live:
        return {}
    gone = deleted_positions(work.snapshot, work.snapshot.files)
    return {work.storage.uri(f"{work.folder}/{unquote(path)}"): rows for path, rows in gone.items()}
