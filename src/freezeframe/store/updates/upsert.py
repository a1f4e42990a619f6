"""Upsert of a batch that fits into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.untyped import has_untyped
from freezeframe.errors import CorruptData
from freezeframe.log import Snapshot
from freezeframe.log.format.schema import delta_to_arrow
from freezeframe.log.scan import rows
from freezeframe.log.table.row_deletion import RowDeletion, mark_rows
from freezeframe.observation import observe
from freezeframe.storage.read_ahead import map_concurrently, processors
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import arrow_columns, written_columns
from freezeframe.store.table.keys import FOUND, THREADS_MAX, files_with, scan, scan_tasks
from freezeframe.store.table.reader import LiveFile, deleted_positions, in_schema, live_files
from freezeframe.store.updates.file_merge import BATCH_VALUE, in_types
from freezeframe.store.updates.plan import NO_COLUMNS, FileChoice, Plan, choose
from freezeframe.store.updates.result import (
    EngineName,
    Route,
    UpdateContext,
    UpdateResult,
    build_table_change,
)
from freezeframe.store.updates.rule import Filled, Flags, Numbers, coalesce


@observe("find")
def search(context: UpdateContext, files: pa.Table, keys: pa.Table) -> tuple[pa.Table, EngineName]:
    """Locate the keys in ``files`` as ``scan`` does; return also the engine used."""
    if sum(file.rows for file in live_files(files)) <= context.rule.searched_rows_max:
        return scan(context.snapshot, files, keys), "process"
    engine, staging = context.engine, context.staging
    storage = engine.storage_of_tasks(context.snapshot.storage)
    if storage is not None:
        engine.require_shared(context.snapshot.storage.uri(""))
        written = f"{staging.base}/{staging.write_keys(keys)}"
        found = engine.run(scan_tasks(context.snapshot, files, keys.column_names, storage, written))
        if found is not None:
            return pa.concat_tables([part.cast(FOUND) for part in found]), "spark"
    return scan(context.snapshot, files, keys), "process"


# A scan of the key's columns in the candidate files locates the batch's keys, in this process or in
# Spark's workers. Old values are read only for rows to compare or complete, and only in the needed
# columns. Unchanged rows are written only where their file is rewritten.

PATCHED_BYTES_MAX = 16 * 1024 * 1024 * 1024
"""Where files of more bytes may hold a key of the batch, each of them is merged by itself."""

RUN_ROWS_MIN = 1 << 17
"""So many stored rows at least are merged by a thread of their own: two runs decode the group they share."""

DECIDED_BYTES_MAX = 1024 * 1024 * 1024
"""Files of up to so many bytes are rewritten in this process where a first value decides a type in them."""


@dataclass(frozen=True, slots=True)
class _MatchedKeys:
    """Stored rows with a key of the batch, sorted by file and position.

    ``files`` are paths, ``file`` an index into them, ``row`` a position, ``batch_row`` a row of the batch.
    """

    files: tuple[str, ...]
    file: Numbers
    row: Numbers
    batch_row: Numbers
    engine: EngineName = ""

    @property
    def search_kind(self) -> str:
        """The kind of key search, in words that follow the number of rows."""
        if not self.engine:
            return "whose keys no file can hold"
        who = {"spark": "Spark", "process": "this process"}[self.engine]
        return f"whose keys {who} looked for in {len(self.files):,} files"

    def positions(self, which: Flags) -> dict[str, Numbers]:
        """Return the positions of the flagged rows by path."""
        file, row = self.file[which], self.row[which]
        # Sorted by file, so the rows of a file are adjacent.
        begins = np.searchsorted(file, np.arange(len(self.files) + 1))
        parts = (row[begins[index] : begins[index + 1]] for index in range(len(self.files)))
        return {path: part for path, part in zip(self.files, parts, strict=True) if len(part)}


def reason_to_rewrite(plan: Plan, snapshot: Snapshot) -> str:
    """Return the reason why the update must rewrite stored rows; empty if it need not."""
    update, files = plan.update, snapshot.files
    if update.mode != "upsert":
        return f"{update.mode} goes through all rows"
    if not plan.is_plain:
        return "the stream keeps its rows' history or flags deleted ones"
    if plan.evolution.changes_stored_files and not _only_decides(plan, snapshot):
        return "columns are dropped or change their type"
    names = pc.replace_substring_regex(files["path"], ".*/", "")
    if pc.count_distinct(names).as_py() < len(names):
        return "two files have one name, and Spark tells a row's file by its name"
    if not pc.all(pc.match_substring(pc.fill_null(files["stats"], ""), "numRecords"), min_count=0).as_py():
        return "the log does not say how many rows a file has"
    return ""


def _only_decides(plan: Plan, snapshot: Snapshot) -> bool:
    """Return whether types change only where they were open, in files that this process may rewrite."""
    stored = arrow_columns(plan.stored_schema or NO_COLUMNS)
    was_open = all(has_untyped(stored.field(name).type) for name in plan.evolution.widened)
    return was_open and not plan.evolution.dropped and snapshot.size <= DECIDED_BYTES_MAX


def reason_for_spark(context: UpdateContext, batch: pa.Table) -> str:
    """Return the reason to merge file by file: much of the stream may hold keys of ``batch``; else empty."""
    if context.snapshot.size <= PATCHED_BYTES_MAX:
        return ""
    files = files_with(context.snapshot, batch.select(list(context.plan.filled_key)))
    found = int(pc.sum(files["size"]).as_py() or 0)
    return "" if found <= PATCHED_BYTES_MAX else f"files of {found:,} bytes may hold a key of the batch"


def batch_rows(context: UpdateContext) -> pa.Table | None:
    """Return the batch in memory, in the types of the plan; None if Spark landed it and it takes too much."""
    batch = context.plan.evolution.batch
    if context.batch.in_memory:
        return batch
    landed = context.batch.landed_rows()
    return None if landed is None else in_types(landed, batch.schema, BATCH_VALUE)


def upsert(context: UpdateContext, batch: pa.Table) -> UpdateResult:
    """Stage an upsert of ``batch`` (distinct keys, in the types of the plan) into the stream's files."""
    keys = batch.select(list(context.plan.filled_key))
    candidates = files_with(context.snapshot, keys)
    matched = _match_keys(context, candidates, keys)
    filled = _coalesce_rows(context, batch, matched)
    changing = matched.positions(filled.changed)
    is_new = np.ones(len(batch), np.bool_)
    is_new[matched.batch_row] = False
    inserted, updated = int(is_new.sum()), len(filled.rows)
    counts = Counts(inserted, updated, len(batch) - inserted - updated, 0)
    reason = f"{len(batch):,} rows, {matched.search_kind}"
    rewrites_all = context.plan.evolution.changes_stored_files
    if not counts.changed and not rewrites_all:
        route = Route("upsert", reason, (), matched.engine)
        return replace(build_table_change(context, counts, (), route, ()), changed_keys=keys.slice(0, 0))
    live = live_files(context.snapshot.files)
    if rewrites_all:
        choices = tuple(FileChoice(file, "rewritten", "a type in it is decided") for file in live)
    else:
        choices = choose(live, {path: len(part) for path, part in changing.items()}, context.rule)
    rewritten = [choice.file for choice in choices if choice.action == "rewritten"]
    new_rows = [filled.rows, in_schema(batch.filter(pa.array(is_new)), filled.rows.schema)]
    content = _content(context.snapshot, rewritten, changing, new_rows)
    written = context.staging.write(content, written_columns(context.plan.schema), context.plan.key)
    marked = {choice.file.path: changing[choice.file.path] for choice in choices if choice.action == "marked"}
    deletion = mark(context, marked) if marked else None
    removed = tuple(file.path for file in rewritten)
    route = Route("upsert", reason, choices, matched.engine)
    result = build_table_change(context, counts, written, route, removed, deletion)
    return replace(
        result, changed_keys=pa.concat_tables([rows.select(keys.column_names) for rows in new_rows])
    )


def mark(context: UpdateContext, marked: Mapping[str, Iterable[int]]) -> RowDeletion:
    """Mark rows of files as deleted, and stage the file of their deletion vectors."""
    deletion = mark_rows(context.snapshot, marked, prefix=context.staging.name)
    if deletion.file is not None:
        context.staging.store(deletion.file.name, deletion.file.content)
    return deletion


def _match_keys(context: UpdateContext, candidates: pa.Table, keys: pa.Table) -> _MatchedKeys:
    """Return the live stored rows with a key of the batch."""
    if not candidates.num_rows or not len(keys):
        nothing = np.empty(0, np.int64)
        return _MatchedKeys((), nothing, nothing, nothing)
    found, engine = search(context, candidates, keys)
    deleted = deleted_positions(context.snapshot, candidates)
    return _sort_matches(candidates, found, deleted, context.plan.key, engine)


def _sort_matches(
    files: pa.Table, found: pa.Table, deleted: Mapping[str, Numbers], key: Sequence[str], engine: EngineName
) -> _MatchedKeys:
    paths = tuple(files["path"].to_pylist())
    file = found["file"].to_numpy().astype(np.int64)
    row, batch_row = found["row"].to_numpy(), found["place"].to_numpy()
    alive = np.ones(len(file), np.bool_)
    for index, path in enumerate(paths):
        if path in deleted:
            here = np.flatnonzero(file == index)
            is_deleted = np.zeros(max(row[here].max(initial=-1), deleted[path].max(initial=-1)) + 1, np.bool_)
            is_deleted[deleted[path]] = True
            alive[here] = ~is_deleted[row[here]]
    file, row, batch_row = file[alive], row[alive], batch_row[alive]
    keys = int(np.count_nonzero(np.bincount(batch_row)))
    if keys < len(batch_row):
        raise CorruptData(
            f"The stored rows hold a key ({', '.join(key)}) more than once.",
            cause=f"{len(batch_row)} stored rows have {keys} keys of the batch.",
            remedy="Replace the stream's content with override=True.",
        )
    # A scan gives the rows of each file in their order, which this sort goes through once.
    order = np.argsort(file * (int(row.max(initial=0)) + 1) + row, kind="stable")
    return _MatchedKeys(paths, file[order], row[order], batch_row[order], engine)


def _coalesce_rows(context: UpdateContext, batch: pa.Table, matched: _MatchedKeys) -> Filled:
    """Merge the rows of the batch that are stored with their old values, in runs that threads share."""
    plan = context.plan
    target = delta_to_arrow(written_columns(plan.schema))
    known = set(target.names)
    stored = [field["name"] for field in written_columns(plan.stored_schema or NO_COLUMNS)["fields"]]

    def filled(run: Numbers) -> Filled:
        here = replace(
            matched, file=matched.file[run], row=matched.row[run], batch_row=matched.batch_row[run]
        )
        return coalesce(
            batch.take(pa.array(here.batch_row)),
            target,
            [name for name in stored if name in known],
            plan.key,
            lambda names, which: rows.read_at(context.snapshot, here.positions(which), names),
            keeps_nulls=plan.update.nulls == "keep",
        )

    count = len(matched.batch_row)
    # The files of a run are read side by side already.
    threads = max(1, min(THREADS_MAX, processors() // max(1, len(matched.files)), count // RUN_ROWS_MIN))
    found = map_concurrently(filled, np.array_split(np.arange(count), threads), threads)
    return Filled(
        pa.concat_tables([part.rows for part in found]), np.concatenate([part.changed for part in found])
    )


def _content(
    snapshot: Snapshot,
    rewritten: Sequence[LiveFile],
    changing: Mapping[str, Numbers],
    last: Sequence[pa.Table],
) -> Iterator[pa.Table]:
    """Return the rows to write: remaining rows of removed files, then changed and new rows."""
    schema = last[0].schema
    nothing = np.empty(0, np.int64)
    positions = {file.path: changing.get(file.path, nothing) for file in rewritten}
    if positions:
        yield from (in_schema(kept, schema) for kept in rows.read_without(snapshot, positions))
    yield from (table for table in last if len(table))
