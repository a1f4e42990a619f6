"""Choice of an update's route, and its explanation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from freezeframe.clock import now_ms
from freezeframe.engine.frames.untyped import fit, has_untyped
from freezeframe.log import Snapshot
from freezeframe.observation import observe
from freezeframe.settings import Settings
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.columns import arrow_columns, read_system_columns
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.schema.type_compatibility import common_nested
from freezeframe.store.table.data_files import live_files
from freezeframe.store.table.reader import live_row_count, with_columns
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.updates.merge import build_patch_change, can_look_for_keys, load, merge, merge_touched
from freezeframe.store.updates.plan import (
    FileChoice,
    FileRule,
    choose,
    plan_update,
    require_few_deletions,
    rule_of,
    size_class,
)
from freezeframe.store.updates.result import Route, UpdateContext, UpdateResult
from freezeframe.store.updates.source import LANDED_BYTES_MAX, Incoming
from freezeframe.store.updates.update_place import UpdatePlace
from freezeframe.store.updates.upsert import batch_rows, breadth, obstacle, patch

# Chooses the route of an update and stages its files; nothing becomes visible.
#
# A batch without stored rows, or one that replaces all of them, is the new content. An upsert is a
# patch: its rows are located, and only changes are written. Every other update is a merge by Spark.
# Source: ``docs/decisions/0015``, ``docs/decisions/0024``.


@observe("update")
def stage(
    place: UpdatePlace, snapshot: Snapshot, incoming: Incoming, update: Update, staging: StagingFolder
) -> UpdateResult:
    """Write the stream's new content into ``staging`` and count the row changes.

    Nothing becomes visible.
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


# Explains an update: its plan without execution.


@dataclass(frozen=True, slots=True)
class Explanation:
    """Plan of an update: route, row counts, and the action on each file.

    Without a batch (``counts`` is None) it is about an update that only brings new rows.
    """

    stream: str
    stream_version: int
    route: Route
    counts: Counts | None
    rule: FileRule
    bytes_written: int

    def files(self) -> list[dict[str, Any]]:
        """One record per file: path, bytes, rows, deleted rows, size class, fate and reason."""
        return [_line(choice) for choice in self.route.choices]

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "stream": self.stream,
            "stream_version": self.stream_version,
            "route": self.route.kind,
            "engine": self.route.engine,
            "reason": self.route.reason,
            "counts": None if self.counts is None else self.counts.to_json(),
            "bytes_written": self.bytes_written,
            "vectors_from_bytes": self.rule.vectors_from_bytes,
            "plain": self.rule.is_plain,
            "files": self.files(),
        }


def explain_state(name: str, snapshot: Snapshot, settings: Settings) -> Explanation:
    """Explain an update with only new rows, by the current files."""
    rule = rule_of(settings)
    if snapshot.version < 0 or not snapshot.count:
        route = Route("load", "there are no stored rows: the batch is the whole content")
    else:
        route = Route(
            "patch", "new rows are written beside the stored ones", _untouched_files(snapshot, rule)
        )
    return Explanation(name, snapshot.version, route, None, rule, 0)


def explain_update(name: str, version: int, staged: UpdateResult, settings: Settings) -> Explanation:
    """Explain a staged update."""
    written = staged.rewrite.new_bytes if staged.rewrite else 0
    return Explanation(name, version, staged.route, staged.counts, rule_of(settings), written)


def _untouched_files(snapshot: Snapshot, rule: FileRule) -> tuple[FileChoice, ...]:
    nothing: Mapping[str, int] = {}
    return choose(live_files(snapshot.files), nothing, rule)


def _line(choice: FileChoice) -> dict[str, Any]:
    file = choice.file
    return {
        "file": file.path,
        "bytes": file.size,
        "rows": file.rows,
        "deleted": file.deleted,
        "size_class": size_class(file.size),
        "fate": choice.action,
        "reason": choice.reason,
    }
