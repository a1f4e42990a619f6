"""Chooses the route of an update and stages its files; nothing becomes visible.

A batch without stored rows, or one that replaces all of them, is the new content. An upsert is a
patch: its rows are located, and only changes are written. Every other update is a merge by Spark.
Source: ``docs/decisions/0015``, ``docs/decisions/0024``.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from freezeframe.clock import now_ms
from freezeframe.engine.frames.untyped import fit, has_untyped
from freezeframe.log import Snapshot
from freezeframe.observation import observe
from freezeframe.store.model.row_counts import Counts
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.column_mapping import arrow_columns
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.schema.system_columns import read_system_columns
from freezeframe.store.schema.type_compatibility import common_nested
from freezeframe.store.table.reader import live_row_count
from freezeframe.store.table.row_shape import with_columns
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.updates.change_builder import build_patch_change
from freezeframe.store.updates.deletion_guard import require_few_deletions
from freezeframe.store.updates.merge import can_look_for_keys, load, merge, merge_touched
from freezeframe.store.updates.plan import plan_update
from freezeframe.store.updates.result import Route, UpdateContext, UpdateResult
from freezeframe.store.updates.source import LANDED_BYTES_MAX, Incoming
from freezeframe.store.updates.update_place import UpdatePlace
from freezeframe.store.updates.upsert import batch_rows, breadth, obstacle, patch


@observe("update")
def stage(
    place: UpdatePlace, snapshot: Snapshot, incoming: Incoming, update: Update, staging: StagingFolder
) -> UpdateResult:
    """Write the stream's new content into ``staging`` and count the row changes.

    Nothing becomes visible.

    Raises:
        TooManyDeletions: a full extract lacks more rows than it may.
    """
    if _says_nothing(snapshot, incoming, update):
        return UpdateResult(Counts(), None, None, Route("nothing", "the batch has no rows"))
    incoming = _without_idle_types(snapshot, _with_columns(snapshot, incoming, update), update)
    plan = plan_update(snapshot, incoming, update)
    if update.mode == "full" and not incoming.rows:
        stored_rows = live_row_count(snapshot)
        require_few_deletions(update, lost=stored_rows, live=stored_rows)
    staging.prepare()
    context = UpdateContext(place, snapshot, incoming, plan, staging, _moment_us(snapshot))
    if update.mode == "overwrite" or (update.mode != "replace_where" and not context.live):
        return load(context)
    hindrance = obstacle(plan, snapshot)
    if hindrance:
        return merge(context, hindrance)
    rows = batch_rows(plan, incoming)
    if rows is None:
        reason = f"the batch that Spark landed takes more than {LANDED_BYTES_MAX:,} bytes of memory"
        return merge_touched(context, reason) if can_look_for_keys(context) else merge(context, reason)
    too_broad = breadth(context, rows)
    if too_broad:
        return merge(context, too_broad)
    done = patch(context, rows)
    reason = f"an upsert of {len(rows):,} rows, {done.searched}"
    return build_patch_change(context, done, Route("patch", reason, done.choices, done.engine))


def _says_nothing(snapshot: Snapshot, incoming: Incoming, update: Update) -> bool:
    """Whether an update without rows changes nothing."""
    if incoming.rows or update.notes or update.mode not in ("upsert", "full"):
        return False
    if snapshot.version < 0:
        return not incoming.table.num_columns
    begins_history = update.history == "scd2" and not read_system_columns(snapshot.metadata).has_history
    return update.mode == "upsert" and not begins_history and not _drops_columns(snapshot, update)


def _drops_columns(snapshot: Snapshot, update: Update) -> bool:
    return bool(set(update.drop_columns) & set(arrow_columns(snapshot.schema).names))


def _with_columns(snapshot: Snapshot, incoming: Incoming, update: Update) -> Incoming:
    """A batch without rows says nothing about columns, and often has none: then it has those of the key.

    So an upsert without rows can drop columns, and neither bring nor change any.
    """
    if incoming.rows or snapshot.version < 0 or update.mode not in ("upsert", "full"):
        return incoming
    if update.mode == "full" and incoming.table.num_columns:
        return incoming
    stored = arrow_columns(snapshot.schema)
    known = set(stored.names)
    key = pa.schema([stored.field(name) for name in update.key if name in known])
    return replace(incoming, table=key.remove_metadata().empty_table())


def _without_idle_types(snapshot: Snapshot, incoming: Incoming, update: Update) -> Incoming:
    """What has no value has no type of its own where the stream has the column in another one.

    What a frame says of such a column, or of a part of it (pandas and Spark call it text as a rule), says
    nothing of values, and decides nothing that is open in the stream's column.
    """
    if snapshot.version < 0 or update.mode == "overwrite":
        return incoming
    held = dict(zip(incoming.table.column_names, incoming.table.columns, strict=True))
    unsure = []
    for field in arrow_columns(snapshot.schema):
        if field.name not in held:
            continue
        kind, stored = held[field.name].type, pa.null() if is_undecided(field) else field.type
        if not has_untyped(stored) and common_nested(stored, kind) == stored:
            continue
        if kind not in (stored, pa.null()):
            unsure.append(field.name)
    filled = incoming.filled_types(unsure)
    typed = {name: fit(held[name], kind) for name, kind in filled.items() if kind != held[name].type}
    return replace(incoming, table=with_columns(incoming.table, typed)) if typed else incoming


def _moment_us(snapshot: Snapshot) -> int:
    return max(now_ms(), snapshot.timestamp + 1) * 1_000
