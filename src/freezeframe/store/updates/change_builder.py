"""Builds the commit of an update: schema, properties and sealed files."""

from __future__ import annotations

from dataclasses import replace

from freezeframe.log import Snapshot
from freezeframe.log.write.row_deletion import VECTORS_KEY, RowDeletion, mark_rows
from freezeframe.store.model.row_counts import Counts
from freezeframe.store.schema.column_mapping import written_columns
from freezeframe.store.schema.table_properties import stored_key, stored_notes
from freezeframe.store.table.commit import TableChange
from freezeframe.store.table.data_files import has_vectors
from freezeframe.store.updates.plan import Plan
from freezeframe.store.updates.result import Route, UpdateContext, UpdateResult
from freezeframe.store.updates.upsert import Patch

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
