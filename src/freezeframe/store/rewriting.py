"""From what became of the rows to the commit that says so: columns, properties and sealed files."""

from __future__ import annotations

from freezeframe.log import Snapshot
from freezeframe.log.row_deletion import VECTORS_KEY, marked_rows
from freezeframe.store.columns import written_columns
from freezeframe.store.entries import Counts
from freezeframe.store.guard import stored_key, stored_notes
from freezeframe.store.live_files import has_vectors
from freezeframe.store.patching import Patch
from freezeframe.store.plan import Plan
from freezeframe.store.staged import Route, Staged, Staging
from freezeframe.store.table_commit import Rewrite

_OPERATIONS = {"upsert": "MERGE", "full": "MERGE", "overwrite": "WRITE", "replace_where": "WRITE"}


def rewritten(
    work: Staging,
    counts: Counts,
    paths: tuple[str, ...],
    route: Route,
    removed: tuple[str, ...] | None = None,
) -> Staged:
    """The update as a commit whose new files are ``paths`` and replace ``removed`` (None: all files)."""
    plan, snapshot = work.plan, work.snapshot
    rewrites = bool(counts.changed) or plan.evolution.changes_stored_files or _rows_written_anew(plan)
    changes_metadata = _changes_metadata(plan, snapshot)
    if not (rewrites or changes_metadata):
        return Staged(counts, plan, None, route)
    rewrite = Rewrite(
        _OPERATIONS[plan.update.mode] if snapshot.version >= 0 else "CREATE TABLE AS SELECT",
        plan.key,
        plan.schema if changes_metadata else None,
        work.attempt.seal(paths, written_columns(plan.schema)) if rewrites else (),
        replaces_files=rewrites and removed is None,
        counts=counts,
        notes=plan.update.notes,
        properties={**plan.own.properties},
        removed=(removed or ()) if rewrites else (),
        plan=str(route),
    )
    return Staged(counts, plan, rewrite, route)


def patched(work: Staging, patch: Patch, route: Route) -> Staged:
    """The update as a commit that adds the patch's files, and removes or marks old ones."""
    plan, snapshot = work.plan, work.snapshot
    changes_metadata = _changes_metadata(plan, snapshot)
    if not (patch.counts.changed or changes_metadata):
        return Staged(patch.counts, plan, None, route)
    deletion = marked_rows(snapshot, patch.marked, prefix=work.attempt.name) if patch.marked else None
    vectors = deletion.file if deletion else None
    if vectors is not None:
        work.attempt.store(vectors.name, vectors.content)
    switches_on = deletion is not None and not has_vectors(snapshot)
    rewrite = Rewrite(
        _OPERATIONS[plan.update.mode],
        plan.key,
        plan.schema if changes_metadata or switches_on else None,
        work.attempt.seal(patch.written, written_columns(plan.schema)),
        replaces_files=False,
        counts=patch.counts,
        notes=plan.update.notes,
        properties={**plan.own.properties, **({VECTORS_KEY: "true"} if switches_on else {})},
        removed=patch.removed,
        marks=deletion.actions if deletion else (),
        vector_file=vectors,
        plan=str(route),
    )
    return Staged(patch.counts, plan, rewrite, route)


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
