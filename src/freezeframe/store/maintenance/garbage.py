"""Garbage collection of files, safe beside readers and writers.

In two steps, each decided by an entry of the log. First something is condemned: versions below a
new floor, which nobody is shown from then on, and transactions whose heartbeat stopped, which can
not commit from then on. After a grace period, longer than any read takes, what only they named is
deleted, by this call or the next one. Age alone never decides.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from freezeframe import progress
from freezeframe.clock import now_ms
from freezeframe.errors import ConflictError, CorruptLog, FreezeframeError, VersionNotFound
from freezeframe.storage import Storage
from freezeframe.storage.base import FileStatus
from freezeframe.storage.concurrency import run_concurrently
from freezeframe.store.directory.paths import (
    BLOBS_FOLDER,
    STAGING_FOLDER,
    lease_file,
    long_commit_file,
    table_name,
)
from freezeframe.store.maintenance.old_log_files import old_log_files
from freezeframe.store.maintenance.references import TablesThen, referenced_files
from freezeframe.store.maintenance.retention import policy_of
from freezeframe.store.model.author import Author
from freezeframe.store.model.request_context import NO_REQUEST
from freezeframe.store.tenant_log.entry import TenantChange
from freezeframe.store.tenant_log.lease import live_leases
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import commit_at_end
from freezeframe.store.transaction.transaction import TenantPlace
from freezeframe.store.transaction.unit_of_work import UnitOfWork

_LOG = "_delta_log/"
_COMMITS = 32
_FILES_MAX = 50_000
_AT_ONCE = 128  # deletions side by side in a bucket
_logger = logging.getLogger(__name__)
_behind = ThreadPoolExecutor(1, "freezeframe-retention")


@dataclass(frozen=True, slots=True)
class Garbage:
    """The files that ``gc`` deleted, or with ``dry_run`` would delete after all grace periods.

    ``floor``: the oldest version that is kept for its own sake. ``revoked``: transactions that were
    declared dead by this call. ``names`` are the files, relative to the tenant's directory.
    """

    dry_run: bool
    files: int
    bytes: int
    floor: int
    versions_expired: int
    revoked: tuple[str, ...]
    names: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """All fields by name but the files' names."""
        return {
            "dry_run": self.dry_run,
            "files": self.files,
            "bytes": self.bytes,
            "floor": self.floor,
            "versions_expired": self.versions_expired,
            "revoked": list(self.revoked),
        }


def collect_garbage(place: TenantPlace, *, dry_run: bool = False) -> Garbage:
    """Condemn expired versions and dead transactions, and delete the files of those condemned earlier."""
    state = place.log.current_state()
    if state.version < 0:
        return Garbage(dry_run, 0, 0, 0, 0, (), ())
    moment = now_ms()
    floor = policy_of(state).floor(place.log, state, moment)
    dead = _dead(place, state, moment)
    expired = max(0, floor - state.floor)
    if dry_run:
        found = _garbage(place, floor, {*state.revoked, *dead})
        return _to_report(found, floor, expired, dead, dry_run=True)
    deleted = _sweep_condemned(place)
    is_due = floor > state.floor and _may_raise_floor(place, state, moment)
    if is_due or dead:
        if not _condemn(place, state, floor if is_due else None, dead):
            expired, dead = 0, ()
        if not place.settings.gc_grace_seconds:
            deleted += _sweep_condemned(place)
    return _to_report(deleted, floor, expired, dead, dry_run=False)


def collect_after_commit(place: TenantPlace, version: int) -> None:
    """Apply the retention policy after each ``_COMMITS``th version, at most once a grace period.

    The work is bounded: a tenant of more than ``_FILES_MAX`` files is left to ``gc``. No job is declared
    dead. A request of the service does not wait for it: a thread does it, one tenant after the other.
    """
    if version % _COMMITS or not place.settings.gc_automatic:
        return
    if place.request_context is NO_REQUEST:
        _apply_policy(place)
    else:
        _behind.submit(_apply_policy, replace(place, request_context=NO_REQUEST, checks=()))


def _apply_policy(place: TenantPlace) -> None:
    """What fails is told in the log: the version is committed, and the next one tries again."""
    try:
        state, moment = place.log.current_state(), now_ms()
        if not _may_raise_floor(place, state, moment):
            return
        floor = policy_of(state).floor(place.log, state, moment)
        if floor > state.floor and _has_few_files(place.storage):
            _sweep_condemned(place)
            _condemn(place, state, floor, ())
    except FreezeframeError:
        _logger.warning("Versions that the retention lets go could not be deleted.", exc_info=True)


def _may_raise_floor(place: TenantPlace, state: TenantState, moment_ms: int) -> bool:
    """Whether the floor may move: at every call, its grace period would never end."""
    return state.floor_ms <= moment_ms - _grace_ms(place)


def _has_few_files(storage: Storage) -> bool:
    return next(islice(storage.list_below(""), _FILES_MAX, None), None) is None


def _dead(place: TenantPlace, state: TenantState, moment_ms: int) -> tuple[str, ...]:
    """Transactions without a heartbeat that may still try to commit."""
    oldest = moment_ms - int(place.settings.lease_dead_seconds * 1000)
    leases = live_leases(place.storage)
    return tuple(
        sorted(
            one.write_id for one in leases if one.heartbeat_ms <= oldest and one.write_id not in state.revoked
        )
    )


def _condemn(place: TenantPlace, state: TenantState, floor: int | None, dead: tuple[str, ...]) -> bool:
    """Raise the floor and revoke transactions; false, with nothing done, if another call was quicker."""

    def require_same_floor(newest: TenantState) -> None:
        if floor is not None and newest.floor_ms != state.floor_ms:
            raise ConflictError(
                "Another gc of the tenant raised the floor meanwhile.", remedy="Nothing is to be done."
            )

    change = TenantChange(revoked=dead, floor=floor)
    try:
        with commit_at_end(UnitOfWork(place, Author(message="gc"), is_single=True)) as work:
            work.change_tenant(change, "revoke" if dead else "policy", require_same_floor)
    except ConflictError:
        return False
    return True


def _sweep_condemned(place: TenantPlace) -> list[FileStatus]:
    """Delete the files condemned for longer than the grace period.

    A floor is raised only where the one before has waited as long, so that one holds in the meantime.
    """
    state = place.log.current_state()
    oldest = now_ms() - _grace_ms(place)
    revoked = {write_id for write_id, since in state.revoked.items() if since <= oldest}
    if state.floor_ms > oldest:
        with suppress(CorruptLog, VersionNotFound):  # where a call with a shorter grace swept the new one
            return sweep(place, state.floor_before, revoked)
    return sweep(place, state.floor, revoked)


def _grace_ms(place: TenantPlace) -> int:
    return int(place.settings.gc_grace_seconds * 1000)


def sweep(place: TenantPlace, floor: int, revoked: set[str], *, durable: bool = False) -> list[FileStatus]:
    """Delete at once the files needed by no version from ``floor`` on and no unrevoked transaction.

    What a power loss brings back unless ``durable`` is garbage again for the next call.
    """
    found = _garbage(place, floor, revoked)
    progress.begin("deleting", "files", len(found))
    for first in range(0, len(found), _AT_ONCE):
        some = found[first : first + _AT_ONCE]
        deletes = (partial(place.storage.delete, file.name, durable=durable) for file in some)
        run_concurrently(place.storage, *deletes)
        progress.advance(len(some))
    for folder in sorted({file.name.rpartition("/")[0] for file in found}, reverse=True):
        place.storage.prune(folder)
    for lease in live_leases(place.storage):
        if lease.write_id in revoked:
            place.storage.delete(lease_file(lease.write_id))
    return found


def _garbage(place: TenantPlace, floor: int, revoked: set[str]) -> list[FileStatus]:
    """Files needed by no version from ``floor`` on, no tag and no unrevoked transaction.

    The order matters. A file is listed before the leases are: whoever wrote it had a lease then, and has
    it still or has committed. The state is read last, so what was committed meanwhile is known.
    """
    everything = list(place.storage.list_below(""))
    listed = _candidates(everything, place.log.current_state())
    alive = {lease.write_id for lease in live_leases(place.storage)} - revoked
    state = place.log.current_state()
    tables = TablesThen(place.storage)
    named = referenced_files(tables, place.log, state, floor)
    named |= {long_commit_file(change.sha256) for change in (state.head.streams if state.head else ())}
    garbage = [file for file in listed if file.name not in named and not _is_staged_by(file.name, alive)]
    return garbage + old_log_files(everything, place, tables, state, floor)


def _candidates(everything: Iterable[FileStatus], state: TenantState) -> list[FileStatus]:
    """Candidates for garbage: data of tables in custody, blobs, staged commits."""
    logged = {file.name.partition("/")[0] for file in everything if f"/{_LOG}" in file.name}
    ours = {*state.streams, *state.dropped}
    return [file for file in everything if _is_candidate(file.name, ours, logged)]


def _is_candidate(name: str, ours: Iterable[str], logged: Iterable[str]) -> bool:
    folder, _, rest = name.partition("/")
    stream = table_name(folder)
    if stream is not None and rest:
        # A table outside of custody was released; a folder without a log is left by a failed first update.
        return not rest.startswith(_LOG) and (stream in ours or folder not in logged)
    return name.startswith(f"{BLOBS_FOLDER}/") or (
        name.startswith(f"{STAGING_FOLDER}/") and name.endswith(".commit")
    )


def _is_staged_by(name: str, alive: set[str]) -> bool:
    """Whether an open transaction wrote the file."""
    if name.startswith(f"{STAGING_FOLDER}/"):
        return bool(alive)  # a staged commit has its content's name, so any of them may be its writer
    owner = name.removeprefix(f"{BLOBS_FOLDER}/").partition("/")[0]
    if not name.startswith(f"{BLOBS_FOLDER}/"):
        owner = name.partition("/")[2].partition("/")[0].partition("-")[0]
    return owner in alive


def _to_report(
    found: list[FileStatus], floor: int, expired: int, dead: tuple[str, ...], *, dry_run: bool
) -> Garbage:
    names = tuple(sorted(file.name for file in found))
    return Garbage(dry_run, len(names), sum(file.size for file in found), floor, expired, dead, names)
