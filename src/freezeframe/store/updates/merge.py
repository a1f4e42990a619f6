"""Updates that Spark carries out alone: a merge of the batch with all files of a stream, or with some.

Some are enough where an upsert touches some: first the keys are looked for, then the files that
hold one are merged with the batch, and the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.protocol.table_engine import MergeResult, MergeTask, Validity
from freezeframe.log.schema.column_mapping import fields_by_path, physical_name
from freezeframe.log.schema.schema import arrow_to_delta
from freezeframe.store.model.row_counts import Counts
from freezeframe.store.schema.column_mapping import arrow_columns, written_columns
from freezeframe.store.schema.comparison import ComparedColumns, compared_columns, compared_type
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.schema.system_columns import DELETED, VALID_FROM, VALID_TO
from freezeframe.store.schema.table_properties import stored_key
from freezeframe.store.table.data_files import deleted_positions, live_files
from freezeframe.store.table.reader import live_row_count
from freezeframe.store.updates.change_builder import rewritten
from freezeframe.store.updates.compaction_policy import Choice, choose
from freezeframe.store.updates.deletion_guard import require_few_deletions
from freezeframe.store.updates.key_lookup import find_task
from freezeframe.store.updates.plan import NO_COLUMNS, Plan
from freezeframe.store.updates.result import Route, Staged, Staging
from freezeframe.store.updates.source import Incoming


def load(work: Staging) -> Staged:
    """Stage rows that are the whole new content: a first write, or an override."""
    plan, incoming, attempt = work.plan, work.incoming, work.attempt
    is_data_file = _is_data_file(plan, incoming)
    asks = bool(work.live) or not is_data_file
    route = Route("load", "the batch is the whole content", engine="spark" if asks else "")
    if asks:
        work.engine.require_shared(work.storage.uri(""))
    if is_data_file:
        batch = incoming.paths or (_landed_content(work),)
        counts = _overwrite_counts(work, batch) if work.live else Counts(inserted=incoming.rows)
        return rewritten(work, counts, batch if incoming.rows else (), route)
    counts = _overwrite_counts(work, incoming.paths) if work.live else Counts(inserted=incoming.rows)
    # Stored values are compared above and never cast: they need not fit the new types.
    result = work.engine.merge(_merge_task(work, ()))
    return rewritten(work, counts, attempt.merged_paths(result.files), route)


def merge(work: Staging, reason: str) -> Staged:
    """Stage an update that goes through all files of the stream.

    Raises:
        TooManyDeletions: a full extract lacks more rows than it may.
    """
    work.engine.require_shared(work.storage.uri(""))
    result = work.engine.merge(_merge_task(work, work.live))
    if work.plan.update.mode == "full":
        require_few_deletions(work.plan.update, lost=result.lost, live=result.live)
    paths = work.attempt.merged_paths(result.files)
    return rewritten(work, _counts(result), paths, Route("merge", reason, engine="spark"))


def merge_touched(work: Staging, reason: str) -> Staged:
    """Stage an upsert of a batch that Spark landed: only files that hold one of its keys are merged."""
    work.engine.require_shared(work.storage.uri(""))
    choices = _choices(work)
    touched = tuple(choice.file.path for choice in choices if choice.fate == "rewritten")
    result = work.engine.merge(_merge_task(work, touched))
    paths = work.attempt.merged_paths(result.files)
    return rewritten(work, _counts(result), paths, Route("partial merge", reason, choices, "spark"), touched)


def can_look_for_keys(work: Staging) -> bool:
    """Whether the landed batch's own files can be searched for, in the types of the plan."""
    landed, target = work.incoming.table.schema, work.plan.evolution.target
    return all(landed.field(name).type == target.field(name).type for name in work.plan.key)


def _choices(work: Staging) -> tuple[Choice, ...]:
    counted = work.engine.count_found(find_task(work, work.live, work.incoming.paths, work.incoming.rows))
    # Spark writes files anew and marks nothing in them.
    touched = {path: rows for path, rows in zip(work.live, counted, strict=True) if rows}
    return choose(live_files(work.snapshot.files), touched, replace(work.rule, is_plain=True))


def _landed_content(work: Staging) -> str:
    """The batch as a data file, with what the stream keeps beside its columns."""
    plan = work.plan
    content = plan.own.filled(plan.evolution.batch, work.moment_us)
    columns = written_columns(plan.schema, set(content.column_names))
    return work.attempt.land(content, columns, plan.key)


def _batch(work: Staging) -> tuple[str, ...]:
    """The batch's files, written if the rows are in memory."""
    plan = work.plan
    return work.incoming.paths or (work.attempt.land(plan.evolution.batch, plan.batch_schema),)


def _batch_schema(work: Staging) -> dict[str, Any]:
    """The columns of the batch's files: what Spark landed has the frame's own names and types."""
    plan, incoming = work.plan, work.incoming
    if not incoming.paths:
        return plan.batch_schema
    return arrow_to_delta(incoming.table.select(plan.evolution.batch.column_names).schema)


def _has_other_key(work: Staging) -> bool:
    return set(stored_key(work.snapshot.metadata) or ()) != set(work.plan.key)


def _merge_task(work: Staging, stored: Sequence[str]) -> MergeTask:
    plan, update = work.plan, work.plan.update
    return MergeTask(
        stored=work.uris(stored),
        stored_schema=written_columns(plan.stored_schema or NO_COLUMNS),
        batch=tuple(work.attempt.uri(path) for path in _batch(work)),
        batch_schema=_batch_schema(work),
        target_schema=written_columns(plan.schema),
        key=plan.told_key,
        mode=update.mode,
        nulls=update.nulls,
        null_keys=update.kept_null_keys,
        where=update.where,
        output=work.attempt.begin_merged(),
        deleted=_deleted(work, stored),
        flag=DELETED if plan.own.flags_deleted else "",
        flags_absent=update.mode == "full" and plan.own.flags_deleted and update.deletes != "remove",
        validity=_validity(work) if plan.own.has_history else None,
    )


def _validity(work: Staging) -> Validity:
    return Validity(VALID_FROM, VALID_TO, work.moment_us, work.snapshot.timestamp * 1_000)


def _overwrite_counts(work: Staging, batch: tuple[str, ...]) -> Counts:
    """How the whole new content differs from the stored one, by key or as a multiset of rows."""
    plan, other_key = work.plan, _has_other_key(work)
    if not _comparable(plan) or (plan.stored_own.has_history and other_key):
        return Counts(inserted=work.incoming.rows, deleted=live_row_count(work.snapshot))
    compared = _compared_columns(plan)
    task = MergeTask(
        stored=work.uris(work.live),
        stored_schema=compared.stored,
        batch=tuple(work.attempt.uri(path) for path in batch),
        batch_schema=_batch_schema(work),
        target_schema=compared.target,
        key=() if other_key else plan.told_key,
        mode="overwrite",
        null_keys=plan.update.kept_null_keys,
        deleted=_deleted(work, work.live),
        validity=_validity(work) if plan.stored_own.has_history else None,
        write=False,
    )
    return _counts(work.engine.merge(task))


def _compared_columns(plan: Plan) -> ComparedColumns:
    """The new columns, and the stored ones that say which rows are of the past."""
    stored = written_columns(plan.stored_schema or NO_COLUMNS)
    compared = compared_columns(stored, written_columns(plan.schema, set(plan.evolution.target.names)))
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
        and compared_type(stored.field(name).type, plan.evolution.target.field(name).type) is not None
        for name in plan.key
    )


def _counts(result: MergeResult) -> Counts:
    return Counts(result.inserted, result.updated, result.unchanged, result.deleted)


def _is_data_file(plan: Plan, incoming: Incoming) -> bool:
    """Whether the landed batch already is what the table would hold."""
    if incoming.in_memory:
        return True
    same_names = all(path[-1] == physical_name(field) for path, field in fields_by_path(plan.schema))
    return same_names and not plan.own.names and incoming.table.schema.equals(plan.evolution.batch.schema)


def _deleted(work: Staging, paths: Sequence[str]) -> dict[str, Any]:
    """For the engine: by file the positions of rows that are deleted."""
    if not paths:
        return {}
    files = work.snapshot.files
    gone = deleted_positions(
        work.snapshot, files.filter(pc.is_in(files["path"], pa.array(paths, pa.string())))
    )
    return dict(zip(work.uris(list(gone)), gone.values(), strict=True))
