"""Merge of a batch with stored files where more than its changes is written, and the batch in their place."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from freezeframe.engine.frames.untyped import settled_type
from freezeframe.engine.protocol import Positions, WindowTask, require_found
from freezeframe.errors import DuplicateKeyError
from freezeframe.log.format.schema import arrow_to_delta, delta_to_arrow, fields_by_path, physical_name
from freezeframe.log.scan import rows
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import processors
from freezeframe.store.model.directory import StreamTable
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import written_columns
from freezeframe.store.schema.type_compatibility import open_columns
from freezeframe.store.table.reader import LiveFile, live_files, row_count
from freezeframe.store.updates.batch import UpdateBatch
from freezeframe.store.updates.file_merge import BatchRows, FileGroup, FileMerge, MergedFiles, repeated_key
from freezeframe.store.updates.plan import (
    NO_COLUMNS,
    SETTLED_BYTES,
    FileChoice,
    Plan,
    choose,
    left_choice,
    lone_choice,
    require_few_deletions,
)
from freezeframe.store.updates.result import (
    EngineName,
    Route,
    UpdateContext,
    UpdateResult,
    build_table_change,
    compare,
)
from freezeframe.store.updates.rule import MergeRule
from freezeframe.store.updates.upsert import batch_rows, mark


def overwrite(context: UpdateContext) -> UpdateResult:
    """Stage the batch as the whole new content: a first write, or an override."""
    plan, rows = context.plan, context.batch.rows
    if not rows:
        counts = Counts(deleted=row_count(context.snapshot) if context.live else 0)
        return build_table_change(context, counts, (), Route("overwrite", "the batch has no rows"))
    is_data_file = _is_data_file(plan, context.batch)
    route = Route("overwrite", "the batch is the whole content", engine="process" if context.live else "")
    paths, counts = context.batch.paths, Counts(inserted=rows)
    if not is_data_file:
        merged = _file_merge(context, (), batch_rows(context)).run(context.staging)
        paths, rows = merged.paths, merged.rows
    elif not paths:
        content = plan.own.fill(plan.evolution.batch, context.moment_us)
        columns = written_columns(plan.schema, set(content.column_names))
        paths = context.staging.write([content], columns, plan.key)
    change = _counted(build_table_change(context, counts, paths, route), paths, rows)
    return compare(context, change)


def merge(context: UpdateContext, reason: str, rows_here: pa.Table | None) -> UpdateResult:
    """Stage an update by a merge of the stream's files, one by one; only what changes is written.

    ``rows_here`` is the batch where it is in memory.
    """
    plan, batch = context.plan, context.batch
    live = live_files(context.snapshot.files, rows_unknown=0)
    groups, reasons = _groups(
        context, live, _inside(context) if plan.update.mode == "replace_where" else None
    )
    task = _file_merge(context, groups, rows_here)
    merged, engine = _carry_out(context, task)
    met = int(merged.flags(batch.rows).sum())
    if merged.met > met:
        raise repeated_key(plan.filled_key, merged.met)
    if merged.clashing:
        raise DuplicateKeyError(
            f"{merged.clashing} keys ({', '.join(plan.key)}) of the batch are stored outside the window"
            f" {plan.update.where}.",
            cause="Writing them would give the stream two rows with the same key.",
            remedy="Widen replace_where, or use an upsert.",
            count=merged.clashing,
        )
    fates = merged.fates
    if plan.update.mode == "full":
        require_few_deletions(plan.update, lost=fates.lost, live=fates.live)
    # Without a key a row that is replaced by its like is counted once more below.
    counts = Counts(batch.rows - met, fates.updated, fates.unchanged, fates.deleted)
    choices = tuple(_choice(context, file, merged, reasons) for file in live)
    merged = _with_rest(context, task, merged, choices)
    deletion = mark(context, merged.marked) if merged.marked else None
    gone = tuple(file.path for file in live if file.path in merged.replaced)
    route = Route("merge", reason, choices, engine)
    change = build_table_change(context, counts, merged.paths, route, gone, deletion)
    change = _counted(change, merged.paths, merged.rows)
    return change if plan.filled_key else compare(context, change)


def _choice(
    context: UpdateContext, file: LiveFile, merged: MergedFiles, reasons: Mapping[str, str]
) -> FileChoice:
    """Return what becomes of a stored file by the rows of it that change."""
    touched = merged.touched.get(file.path, 0)
    if file.path in merged.replaced:
        return FileChoice(file, "rewritten", reasons.get(file.path) or f"{touched:,} rows change")
    moved = len(merged.marked.get(file.path, ())) - touched
    return lone_choice(file, touched, context.rule, moved) if touched + moved else left_choice(file)


def _with_rest(
    context: UpdateContext, task: FileMerge, merged: MergedFiles, choices: Sequence[FileChoice]
) -> MergedFiles:
    """Copy what is left in files of which too many rows are marked; return the merge with the copies."""
    marked, files = dict(merged.marked), {choice.file.path: choice for choice in choices}
    groups = [
        replace(
            group,
            is_marked=False,
            is_rewritten=True,
            inside=(None,),
            without=np.fromiter(gone, np.int64, len(gone)),
        )
        for group in task.groups
        if (gone := marked.get(path := group.reads[0].path)) is not None
        and files[path].action == "rewritten"
        and len(gone) + files[path].file.deleted < files[path].file.rows
    ]
    if not groups:
        return merged
    nothing = BatchRows(task.batch.schema, 0, table=task.batch.schema.empty_table())
    rule = replace(task.rule, absent="kept")
    rest, _ = _carry_out(
        context, replace(task, groups=tuple(groups), batch=nothing, rule=rule, writes_new=False)
    )
    for group in groups:
        del marked[group.reads[0].path]
    last = max(merged.written, default=0)
    return replace(
        merged,
        replaced=merged.replaced | rest.replaced,
        marked=marked,
        written={**merged.written, last: (*merged.written.get(last, ()), *rest.paths)},
        rows=merged.rows + rest.rows,
    )


def _groups(
    context: UpdateContext, live: Sequence[LiveFile], inside: Mapping[str, Positions] | None
) -> tuple[tuple[FileGroup, ...], dict[str, str]]:
    """Return the files in groups that are merged together; and why some are rewritten anyway, by path."""
    plan = context.plan
    choices = choose(live, {}, replace(context.rule, is_plain=True))
    reasons = {choice.file.path: choice.reason for choice in choices if choice.action == "rewritten"}
    small = [file for file in live if file.path in reasons and file.size < SETTLED_BYTES]
    sizes = itertools.accumulate(file.size for file in small)
    joined = {file.path for file, size in zip(small, sizes, strict=True) if size < SETTLED_BYTES}
    for file in small:
        if file.path not in joined:
            del reasons[file.path]
    everywhere = "columns are dropped or change their type" if plan.evolution.changes_stored_files else ""
    everywhere = everywhere or ("its rows get system columns" if plan.own != plan.stored_own else "")
    if everywhere:
        reasons = dict.fromkeys((file.path for file in live), everywhere) | reasons
    found = rows.plan_reads(context.snapshot, None, None).reads if live else ()
    within = inside or {}
    size = sum(file.size for file in live)
    may_mark = not context.rule.is_plain and size >= context.rule.vectors_from_bytes
    groups = [
        FileGroup(
            (read,),
            (within.get(read.path),),
            is_rewritten=read.path in reasons,
            is_marked=may_mark and read.path not in reasons and read.rows is not None,
        )
        for read in found
        if read.path not in joined
    ]
    together = tuple(read for read in found if read.path in joined)
    if together:
        of_these = tuple(within.get(read.path) for read in together)
        groups.append(FileGroup(together, of_these, becomes_one=True, is_rewritten=True))
    return tuple(groups), reasons


def _file_merge(
    context: UpdateContext, groups: tuple[FileGroup, ...], rows_here: pa.Table | None
) -> FileMerge:
    """Return the merge of the whole batch with the groups."""
    plan, update = context.plan, context.plan.update
    names = set(plan.evolution.target.names)
    columns = delta_to_arrow(written_columns(plan.schema, names))
    stored = {field["name"] for field in written_columns(plan.stored_schema or NO_COLUMNS)["fields"]}
    updates_cells = update.mode in ("upsert", "full")
    is_flagged = plan.own.flags_deleted and update.mode == "full" and update.deletes != "remove"
    rule = MergeRule(
        columns,
        tuple(name for name in columns.names if name in stored),
        plan.filled_key,
        keeps_nulls=updates_cells and update.nulls == "keep",
        absent="flagged" if is_flagged else "kept" if update.mode == "upsert" else "removed",
        own=plan.own,
        moment_us=context.moment_us,
        since_us=context.snapshot.timestamp * 1_000,
    )
    schema = plan.evolution.batch.schema.remove_metadata() if updates_cells else columns
    storage, table = context.snapshot.storage, context.snapshot.table
    files = () if rows_here is not None else tuple(context.staging.sizes(context.batch.paths).items())
    batch = BatchRows(schema, context.batch.rows, storage, files, rows_here)
    return FileMerge(
        StreamTable(storage, table),
        context.staging.name,
        written_columns(plan.schema),
        rule,
        batch,
        groups,
        writes_new=True,
    )


def _carry_out(context: UpdateContext, task: FileMerge) -> tuple[MergedFiles, EngineName]:
    """Run the merge, in parts where Spark does; return also who ran it."""
    stored = sum(read.rows or 0 for group in task.groups for read in group.reads)
    found = None
    if task.groups and stored > context.rule.searched_rows_max:
        storage = context.engine.storage_of_tasks(context.snapshot.storage)
        if storage is not None:
            context.engine.require_shared(context.snapshot.storage.uri(""))
            context.staging.share()
            parts = _landed(context, task, storage).shares(processors())
            found = context.engine.run([part.run for part in parts])
    if found is None:
        (whole,) = task.shares(1)
        return whole.run(context.staging), "process"
    merged = MergedFiles.joined(found)
    context.staging.take_hashes(merged.hashes)
    if len(found) > 1 and task.writes_new:
        merged = task.write_new(context.staging, merged)
    return merged, "spark"


def _landed(context: UpdateContext, task: FileMerge, storage: Storage) -> FileMerge:
    """Return the merge as Spark's workers carry it out: all that it reads is in files, in ``storage``."""
    batch = task.batch
    if batch.table is not None and batch.rows:
        paths = context.batch.paths or (
            context.staging.write_pieces([batch.table], batch.table.schema.remove_metadata()),
        )
        batch = replace(batch, table=None, files=tuple(context.staging.sizes(paths).items()))
    table = StreamTable(storage, task.table.table)
    return replace(task, table=table, batch=replace(batch, storage=storage))


def _inside(context: UpdateContext) -> dict[str, Positions]:
    """Have Spark check that the batch is inside the window, and find the stored rows that are."""
    context.engine.require_shared(context.snapshot.storage.uri(""))
    plan, live = context.plan, context.live
    found = context.engine.rows_inside(
        WindowTask(
            stored=context.uris(live),
            stored_schema=open_columns(written_columns((plan.stored_schema if live else None) or NO_COLUMNS)),
            batch=tuple(map(context.staging.uri, _batch_paths(context))),
            batch_schema=_batch_schema(context),
            batch_types=_batch_types(context),
            target_schema=written_columns(plan.schema),
            where=plan.update.where or "",
        )
    )
    return dict(zip(live, found, strict=True))


def _counted(change: UpdateResult, paths: Sequence[str], rows_written: int) -> UpdateResult:
    """Check that the files have as many rows as were counted on their way into them."""
    if change.rewrite is not None and change.rewrite.added:
        found = sum(json.loads(file.statistics)["numRecords"] for file in change.rewrite.added)
        require_found(paths, found, rows_written)
    return change


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


def _is_data_file(plan: Plan, batch: UpdateBatch) -> bool:
    """Return whether the landed batch's files can become data files unchanged."""
    if batch.in_memory:
        return True
    same_names = all(path[-1] == physical_name(field) for path, field in fields_by_path(plan.schema))
    settled = pa.schema([(item.name, settled_type(item.type)) for item in batch.table.schema])
    return same_names and not plan.own.names and settled.equals(plan.evolution.batch.schema)
