"""Merge of a batch into all files that it may touch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.untyped import settled_type
from freezeframe.engine.protocol import MergeResult, MergeTask, Validity, require_found
from freezeframe.log import Snapshot
from freezeframe.log.format.schema import arrow_to_delta, fields_by_path, physical_name
from freezeframe.log.table.row_deletion import VECTORS_KEY, RowDeletion, mark_rows
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import (
    DELETED,
    VALID_FROM,
    VALID_TO,
    arrow_columns,
    stored_key,
    stored_notes,
    written_columns,
)
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.schema.type_compatibility import (
    ComparedColumns,
    compare_columns,
    comparison_type,
    open_columns,
)
from freezeframe.store.table.commit import TableChange
from freezeframe.store.table.data_files import deleted_positions, has_vectors, live_files
from freezeframe.store.table.reader import row_count
from freezeframe.store.table.staging import staged_bytes
from freezeframe.store.updates.plan import NO_COLUMNS, FileChoice, Plan, choose, require_few_deletions
from freezeframe.store.updates.result import Route, UpdateContext, UpdateResult
from freezeframe.store.updates.source import Incoming
from freezeframe.store.updates.upsert import Patch, find_task

# Builds the commit of an update: schema, properties and sealed files.

_OPERATIONS = {"upsert": "MERGE", "full": "MERGE", "overwrite": "WRITE", "replace_where": "WRITE"}


def build_table_change(
    context: UpdateContext,
    counts: Counts,
    paths: tuple[str, ...],
    route: Route,
    removed: tuple[str, ...] | None = None,
    deletion: RowDeletion | None = None,
) -> UpdateResult:
    """The update as a commit whose new files are ``paths`` and replace ``removed`` (None: all files).

    ``deletion`` marks rows in files that stay; its vector file is stored already.
    """
    plan, snapshot = context.plan, context.snapshot
    rewrites = bool(counts.changed) or plan.evolution.changes_stored_files or _rows_written_anew(plan)
    switches_on = deletion is not None and not has_vectors(snapshot)
    changes_metadata = switches_on or _changes_metadata(plan, snapshot)
    if not (rewrites or changes_metadata):
        return UpdateResult(counts, plan, None, route)
    rewrite = TableChange(
        _OPERATIONS[plan.update.mode] if snapshot.version >= 0 else "CREATE TABLE AS SELECT",
        plan.key,
        plan.schema if changes_metadata else None,
        context.staging.seal(paths, written_columns(plan.schema)) if rewrites else (),
        replaces_files=rewrites and removed is None,
        counts=counts,
        notes=plan.update.notes,
        properties={**plan.own.properties, **({VECTORS_KEY: "true"} if switches_on else {})},
        removed=(removed or ()) if rewrites else (),
        marks=deletion.actions if deletion else (),
        vector_file=deletion.file if deletion else None,
        plan=str(route),
    )
    return UpdateResult(counts, plan, rewrite, route)


def build_patch_change(context: UpdateContext, patch: Patch, route: Route) -> UpdateResult:
    """The update as a commit that adds the patch's files, and removes old files or marks their rows."""
    deletion = None
    if patch.marked:
        deletion = mark_rows(context.snapshot, patch.marked, prefix=context.staging.name)
        if deletion.file is not None:
            context.staging.store(deletion.file.name, deletion.file.content)
    change = build_table_change(context, patch.counts, patch.written, route, patch.removed, deletion)
    return replace(change, changed_keys=patch.changed_keys)


def _changes_metadata(plan: Plan, snapshot: Snapshot) -> bool:
    key_changes = snapshot.version >= 0 and stored_key(snapshot.metadata) != plan.key
    own_changes = plan.own != plan.stored_own
    return plan.changes_schema or key_changes or own_changes or _changes_notes(plan, snapshot)


def _changes_notes(plan: Plan, snapshot: Snapshot) -> bool:
    known = {} if snapshot.version < 0 else stored_notes(snapshot.metadata)
    return any(known.get(name) != text for name, text in plan.update.notes)


def _rows_written_anew(plan: Plan) -> bool:
    # An override that gives a column another type replaces the files even if no value differs; rows
    # that get a past say since when they hold.
    begins_history = plan.own.has_history and not plan.stored_own.has_history
    return begins_history or (plan.update.mode == "overwrite" and plan.changes_schema)


# Updates by a Spark merge, of all files of a stream or of those that hold a key of the batch.
#
# An upsert first searches the keys, then merges only the files that hold one with the batch; the other
# files stay unchanged.


def load(context: UpdateContext) -> UpdateResult:
    """Stage rows as the whole new content: a first write, or an override."""
    plan, incoming = context.plan, context.incoming
    if not incoming.rows:
        counts = Counts(deleted=row_count(context.snapshot) if context.live else 0)
        return build_table_change(context, counts, (), Route("load", "the batch has no rows"))
    is_data_file = _is_data_file(plan, incoming)
    asks = bool(context.live) or not is_data_file
    route = Route("load", "the batch is the whole content", engine="spark" if asks else "")
    if asks:
        context.place.engine.require_shared(context.place.storage.uri(""))
    if is_data_file:
        batch = incoming.paths or (_write_content(context),)
        counts = _overwrite_counts(context, batch) if context.live else Counts(inserted=incoming.rows)
        return build_table_change(context, counts, batch, route)
    counts = _overwrite_counts(context, incoming.paths) if context.live else Counts(inserted=incoming.rows)
    # Stored values are compared above and never cast: they need not fit the new types.
    return _merged(context, context.place.engine.merge(_merge_task(context, ())), counts, route)


def merge(context: UpdateContext, reason: str) -> UpdateResult:
    """Stage an update by a merge of all files of the stream."""
    context.place.engine.require_shared(context.place.storage.uri(""))
    result = context.place.engine.merge(_merge_task(context, context.live))
    if context.plan.update.mode == "full":
        require_few_deletions(context.plan.update, lost=result.lost, live=result.live)
    return _merged(context, result, _counts(result), Route("merge", reason, engine="spark"))


def merge_touched(context: UpdateContext, reason: str) -> UpdateResult:
    """Stage an upsert of a batch that Spark landed: only files that hold one of its keys are merged."""
    context.place.engine.require_shared(context.place.storage.uri(""))
    choices = _choices(context)
    touched = tuple(choice.file.path for choice in choices if choice.action == "rewritten")
    result = context.place.engine.merge(_merge_task(context, touched))
    route = Route("partial merge", reason, choices, "spark")
    return _merged(context, result, _counts(result), route, touched)


def _merged(
    context: UpdateContext,
    result: MergeResult,
    counts: Counts,
    route: Route,
    removed: tuple[str, ...] | None = None,
) -> UpdateResult:
    """The update as a commit of the files that Spark wrote."""
    if result.rows and not result.files:
        require_found((), 0, result.rows)
    paths = context.staging.merged_paths(result.files)
    change = build_table_change(context, counts, paths, route, removed)
    if change.rewrite is not None and change.rewrite.added:
        found = sum(json.loads(file.statistics)["numRecords"] for file in change.rewrite.added)
        require_found(result.files, found, result.rows)
    return change


def can_look_for_keys(context: UpdateContext) -> bool:
    """Whether a search can use the landed batch's own files, with the types of the plan."""
    landed, target = context.incoming.table.schema, context.plan.evolution.target
    return all(landed.field(name).type == target.field(name).type for name in context.plan.key)


def _choices(context: UpdateContext) -> tuple[FileChoice, ...]:
    counted = context.place.engine.count_found(
        find_task(context, context.live, context.incoming.paths, context.incoming.rows)
    )
    # Spark rewrites files and does not write deletion vectors.
    touched = {path: rows for path, rows in zip(context.live, counted, strict=True) if rows}
    return choose(live_files(context.snapshot.files), touched, replace(context.place.rule, is_plain=True))


def _write_content(context: UpdateContext) -> str:
    """Write the batch as a data file with the system columns."""
    plan = context.plan
    content = plan.own.fill(plan.evolution.batch, context.moment_us)
    columns = written_columns(plan.schema, set(content.column_names))
    return context.staging.write_batch(content, columns, plan.key)


def _batch(context: UpdateContext) -> tuple[str, ...]:
    """The batch's files, written if the rows are in memory; none where there is no row."""
    plan, incoming = context.plan, context.incoming
    if incoming.paths or not incoming.rows:
        return incoming.paths
    return (context.staging.write_batch(plan.evolution.batch, plan.batch_schema),)


def _batch_schema(context: UpdateContext) -> dict[str, Any]:
    """The columns of the batch's files: what Spark landed has the frame's own names and types."""
    plan, landed = context.plan, context.incoming.landed
    if landed is None:
        return plan.batch_schema
    return arrow_to_delta(pa.schema([landed.field(name) for name in plan.evolution.batch.column_names]))


def _batch_types(context: UpdateContext) -> dict[str, Any] | None:
    """The columns of Spark's files, open where they have no value (``strategy``); None for our own files."""
    plan, incoming = context.plan, context.incoming
    if incoming.landed is None:
        return None
    return arrow_to_delta(incoming.table.select(plan.evolution.batch.column_names).schema)


def _has_other_key(context: UpdateContext) -> bool:
    return set(stored_key(context.snapshot.metadata) or ()) != set(context.plan.key)


def _merge_task(context: UpdateContext, stored: Sequence[str]) -> MergeTask:
    plan, update, batch = context.plan, context.plan.update, _batch(context)
    return MergeTask(
        stored=context.uris(stored),
        stored_schema=open_columns(written_columns(plan.stored_schema or NO_COLUMNS)),
        batch=tuple(context.staging.uri(path) for path in batch),
        batch_schema=_batch_schema(context),
        batch_types=_batch_types(context),
        target_schema=written_columns(plan.schema),
        key=plan.filled_key,
        mode=update.mode,
        nulls=update.nulls,
        null_keys=update.kept_null_keys,
        where=update.where,
        output=context.staging.begin_merge(),
        deleted=_deleted_positions(context, stored),
        flag=DELETED if plan.own.flags_deleted else "",
        flags_absent=update.mode == "full" and plan.own.flags_deleted and update.deletes != "remove",
        validity=_validity(context) if plan.own.has_history else None,
        size_bytes=_bytes_of(context, stored, batch),
    )


def _bytes_of(context: UpdateContext, stored: Sequence[str], batch: Sequence[str]) -> int:
    known = context.bytes_of(stored) if stored else 0
    return known + staged_bytes(context.place.storage, context.place.folder, batch)


def _validity(context: UpdateContext) -> Validity:
    return Validity(VALID_FROM, VALID_TO, context.moment_us, context.snapshot.timestamp * 1_000)


def _overwrite_counts(context: UpdateContext, batch: tuple[str, ...]) -> Counts:
    """Row counts of the difference between new and stored content, by key or as multisets."""
    plan, other_key = context.plan, _has_other_key(context)
    if not _comparable(plan) or (plan.stored_own.has_history and other_key):
        return Counts(inserted=context.incoming.rows, deleted=row_count(context.snapshot))
    compared = _compared_columns(plan)
    task = MergeTask(
        stored=context.uris(context.live),
        stored_schema=open_columns(compared.stored),
        batch=tuple(context.staging.uri(path) for path in batch),
        batch_schema=_batch_schema(context),
        target_schema=compared.target,
        key=() if other_key else plan.filled_key,
        mode="overwrite",
        null_keys=plan.update.kept_null_keys,
        deleted=_deleted_positions(context, context.live),
        validity=_validity(context) if plan.stored_own.has_history else None,
        write=False,
        size_bytes=_bytes_of(context, context.live, batch),
    )
    return _counts(context.place.engine.merge(task))


def _compared_columns(plan: Plan) -> ComparedColumns:
    """The new columns, and the stored system columns that mark past rows."""
    stored = written_columns(plan.stored_schema or NO_COLUMNS)
    compared = compare_columns(stored, written_columns(plan.schema, set(plan.evolution.target.names)))
    if not plan.stored_own.has_history:
        return compared
    periods = written_columns(plan.stored_schema or NO_COLUMNS, set(plan.stored_own.names))
    fields = [*compared.target["fields"], *periods["fields"]]
    return replace(compared, target={**compared.target, "fields": fields})


def _comparable(plan: Plan) -> bool:
    """Whether a stored row can have the same key as a new one."""
    stored = arrow_columns(plan.stored_schema or NO_COLUMNS)
    return all(
        name in stored.names
        and not is_undecided(stored.field(name))
        and comparison_type(stored.field(name).type, plan.evolution.target.field(name).type) is not None
        for name in plan.key
    )


def _counts(result: MergeResult) -> Counts:
    return Counts(result.inserted, result.updated, result.unchanged, result.deleted)


def _is_data_file(plan: Plan, incoming: Incoming) -> bool:
    """Whether the landed batch's files can become data files unchanged."""
    if incoming.in_memory:
        return True
    same_names = all(path[-1] == physical_name(field) for path, field in fields_by_path(plan.schema))
    settled = pa.schema([(item.name, settled_type(item.type)) for item in incoming.table.schema])
    return same_names and not plan.own.names and settled.equals(plan.evolution.batch.schema)


def _deleted_positions(context: UpdateContext, paths: Sequence[str]) -> dict[str, Any]:
    """The positions of deleted rows by file, for the engine."""
    if not paths:
        return {}
    files = context.snapshot.files
    gone = deleted_positions(
        context.snapshot, files.filter(pc.is_in(files["path"], pa.array(paths, pa.string())))
    )
    return dict(zip(context.uris(list(gone)), gone.values(), strict=True))
