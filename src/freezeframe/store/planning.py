"""From an update and a stream's present state to staged files and counts: nothing visible yet.

A batch that meets no stored rows, or replaces all of them, is itself the new data file: Spark is
then not asked to move rows. Everything else is one merge by the engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from freezeframe.engine.base import MergeResult, MergeTask, TableEngine
from freezeframe.errors import BadInput, InvalidOption, SchemaDriftError, UnsupportedTable
from freezeframe.log import Snapshot, rows
from freezeframe.storage import Storage
from freezeframe.store.columns import arrow_columns, delta_columns, physical_names, written_columns
from freezeframe.store.entries import Counts
from freezeframe.store.evolution import Evolution, Ranges, SchemaRules, evolve
from freezeframe.store.guard import stored_key, stored_notes
from freezeframe.store.incoming import Incoming
from freezeframe.store.staging import Attempt
from freezeframe.store.table_commit import Rewrite
from freezeframe.store.update import Update

_OPERATIONS = {"upsert": "MERGE", "overwrite": "WRITE", "replace_where": "WRITE"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What an update means for a stream's columns and key, before any row is read (pure)."""

    update: Update
    key: tuple[str, ...]
    evolution: Evolution
    stored_schema: dict[str, Any] | None
    schema: dict[str, Any]

    @property
    def changes_schema(self) -> bool:
        """Whether the table's metadata changes."""
        return self.stored_schema != self.schema

    @property
    def batch_schema(self) -> dict[str, Any]:
        """The columns that the batch has."""
        return written_columns(self.schema, set(self.evolution.batch.column_names))


@dataclass(frozen=True, slots=True)
class Staged:
    """The outcome of planning: what happened to the rows, and the commit to make (None: nothing changes)."""

    counts: Counts
    plan: Plan | None
    rewrite: Rewrite | None


def plan_update(snapshot: Snapshot, incoming: Incoming, update: Update) -> Plan:
    """How the update changes the stream's key and columns.

    Raises:
        SchemaDriftError, BadInput: the columns do not fit what is stored.
        InvalidOption: the key is not the stream's.
    """
    is_new = snapshot.version < 0
    stored_schema = None if is_new else dict(snapshot.schema)
    key = update.key if is_new else _agreed_key(update, stored_key(snapshot.metadata))
    if not incoming.table.num_columns:
        raise BadInput(
            "The frame has no columns.",
            cause="A stream needs at least one.",
            remedy="Pass a frame with the columns of the stream, even if it has no rows.",
        )
    keeps_columns = stored_schema is not None and update.mode != "overwrite"
    evolution = evolve(
        arrow_columns(stored_schema) if keeps_columns and stored_schema else None,
        incoming.table,
        key=key,
        drop=update.drop_columns,
        ranges=_ranges(snapshot) if keeps_columns else None,
        values_known=incoming.in_memory,
        rules=SchemaRules(update.schema == "frozen", update.on_drift == "string"),
    )
    schema = delta_columns(evolution.target, stored_schema)
    return Plan(update, key, evolution, stored_schema, schema)


def stage(
    engine: TableEngine,
    storage: Storage,
    folder: str,
    snapshot: Snapshot,
    incoming: Incoming,
    update: Update,
    attempt: Attempt,
) -> Staged:
    """Write the stream's new content into ``attempt`` and count what became of the rows.

    ``folder`` is the stream's table. Nothing becomes visible.
    """
    if (
        not incoming.rows
        and update.mode == "upsert"
        and not update.notes
        and (snapshot.version >= 0 or not incoming.table.num_columns)
    ):
        return Staged(Counts(), None, None)
    plan = plan_update(snapshot, incoming, update)
    attempt.prepare()
    batch = incoming.paths or (attempt.land(plan.evolution.batch, plan.batch_schema),)
    live = _live_paths(snapshot)
    if not live and update.mode != "replace_where" and _is_data_file(plan, incoming):
        counts = Counts(inserted=incoming.rows)
        return _staged(plan, snapshot, counts, batch if incoming.rows else (), attempt)
    task = _merge_task(plan, storage, folder, live, batch, attempt)
    if update.mode == "overwrite" and set(stored_key(snapshot.metadata) or ()) != set(plan.key):
        # The stored rows need not be unique under a key that they never had: rows are compared whole.
        task = replace(task, key=())
    engine.require_shared(storage.uri(""))
    if update.mode == "overwrite" and _is_data_file(plan, incoming):
        counts = _overwrite_counts(engine, task, snapshot, plan, incoming)
        return _staged(plan, snapshot, counts, batch if incoming.rows else (), attempt)
    result = engine.merge(task)
    counts = _counts(result)
    return _staged(plan, snapshot, counts, attempt.merged_paths(result.files), attempt)


def _staged(
    plan: Plan, snapshot: Snapshot, counts: Counts, paths: tuple[str, ...], attempt: Attempt
) -> Staged:
    rewrites = bool(counts.changed) or plan.evolution.changes_stored_files or _rows_written_anew(plan)
    key_changes = snapshot.version >= 0 and stored_key(snapshot.metadata) != plan.key
    changes_metadata = plan.changes_schema or key_changes or _changes_notes(plan, snapshot)
    if not (rewrites or changes_metadata):
        return Staged(counts, plan, None)
    schema = plan.schema if changes_metadata else None
    files = attempt.seal(paths, written_columns(plan.schema)) if rewrites else ()
    operation = _OPERATIONS[plan.update.mode] if snapshot.version >= 0 else "CREATE TABLE AS SELECT"
    rewrite = Rewrite(operation, plan.key, schema, files, rewrites, counts, plan.update.notes)
    return Staged(counts, plan, rewrite)


def _changes_notes(plan: Plan, snapshot: Snapshot) -> bool:
    known = {} if snapshot.version < 0 else stored_notes(snapshot.metadata)
    return any(known.get(name) != text for name, text in plan.update.notes)


def _rows_written_anew(plan: Plan) -> bool:
    # An override that gives a column another type replaces the files even if no value differs.
    return plan.update.mode == "overwrite" and plan.changes_schema


def _merge_task(
    plan: Plan, storage: Storage, folder: str, live: tuple[str, ...], batch: tuple[str, ...], attempt: Attempt
) -> MergeTask:
    return MergeTask(
        stored=tuple(storage.uri(f"{folder}/{path}") for path in live),
        stored_schema=written_columns(plan.stored_schema or {"type": "struct", "fields": []}),
        batch=tuple(attempt.uri(path) for path in batch),
        batch_schema=plan.batch_schema,
        target_schema=written_columns(plan.schema),
        key=plan.key,
        mode=plan.update.mode,
        nulls=plan.update.nulls,
        null_keys="match" if plan.update.null_keys == "match" else "error",
        where=plan.update.where,
        output=attempt.merged_uri,
    )


def _overwrite_counts(
    engine: TableEngine, task: MergeTask, snapshot: Snapshot, plan: Plan, incoming: Incoming
) -> Counts:
    """How the whole new content differs from the stored one, by key or as a multiset of rows."""
    comparable = plan.stored_schema is not None and _comparable(plan)
    if comparable:
        return _counts(engine.merge(_counting(task)))
    return Counts(inserted=incoming.rows, deleted=rows.count(snapshot))


def _comparable(plan: Plan) -> bool:
    """Whether stored rows have the new key and types that the new ones can be compared with."""
    stored = arrow_columns(plan.stored_schema or {"type": "struct", "fields": []})
    if not set(plan.key) <= set(stored.names):
        return False
    try:
        evolve(stored, plan.evolution.batch.slice(0, 0), key=plan.key, values_known=False)
    except (SchemaDriftError, BadInput):
        return False
    return True


def _counting(task: MergeTask) -> MergeTask:
    return replace(task, write=False, output="")


def _counts(result: MergeResult) -> Counts:
    return Counts(result.inserted, result.updated, result.unchanged, result.deleted)


def _is_data_file(plan: Plan, incoming: Incoming) -> bool:
    """Whether the landed batch already is what the table would hold."""
    if incoming.in_memory:
        return True
    names = physical_names(plan.schema)
    same_names = all(name == physical for name, physical in names.items())
    return same_names and incoming.table.schema.equals(plan.evolution.batch.schema)


def _agreed_key(update: Update, stored: tuple[str, ...] | None) -> tuple[str, ...]:
    if update.mode == "overwrite":
        return update.key if update.sets_key else update.key or stored or ()
    if stored is None or not update.key or set(update.key) == set(stored):
        return stored or update.key
    made = f"It was made with the key {list(stored)}." if stored else "It was made without a key."
    raise InvalidOption(
        f"The stream cannot be updated by the key {list(update.key)}.",
        cause=f"{made} Under another key, rows that are one now could become two.",
        remedy="Use the stream's key, or replace its content with override=True to give it a new one.",
        key=list(update.key),
        stored_key=list(stored),
    )


def _live_paths(snapshot: Snapshot) -> tuple[str, ...]:
    if snapshot.version < 0:
        return ()
    files = snapshot.files
    if files["deletion_vector"].null_count < files.num_rows:
        raise UnsupportedTable(
            "The stream has deletion vectors, which this version does not write to.",
            cause="Another writer made them.",
            remedy="Purge them first (REORG TABLE ... APPLY (PURGE) in Spark).",
        )
    return tuple(unquote(path) for path in files["path"].to_pylist())


def _ranges(snapshot: Snapshot) -> Ranges:
    """Smallest and largest stored value of each whole-number column, from the files' statistics."""
    if snapshot.version < 0:
        return {}
    physical = physical_names(snapshot.schema)
    longs = [field["name"] for field in snapshot.schema["fields"] if field["type"] == "long"]
    statistics = [json.loads(text) if text else {} for text in snapshot.files["stats"].to_pylist()]
    found = {name: _range(physical[name], statistics) for name in longs}
    return {name: bounds for name, bounds in found.items() if bounds is not None}


def _range(name: str, statistics: list[dict[str, Any]]) -> tuple[Any, Any] | None:
    lows = [of_file.get("minValues", {}).get(name) for of_file in statistics]
    highs = [of_file.get("maxValues", {}).get(name) for of_file in statistics]
    if not lows or any(bound is None for bound in (*lows, *highs)):
        return None
    return min(lows), max(highs)
