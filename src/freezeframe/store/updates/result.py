"""Context, route and result of an update of a table."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.protocol import TableEngine
from freezeframe.log import Snapshot
from freezeframe.log.scan.data_files import file_uri
from freezeframe.log.table.row_deletion import VECTORS_KEY, RowDeletion
from freezeframe.store.diff.comparison import Comparison
from freezeframe.store.model.directory import StreamTable
from freezeframe.store.model.receipt import Counts
from freezeframe.store.schema.columns import stored_key, stored_notes, written_columns
from freezeframe.store.table.commit import CommitIdentity, TableChange, commit_text
from freezeframe.store.table.reader import has_vectors
from freezeframe.store.table.staging import StagingFolder, staged_view
from freezeframe.store.updates.batch import UpdateBatch
from freezeframe.store.updates.plan import FileAction, FileChoice, FileRule, Plan

RouteKind = Literal["nothing", "overwrite", "upsert", "merge"]
"""``overwrite``: the batch is the new content. ``upsert``: changed rows are written beside the stored ones.
``merge``: each stored file is merged with the batch by itself, and written anew if a row of it changes."""

EngineName = Literal["spark", "process", ""]
"""Who searched or merged the stored rows: Spark or the job's own process; empty where none were met."""

_FATES: tuple[FileAction, ...] = ("left", "marked", "rewritten")


@dataclass(frozen=True, slots=True)
class Route:
    """The route of an update, its reason, and the action on each file."""

    kind: RouteKind
    reason: str
    choices: tuple[FileChoice, ...] = ()
    engine: EngineName = ""

    def __str__(self) -> str:
        fates = [choice.action for choice in self.choices]
        counted = [f"{fates.count(fate)} {fate}" for fate in _FATES if fate in fates]
        return f"{self.kind}: {self.reason}" + (f"; files: {', '.join(counted)}" if counted else "")


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Result of staging: row counts, and the commit to make (None: nothing changes)."""

    counts: Counts
    plan: Plan | None
    rewrite: TableChange | None
    route: Route
    changed_keys: pa.Table | None = None
    """The keys of the rows that are new or updated; only an upsert knows them."""


@dataclass(frozen=True, slots=True)
class UpdateContext:
    """Context of staging one update."""

    engine: TableEngine
    rule: FileRule
    snapshot: Snapshot
    batch: UpdateBatch
    plan: Plan
    staging: StagingFolder
    moment_us: int
    """The moment of the update, after the stream's last commit whatever the clock says."""
    identity: CommitIdentity
    """What its commit is called."""

    @property
    def replaces_all(self) -> bool:
        """Whether the batch is the whole new content."""
        mode = self.plan.update.mode
        return mode == "overwrite" or (mode != "replace_where" and not self.live)

    def uris(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the engine's URIs of the stream's files, given by their paths in the log."""
        return tuple(file_uri(self.snapshot.storage, self.snapshot.table, path) for path in paths)

    def bytes_of(self, paths: Iterable[str]) -> int:
        """Bytes of the stream's files together, as the log tells them."""
        files = self.snapshot.files
        wanted = pc.is_in(files["path"], pa.array(list(paths), pa.string()))
        return int(pc.sum(files["size"].filter(wanted)).as_py() or 0)

    @property
    def live(self) -> tuple[str, ...]:
        """The paths of the stream's live files in the log."""
        return () if self.snapshot.version < 0 else tuple(self.snapshot.file_list["path"].to_pylist())


_OPERATIONS = {"upsert": "MERGE", "full": "MERGE", "overwrite": "WRITE", "replace_where": "WRITE"}


def build_table_change(
    context: UpdateContext,
    counts: Counts,
    paths: tuple[str, ...],
    route: Route,
    removed: tuple[str, ...] | None = None,
    deletion: RowDeletion | None = None,
) -> UpdateResult:
    """Return the update as a commit whose new files are ``paths`` and replace ``removed`` (None: all files).

    ``deletion`` marks rows in files that stay; its vector file is stored already.
    """
    plan, snapshot = context.plan, context.snapshot
    rewrites = _rewrites(plan, counts)
    deletion = deletion if rewrites else None  # rows that are marked are in files that are written
    # Without a vector all rows of the marked files are gone, and the files are removed.
    switches_on = deletion is not None and deletion.file is not None and not has_vectors(snapshot)
    changes_metadata = switches_on or _changes_metadata(plan, snapshot)
    if not (rewrites or changes_metadata):
        return UpdateResult(counts, plan, None, route)
    if rewrites:
        context.staging.hash_by(context.engine, paths)
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


def compare(context: UpdateContext, result: UpdateResult) -> UpdateResult:
    """Return a staged update with the counts of a comparison with the stored rows; no files if none differs.

    It is for rows that are written without being merged with the stored ones of their keys.
    """
    if result.rewrite is None or not context.live:
        return result
    snapshot, identity = context.snapshot, context.identity
    content = commit_text(snapshot, result.rewrite, identity)
    place = StreamTable(snapshot.storage, snapshot.table)
    after = staged_view(place, snapshot.version, (content,), identity.timestamp_ms)
    found = Comparison(snapshot, after).counts()
    unchanged = context.batch.rows - found.inserted - found.updated
    counts = replace(found, unchanged=unchanged)
    if _rewrites(context.plan, counts):
        return replace(result, counts=counts, rewrite=replace(result.rewrite, counts=counts))
    return build_table_change(context, counts, (), result.route)


def _rewrites(plan: Plan, counts: Counts) -> bool:
    """Return whether files are written or go, and not the metadata alone."""
    return bool(counts.changed) or plan.evolution.changes_stored_files or _rows_written_anew(plan)


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
