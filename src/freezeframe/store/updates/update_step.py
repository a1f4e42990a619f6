"""One update as a step of a transaction, and its result."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from freezeframe.errors import BadInput
from freezeframe.identifiers import StreamName
from freezeframe.log import Snapshot
from freezeframe.store.diff.counts import was_dropped
from freezeframe.store.model.receipt import Counts, Receipt
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.columns import stored_key
from freezeframe.store.table.commit import CommitIdentity, commit_text
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.state import NO_VERSION
from freezeframe.store.updates.result import UpdateResult
from freezeframe.store.updates.source import Incoming
from freezeframe.store.updates.strategy import stage
from freezeframe.store.updates.streamed_batch import take_in, take_in_file_order
from freezeframe.store.updates.update_place import UpdatePlace

# A step: one change of a stream that can be applied to any state of it.


@dataclass(frozen=True, slots=True)
class StepResult:
    """Result of a step: the table's next commit (empty: nothing changed) and its new files."""

    content: str
    counts: Counts
    paths: tuple[str, ...] = ()
    answer: Any = None
    """What the step knows beside that, for the receipt."""
    is_net: bool = False
    """Whether the counts are what a comparison of the table before and after it would find."""
    changed_keys: pa.Table | None = None
    """The keys of all rows that it changed, where it knows them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a stream, applicable to any state of it.

    ``carry_out`` gets the table, a folder for new files and who makes the commit. ``intake`` holds rows
    that were taken in before once; it lives as long as the step.
    """

    carry_out: Callable[[Snapshot, StagingFolder, CommitIdentity], StepResult]
    expected_version: int | None = None
    intake: StagingFolder | None = None


# An update as a repeatable step of a transaction; its rows are read once.


@dataclass(frozen=True, slots=True)
class TakenUpdate:
    """An update whose rows have been read, validated and counted."""

    place: UpdatePlace
    update: Update
    incoming: Incoming
    intake: StagingFolder
    started: float

    def to_step(self) -> Step:
        """The update as a step, applicable to any state of the stream."""
        return Step(self._carry_out, self.update.expected_version, self.intake)

    def stage_on(self, snapshot: Snapshot, staging: StagingFolder) -> UpdateResult:
        """Stage the update on that state of the stream in ``staging``; errors as for ``stage``."""
        update = self._on_nothing() if was_dropped(snapshot) else self.update
        with _naming(self.place.name):
            return stage(self.place, snapshot, self.incoming, update, staging)

    def _carry_out(self, snapshot: Snapshot, staging: StagingFolder, identity: CommitIdentity) -> StepResult:
        staged = self.stage_on(snapshot, staging)
        receipt = self._receipt(staged, snapshot.version)
        if staged.rewrite is None:
            return StepResult("", staged.counts, answer=receipt)
        content = commit_text(snapshot, staged.rewrite, identity)
        return StepResult(
            content,
            staged.counts,
            staged.rewrite.new_paths,
            receipt,
            is_net=not was_dropped(snapshot),
            changed_keys=staged.changed_keys,
        )

    def _on_nothing(self) -> Update:
        """The update for a dropped stream: its rows become the whole content, its key the stream's key."""
        return replace(
            self.update,
            mode="overwrite",
            where=None,
            deletes=None,
            begins_flags=self.update.deletes == "flag",
            sets_key=True,
            expected_version=None,
        )

    def _receipt(self, staged: UpdateResult, version: int) -> Receipt:
        plan = staged.plan
        evolution = plan.evolution if plan and staged.rewrite else None
        return Receipt(
            stream=str(self.place.name),
            inserted=staged.counts.inserted,
            updated=staged.counts.updated,
            unchanged=staged.counts.unchanged,
            deleted=staged.counts.deleted,
            version=NO_VERSION,
            stream_version=version + 1 if staged.rewrite else version,
            committed=staged.rewrite is not None,
            columns_added=evolution.added if evolution else (),
            columns_dropped=evolution.dropped if evolution else (),
            null_keys_dropped=self.incoming.null_keys_dropped,
            bytes_written=staged.rewrite.new_bytes if staged.rewrite else 0,
            seconds=round(time.monotonic() - self.started, 3),
            engine=staged.route.engine,
            columns_missing=plan.evolution.missing if plan else (),
        )


@contextmanager
def take_update(
    place: UpdatePlace, write_id: str, snapshot: Snapshot, frame: Any, update: Update
) -> Iterator[TakenUpdate]:
    """Read the caller's rows, with the stream's own key as the default.

    Where the block fails, what was taken in is deleted; else it belongs to the step.
    """
    started = time.monotonic()
    if not update.key and not update.sets_key and snapshot.version >= 0:
        update = replace(update, key=stored_key(snapshot.metadata) or ())
    number = uuid.uuid4().hex[:8]
    intake = StagingFolder(place.storage, place.folder, f"{write_id}-in-{number}")
    try:
        if isinstance(frame, pa.RecordBatchReader):
            frame, update = take_in(frame, update, place.engine, intake)
        with _naming(place.name):
            incoming, update = take_in_file_order(frame, update, place.engine, intake)
        yield TakenUpdate(place, update, incoming, intake, started)
    except BaseException:
        intake.discard()
        raise


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
