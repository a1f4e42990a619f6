"""One update of a stream: its batch is read once, its route chosen for each state that it is applied to."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa

from freezeframe.clock import now_ms
from freezeframe.engine.frames.arrow_columns import refuse_repeated_keys
from freezeframe.engine.frames.rows import Rows
from freezeframe.engine.frames.untyped import fit, has_untyped
from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import BadInput, ConflictError
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.log.scan.held_columns import columns_held
from freezeframe.observation import observe
from freezeframe.settings import Settings
from freezeframe.store.diff.counts import was_dropped
from freezeframe.store.model.receipt import Counts, Receipt
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.columns import arrow_columns, read_system_columns
from freezeframe.store.schema.schema_evolution import is_undecided
from freezeframe.store.schema.type_compatibility import common_nested, with_maps
from freezeframe.store.table.commit import CommitIdentity, commit_text
from freezeframe.store.table.reader import live_files, live_row_count, with_columns
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.state import NO_VERSION
from freezeframe.store.updates.batch import LANDED_BYTES_MAX, UpdateBatch, collect_pieces, read_batch
from freezeframe.store.updates.merge import merge, overwrite
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
from freezeframe.store.updates.upsert import batch_rows, reason_for_spark, reason_to_rewrite, upsert

_HELD_BYTES_MAX = 1 << 20
"""The files of a stream of up to so many bytes are opened and decoded once in an upsert."""


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """Result of a change of a table: its next commit (empty: nothing changed) and its new files."""

    content: str
    counts: Counts
    paths: tuple[str, ...] = ()
    receipt: Receipt | None = None
    """The receipt of an update."""
    route: Route | None = None
    """The route of an update."""
    counts_are_net: bool = False
    """Whether a comparison of the table before and after the change would find the same counts."""
    changed_keys: pa.Table | None = None
    """The keys of all rows that it changed, where it knows them."""


Change = Callable[[Snapshot, StagingFolder, CommitIdentity], ChangeResult]
"""A change of a stream that can be applied to any state of its table; new files go to the folder."""


@dataclass(frozen=True, slots=True)
class StreamUpdate:
    """An update whose batch has been read and checked; it can be applied to any state of the stream."""

    name: StreamName
    engine: TableEngine
    settings: Settings
    update: Update
    batch: UpdateBatch
    started: float

    def apply(self, snapshot: Snapshot, staging: StagingFolder, identity: CommitIdentity) -> ChangeResult:
        """Choose the route, and stage the stream's new files and the commit that names them.

        An upsert is searched for and only its changes are written, unless stored rows have to be rewritten
        for another reason, or the batch is large: then files are merged one by one. Without stored rows, or
        in place of them, the batch is the new content. Source: ``docs/decisions/0015``, ``0024``, ``0061``.
        """
        self._require_expected_version(snapshot)
        with _naming(self.name), observe("update"):
            context = self._context(snapshot, staging, identity)
            if context is None:
                result = UpdateResult(Counts(), None, None, Route("nothing", "the batch has no rows"))
            elif context.replaces_all:
                result = overwrite(context)
            elif reason := reason_to_rewrite(context.plan, snapshot):
                result = merge(context, reason, batch_rows(context))
            elif (rows := batch_rows(context)) is None:
                reason = f"the batch that Spark landed takes more than {LANDED_BYTES_MAX:,} bytes of memory"
                result = merge(context, reason, None)
            elif reason := reason_for_spark(context, rows):
                result = merge(context, reason, rows)
            else:
                with columns_held(with_files=True) if snapshot.size <= _HELD_BYTES_MAX else nullcontext():
                    result = upsert(context, rows)
        return self._result(result, snapshot, identity)

    def _require_expected_version(self, snapshot: Snapshot) -> None:
        expected = self.update.expected_version
        if expected is not None and expected != snapshot.version:
            raise ConflictError(
                f"The stream {str(self.name)!r} is at version {snapshot.version}, "
                f"not at {expected} any more.",
                cause="Another job changed it after this call read it.",
                remedy="Read it again and repeat the call; nothing of it was written.",
                stream=str(self.name),
                version=snapshot.version,
            )

    def _context(
        self, snapshot: Snapshot, staging: StagingFolder, identity: CommitIdentity
    ) -> UpdateContext | None:
        """Plan the update of that state of the stream; None if the batch changes nothing."""
        update = _as_content(self.update) if was_dropped(snapshot) else self.update
        batch = self.batch
        if _changes_nothing(snapshot, batch, update):
            return None
        batch = _with_stored_maps(snapshot, _with_columns(snapshot, batch, update))
        batch = _without_idle_types(snapshot, batch, update)
        plan = plan_update(snapshot, batch, update)
        if update.mode == "full" and not batch.rows:
            stored_rows = live_row_count(snapshot)
            require_few_deletions(update, lost=stored_rows, live=stored_rows)
        staging.prepare()
        moment_us = max(now_ms(), snapshot.timestamp + 1) * 1_000
        rule = rule_of(self.settings)
        return UpdateContext(self.engine, rule, snapshot, batch, plan, staging, moment_us, identity)

    def _result(self, result: UpdateResult, snapshot: Snapshot, identity: CommitIdentity) -> ChangeResult:
        change = result.rewrite
        return ChangeResult(
            "" if change is None else commit_text(snapshot, change, identity),
            result.counts,
            () if change is None else change.new_paths,
            self._receipt(result, snapshot.version),
            result.route,
            counts_are_net=change is not None and not was_dropped(snapshot),
            changed_keys=result.changed_keys,
        )

    def _receipt(self, result: UpdateResult, version: int) -> Receipt:
        plan, change = result.plan, result.rewrite
        evolution = plan.evolution if plan and change else None
        return Receipt(
            stream=str(self.name),
            inserted=result.counts.inserted,
            updated=result.counts.updated,
            unchanged=result.counts.unchanged,
            deleted=result.counts.deleted,
            version=NO_VERSION,
            stream_version=version + 1 if change else version,
            committed=change is not None,
            columns_added=evolution.added if evolution else (),
            columns_dropped=evolution.dropped if evolution else (),
            null_keys_dropped=self.batch.null_keys_dropped,
            bytes_written=change.new_bytes if change else 0,
            seconds=round(time.monotonic() - self.started, 3),
            engine=result.route.engine,
            # Without rows a batch says nothing about columns.
            columns_missing=plan.evolution.missing if plan and self.batch.rows else (),
        )


def read_update(
    name: StreamName,
    engine: TableEngine,
    settings: Settings,
    batch: Rows,
    update: Update,
    intake: StagingFolder,
) -> StreamUpdate:
    """Read the caller's rows once; large batches are written to ``intake`` for Spark."""
    started = time.monotonic()
    if batch.is_reader:
        batch, update = collect_pieces(batch, update, engine, intake)
    with _naming(name):
        checked, update = read_batch(batch, update, engine, intake)
    return StreamUpdate(name, engine, settings, update, checked, started)


def _as_content(update: Update) -> Update:
    """Return the update for a dropped stream: its batch becomes the whole content, its key the key."""
    return replace(
        update,
        mode="overwrite",
        where=None,
        deletes=None,
        begins_flags=update.deletes == "flag",
        sets_key=True,
        expected_version=None,
    )


@contextmanager
def _naming(name: StreamName) -> Iterator[None]:
    """Add the stream's name to errors about rows, because a script updates many streams."""
    try:
        yield
    except BadInput as error:
        if "stream" not in error.details:
            error.problem = f"Stream {str(name)!r}: {error.problem}"
            error.args = (error.problem,)
            error.details["stream"] = str(name)
        raise


def _changes_nothing(snapshot: Snapshot, batch: UpdateBatch, update: Update) -> bool:
    """Return whether an update without rows changes nothing."""
    if batch.rows or update.notes or update.mode not in ("upsert", "full"):
        return False
    if snapshot.version < 0:
        return not batch.table.num_columns
    begins_history = update.history == "scd2" and not read_system_columns(snapshot.metadata).has_history
    drops_columns = bool(set(update.drop_columns) & set(arrow_columns(snapshot.delta_schema).names))
    return update.mode == "upsert" and not begins_history and not drops_columns


def _with_columns(snapshot: Snapshot, batch: UpdateBatch, update: Update) -> UpdateBatch:
    """Return a batch without rows with the columns of the key; it says nothing about others.

    So an upsert without rows can drop columns, and neither add nor change any.
    """
    if batch.rows or snapshot.version < 0 or update.mode not in ("upsert", "full"):
        return batch
    if update.mode == "full" and batch.table.num_columns:
        return batch
    stored = arrow_columns(snapshot.delta_schema)
    known = set(stored.names)
    key = pa.schema([stored.field(name) for name in update.key if name in known])
    return replace(batch, table=key.remove_metadata().empty_table())


def _with_stored_maps(snapshot: Snapshot, batch: UpdateBatch) -> UpdateBatch:
    """Return the batch with maps in place of pairs where the stream's column has maps, also to replace it."""
    if snapshot.version < 0 or not batch.in_memory:
        return batch
    columns = {
        field.name: with_maps(batch.table[field.name], field.type)
        for field in arrow_columns(snapshot.delta_schema)
        if field.name in batch.table.column_names
    }
    changed = {name: column for name, column in columns.items() if column.type != batch.table[name].type}
    for name, column in changed.items():
        refuse_repeated_keys(name, column)
    return replace(batch, table=with_columns(batch.table, changed))


def _without_idle_types(snapshot: Snapshot, batch: UpdateBatch, update: Update) -> UpdateBatch:
    """Return the batch with the stream's types for columns that have no value in the batch.

    A frame's type of such a column, or of a part of it (text as a rule, in pandas and Spark), says nothing
    about values, and decides nothing that is open in the stream's column.
    """
    if snapshot.version < 0 or update.mode == "overwrite":
        return batch
    held = dict(zip(batch.table.column_names, batch.table.columns, strict=True))
    unsure = []
    for field in arrow_columns(snapshot.delta_schema):
        if field.name not in held:
            continue
        kind, stored = held[field.name].type, pa.null() if is_undecided(field) else field.type
        if not has_untyped(stored) and common_nested(stored, kind) == stored:
            continue
        if kind not in (stored, pa.null()):
            unsure.append(field.name)
    filled = batch.filled_types(unsure)
    typed = {name: fit(held[name], kind) for name, kind in filled.items() if kind != held[name].type}
    return replace(batch, table=with_columns(batch.table, typed)) if typed else batch


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
        route = Route("overwrite", "there are no stored rows: the batch is the whole content")
    else:
        route = Route(
            "upsert", "new rows are written beside the stored ones", _untouched_files(snapshot, rule)
        )
    return Explanation(name, snapshot.version, route, None, rule, 0)


def explain_update(name: str, version: int, result: ChangeResult, settings: Settings) -> Explanation:
    """Explain a staged update."""
    route, receipt = cast("Route", result.route), cast("Receipt", result.receipt)
    return Explanation(name, version, route, result.counts, rule_of(settings), receipt.bytes_written)


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
