"""Merge of a batch into all files that it may touch."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.untyped import settled_type
from freezeframe.engine.protocol import MergeResult, MergeTask, Validity, require_found
from freezeframe.log.format.schema import arrow_to_delta, fields_by_path, physical_name
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import (
    DELETED,
    VALID_FROM,
    VALID_TO,
    arrow_columns,
    stored_key,
    written_columns,
)
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.schema.type_compatibility import (
    ComparedColumns,
    compare_columns,
    comparison_type,
    open_columns,
)
from freezeframe.store.table.reader import deleted_positions, live_files, row_count
from freezeframe.store.updates.batch import UpdateBatch
from freezeframe.store.updates.plan import NO_COLUMNS, FileChoice, Plan, choose, require_few_deletions
from freezeframe.store.updates.result import Route, UpdateContext, UpdateResult, build_table_change
from freezeframe.store.updates.upsert import find_task

# An upsert first searches the keys, then merges only the files that hold one with the batch; the other
# files stay unchanged.


def overwrite(context: UpdateContext) -> UpdateResult:
    """Stage the batch as the whole new content: a first write, or an override."""
    plan, rows = context.plan, context.batch.rows
    if not rows:
        counts = Counts(deleted=row_count(context.snapshot) if context.live else 0)
        return build_table_change(context, counts, (), Route("overwrite", "the batch has no rows"))
    is_data_file = _is_data_file(plan, context.batch)
    needs_engine = bool(context.live) or not is_data_file
    route = Route("overwrite", "the batch is the whole content", engine="spark" if needs_engine else "")
    if needs_engine:
        context.engine.require_shared(context.snapshot.storage.uri(""))
    paths = context.batch.paths
    if is_data_file and not paths:
        content = plan.own.fill(plan.evolution.batch, context.moment_us)
        columns = written_columns(plan.schema, set(content.column_names))
        paths = context.staging.write([content], columns, plan.key)
    counts = _overwrite_counts(context, paths) if context.live else Counts(inserted=rows)
    if is_data_file:
        return build_table_change(context, counts, paths, route)
    # Stored values are compared above and never cast: they need not fit the new types.
    return _merged(context, context.engine.merge(_merge_task(context, ())), counts, route)


def merge(context: UpdateContext, reason: str) -> UpdateResult:
    """Stage an update by a merge of all files of the stream."""
    context.engine.require_shared(context.snapshot.storage.uri(""))
    result = context.engine.merge(_merge_task(context, context.live))
    if context.plan.update.mode == "full":
        require_few_deletions(context.plan.update, lost=result.lost, live=result.live)
    return _merged(context, result, _counts(result), Route("merge", reason, engine="spark"))


def merge_touched(context: UpdateContext, reason: str) -> UpdateResult:
    """Stage an upsert of a batch that Spark landed: only files that hold one of its keys are merged."""
    context.engine.require_shared(context.snapshot.storage.uri(""))
    choices = _choices(context)
    touched = tuple(choice.file.path for choice in choices if choice.action == "rewritten")
    result = context.engine.merge(_merge_task(context, touched))
    route = Route("merge", reason, choices, "spark")
    return _merged(context, result, _counts(result), route, touched)


def _merged(
    context: UpdateContext,
    result: MergeResult,
    counts: Counts,
    route: Route,
    removed: tuple[str, ...] | None = None,
) -> UpdateResult:
    """Return the update as a commit of the files that Spark wrote."""
    if result.rows and not result.files:
        require_found((), 0, result.rows)
    paths = context.staging.merged_paths(result.files)
    change = build_table_change(context, counts, paths, route, removed)
    if change.rewrite is not None and change.rewrite.added:
        found = sum(json.loads(file.statistics)["numRecords"] for file in change.rewrite.added)
        require_found(result.files, found, result.rows)
    return change


def can_look_for_keys(context: UpdateContext) -> bool:
    """Return whether a search can use the landed batch's own files, with the types of the plan."""
    landed, target = context.batch.table.schema, context.plan.evolution.target
    return all(landed.field(name).type == target.field(name).type for name in context.plan.key)


def _choices(context: UpdateContext) -> tuple[FileChoice, ...]:
    counted = context.engine.count_found(
        find_task(context, context.live, context.batch.paths, context.batch.rows)
    )
    # Spark rewrites files and does not write deletion vectors.
    touched = {path: rows for path, rows in zip(context.live, counted, strict=True) if rows}
    return choose(live_files(context.snapshot.files), touched, replace(context.rule, is_plain=True))


def _batch_paths(context: UpdateContext) -> tuple[str, ...]:
    """Return the batch's files, written if the rows are in memory; none where there is no row."""
    plan, batch = context.plan, context.batch
    if batch.paths or not batch.rows:
        return batch.paths
    return context.staging.write([plan.evolution.batch], plan.batch_schema)


def _batch_schema(context: UpdateContext) -> dict[str, Any]:
    """Return the columns of the batch's files: what Spark landed has the frame's own names and types."""
    plan, landed = context.plan, context.batch.landed
    if landed is None:
        return plan.batch_schema
    return arrow_to_delta(pa.schema([landed.field(name) for name in plan.evolution.batch.column_names]))


def _batch_types(context: UpdateContext) -> dict[str, Any] | None:
    """Return the columns of Spark's files, open where they have no value; None for our own files."""
    plan, batch = context.plan, context.batch
    if batch.landed is None:
        return None
    return arrow_to_delta(batch.table.select(plan.evolution.batch.column_names).schema)


def _merge_task(context: UpdateContext, stored: Sequence[str]) -> MergeTask:
    plan, update, batch = context.plan, context.plan.update, _batch_paths(context)
    # Spark refuses casts between types that have nothing in common, also of no rows.
    stored_schema = (plan.stored_schema if stored else None) or NO_COLUMNS
    return MergeTask(
        stored=context.uris(stored),
        stored_schema=open_columns(written_columns(stored_schema)),
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
        size_bytes=context.bytes_of(stored) + context.staging.bytes_of(batch),
    )


def _validity(context: UpdateContext) -> Validity:
    return Validity(VALID_FROM, VALID_TO, context.moment_us, context.snapshot.timestamp * 1_000)


def _overwrite_counts(context: UpdateContext, batch: tuple[str, ...]) -> Counts:
    """Row counts of the difference between new and stored content, by key or as multisets."""
    plan = context.plan
    other_key = set(stored_key(context.snapshot.metadata) or ()) != set(plan.key)
    if not _comparable(plan) or (plan.stored_own.has_history and other_key):
        return Counts(inserted=context.batch.rows, deleted=row_count(context.snapshot))
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
        size_bytes=context.bytes_of(context.live) + context.staging.bytes_of(batch),
    )
    return _counts(context.engine.merge(task))


def _compared_columns(plan: Plan) -> ComparedColumns:
    """Return the new columns, and the stored system columns that mark past rows."""
    stored = written_columns(plan.stored_schema or NO_COLUMNS)
    compared = compare_columns(stored, written_columns(plan.schema, set(plan.evolution.target.names)))
    if not plan.stored_own.has_history:
        return compared
    periods = written_columns(plan.stored_schema or NO_COLUMNS, set(plan.stored_own.names))
    fields = [*compared.target["fields"], *periods["fields"]]
    return replace(compared, target={**compared.target, "fields": fields})


def _comparable(plan: Plan) -> bool:
    """Return whether a stored row can have the same key as a new one."""
    stored = arrow_columns(plan.stored_schema or NO_COLUMNS)
    return all(
        name in stored.names
        and not is_undecided(stored.field(name))
        and comparison_type(stored.field(name).type, plan.evolution.target.field(name).type) is not None
        for name in plan.key
    )


def _counts(result: MergeResult) -> Counts:
    return Counts(result.inserted, result.updated, result.unchanged, result.deleted)


def _is_data_file(plan: Plan, batch: UpdateBatch) -> bool:
    """Return whether the landed batch's files can become data files unchanged."""
    if batch.in_memory:
        return True
    same_names = all(path[-1] == physical_name(field) for path, field in fields_by_path(plan.schema))
    settled = pa.schema([(item.name, settled_type(item.type)) for item in batch.table.schema])
    return same_names and not plan.own.names and settled.equals(plan.evolution.batch.schema)


def _deleted_positions(context: UpdateContext, paths: Sequence[str]) -> dict[str, Any]:
    """Return the positions of deleted rows by file, for the engine."""
    if not paths:
        return {}
    files = context.snapshot.files
    gone = deleted_positions(
        context.snapshot, files.filter(pc.is_in(files["path"], pa.array(paths, pa.string())))
    )
    return dict(zip(context.uris(list(gone)), gone.values(), strict=True))
