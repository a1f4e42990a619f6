"""One update from rows to receipt: stage, commit through the tenant log, roll forward.

The commit point is one put-if-absent in the tenant log. Before it nothing is visible, after it
everything is, and whoever comes next finishes what a crash left half-way. A race that is lost is
settled by what the winner did: if it touched other streams only, the same staged files are
committed one version later; if it touched this one, the update is planned again on its result.
Protocol: ``docs/reference/tenant-log.md``, "Commit, by writer W".
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from freezeframe.engine.base import TableEngine
from freezeframe.errors import ConflictError, InvalidName, OutcomeUnknown, StorageUnavailable
from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog, Snapshot
from freezeframe.log.commit import Committed, Unknown, commit_name
from freezeframe.log.upkeep import Upkeep, after_commit
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.overlay import OverlayStorage
from freezeframe.store.entries import Entry, StreamChange
from freezeframe.store.format import ensure_format
from freezeframe.store.guard import stored_key
from freezeframe.store.incoming import Incoming, take
from freezeframe.store.layout import table_folder
from freezeframe.store.planning import Staged, stage
from freezeframe.store.receipt import Receipt
from freezeframe.store.staging import Attempt
from freezeframe.store.state import TenantState
from freezeframe.store.table_commit import Origin, commit_text
from freezeframe.store.tables import base_snapshot, finish, table_snapshot
from freezeframe.store.tenant_log import TenantLog
from freezeframe.store.update import Update

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """One stream of one tenant, and what it takes to change it."""

    name: StreamName
    storage: Storage
    log: TenantLog
    engine: TableEngine
    settings: Settings

    @property
    def folder(self) -> str:
        """The stream's table."""
        return table_folder(self.name)


@dataclass(frozen=True, slots=True)
class _Work:
    """What stays the same over all tries of one call."""

    place: StreamPlace
    incoming: Incoming
    update: Update
    intake: Attempt
    write_id: str
    started: float


@dataclass(frozen=True, slots=True)
class _Done:
    """A finished call, and the files that the table refers to from now on."""

    receipt: Receipt
    referenced: tuple[str, ...] = ()


def write(place: StreamPlace, frame: Any, update: Update) -> Receipt:
    """Commit one update and say what it did.

    Raises:
        BadInput, InvalidOption: the rows or the call cannot be taken; nothing was written.
        ConflictError: others changed the stream more often than ``commit_tries_max``.
        OutcomeUnknown: the commit's answer was lost; nothing it refers to was deleted.
        TryAgain: storage or engine failed; nothing is visible.
    """
    work = _begin(place, frame, update)
    referenced: tuple[str, ...] = ()
    try:
        ensure_format(place.storage)
        for number in range(place.settings.commit_tries_max):
            done = _try_once(work, number)
            if done is not None:
                referenced = done.referenced
                return done.receipt
    except OutcomeUnknown:
        referenced = work.incoming.paths
        raise
    finally:
        work.intake.discard(keep=referenced)
    raise ConflictError(
        f"The stream {str(place.name)!r} kept changing: "
        f"{place.settings.commit_tries_max} tries were not enough.",
        cause="Other jobs committed to it between every reading and committing of this one.",
        remedy="Run the call again when they are done; nothing of it was written.",
        stream=str(place.name),
    )


def preview(place: StreamPlace, frame: Any, update: Update, use: Callable[[Snapshot], Any]) -> Any:
    """What ``use`` makes of the stream as it would be after the update; nothing is kept.

    Raises:
        BadInput, InvalidOption, TryAgain: as ``write`` does.
    """
    work = _begin(place, frame, update)
    attempt = _attempt(place, work.write_id, "0")
    try:
        state = place.log.current_state()
        snapshot = _base(place, state)
        staged = _stage(work, snapshot, attempt)
        if staged.rewrite is None:
            return use(snapshot)
        origin = Origin(work.write_id, state.next_timestamp_ms(_now_ms()))
        text = commit_text(snapshot, staged.rewrite, origin)
        pending = {commit_name(place.folder, snapshot.version + 1): text.encode()}
        overlaid = OverlayStorage(place.storage, pending, origin.timestamp_ms)
        return use(DeltaLog(overlaid, place.folder).update())
    finally:
        attempt.discard()
        work.intake.discard()


def _begin(place: StreamPlace, frame: Any, update: Update) -> _Work:
    """Take the caller's rows in, under the stream's own key where the caller gave none."""
    started = time.monotonic()
    write_id = uuid.uuid4().hex
    state = place.log.current_state()
    _refuse_case_twin(state, place.name)
    if not update.key and not update.sets_key and state.table_version(place.name) >= 0:
        update = replace(update, key=stored_key(_base(place, state).metadata) or ())
    intake = _attempt(place, write_id, "in")
    try:
        incoming = take(frame, update, place.engine, intake)
    except BaseException:
        intake.discard()
        raise
    return _Work(place, incoming, update, intake, write_id, started)


def _try_once(work: _Work, number: int) -> _Done | None:
    """One plan on the present state and its commit; None: another commit to this stream came first."""
    place = work.place
    state = place.log.current_state()
    if state.head is not None:
        finish(place.storage, state.head)
    snapshot = base_snapshot(place.storage, state, place.name)
    _require_version(work, snapshot.version)
    attempt = _attempt(place, work.write_id, str(number))
    referenced: tuple[str, ...] = ()
    try:
        staged = _stage(work, snapshot, attempt)
        if staged.rewrite is None:
            return _Done(_receipt(work, staged, snapshot.version, state.version))
        version = _commit(work, staged, snapshot, state)
        if version is None:
            return None
        referenced = tuple(file.path for file in staged.rewrite.added)
        return _Done(_receipt(work, staged, snapshot.version + 1, version), referenced)
    except OutcomeUnknown:
        referenced = attempt.all_paths()
        raise
    finally:
        attempt.discard(keep=referenced)


def _commit(work: _Work, staged: Staged, snapshot: Snapshot, state: TenantState) -> int | None:
    """The tenant version that the staged change became; None if the stream changed meanwhile."""
    place = work.place
    for _ in range(place.settings.commit_tries_max):
        entry = _entry(work, staged, snapshot, state)
        outcome = place.log.add(state.version + 1, entry)
        if isinstance(outcome, Committed):
            _roll_forward(place, entry, outcome.version)
            return outcome.version
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(
                f"It is not known whether the update of {str(place.name)!r} was committed.",
                cause=outcome.reason,
                remedy="Read the stream again: the update is there whole or not at all.",
                stream=str(place.name),
                write_id=work.write_id,
            )
        state = place.log.current_state()
        if state.head is not None:
            finish(place.storage, state.head)
        if state.table_version(place.name) != snapshot.version:
            return None
    return None


def _roll_forward(place: StreamPlace, entry: Entry, version: int) -> None:
    try:
        finish(place.storage, entry)
    except StorageUnavailable:
        # The commit point is passed: readers lay the entry over, and the next writer lands it.
        _logger.warning("Committed, but the table could not be written yet: %s", place.name, exc_info=True)
        return
    # The table's own checksum is left out: the tenant log knows what it would tell.
    upkeep = Upkeep(checkpoint_interval=place.settings.checkpoint_interval, write_checksums=False)
    for change in entry.streams:
        log = DeltaLog.for_table(place.storage, table_folder(change.stream))
        after_commit(log, change.table_version, upkeep=upkeep)
    place.log.checkpoint_if_due(version)


def _entry(work: _Work, staged: Staged, snapshot: Snapshot, state: TenantState) -> Entry:
    assert staged.rewrite is not None  # noqa: S101 - the caller returned before
    timestamp_ms = state.next_timestamp_ms(_now_ms())
    content = commit_text(snapshot, staged.rewrite, Origin(work.write_id, timestamp_ms))
    change = StreamChange(work.place.name, snapshot.version + 1, content, staged.counts)
    return Entry(work.write_id, timestamp_ms, (change,))


def _stage(work: _Work, snapshot: Snapshot, attempt: Attempt) -> Staged:
    place = work.place
    return stage(place.engine, place.storage, place.folder, snapshot, work.incoming, work.update, attempt)


def _base(place: StreamPlace, state: TenantState) -> Snapshot:
    """The stream as readers see it; a stream that is not there yet is an empty table."""
    if state.table_version(place.name) >= 0:
        return table_snapshot(place.storage, state, place.name)
    return base_snapshot(place.storage, state, place.name)


def _attempt(place: StreamPlace, write_id: str, suffix: str) -> Attempt:
    return Attempt(place.storage, place.folder, f"{write_id}-{suffix}")


def _receipt(work: _Work, staged: Staged, version: int, tenant_version: int) -> Receipt:
    evolution = staged.plan.evolution if staged.plan and staged.rewrite else None
    files = staged.rewrite.added if staged.rewrite else ()
    return Receipt(
        stream=str(work.place.name),
        inserted=staged.counts.inserted,
        updated=staged.counts.updated,
        unchanged=staged.counts.unchanged,
        deleted=staged.counts.deleted,
        version=version,
        tenant_version=tenant_version,
        committed=staged.rewrite is not None,
        columns_added=evolution.added if evolution else (),
        columns_dropped=evolution.dropped if evolution else (),
        null_keys_dropped=work.incoming.null_keys_dropped,
        bytes_written=sum(file.size for file in files),
        seconds=time.monotonic() - work.started,
    )


def _require_version(work: _Work, found: int) -> None:
    expected = work.update.expected_version
    if expected is not None and expected != found:
        raise ConflictError(
            f"The stream {str(work.place.name)!r} is at version {found}, not at {expected} any more.",
            cause="Another job changed it after the rows of this call were made from it.",
            remedy="Read it again and repeat the call; nothing of it was written.",
            stream=str(work.place.name),
            version=found,
        )


def _refuse_case_twin(state: TenantState, name: StreamName) -> None:
    for existing in state.streams:
        if existing != name.value and existing.casefold() == name.value.casefold():
            raise InvalidName(
                f"The stream name {name.value!r} differs from the stream {existing!r} only by case.",
                cause="On some file systems both would be one folder.",
                remedy=f"Use {existing!r}, or a name of its own.",
                name=name.value,
            )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
