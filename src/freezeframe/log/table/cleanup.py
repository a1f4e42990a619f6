"""Log cleanup: deletes expired log files not needed by any retained version."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from freezeframe.errors import CorruptLog
from freezeframe.log.actions.actions import Sidecar
from freezeframe.log.checkpoints.checkpoint import read_checkpoint_actions, sidecar_name
from freezeframe.log.primitives.arrow import milliseconds
from freezeframe.log.primitives.listing import CheckpointFiles, complete_checkpoints, list_log, sort_listing
from freezeframe.log.primitives.paths import SIDECAR_FOLDER, Kind, log_file
from freezeframe.log.table.history import History
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.storage import FileStatus, Storage

DAY_MS = 86_400_000
LOG_RETENTION = "delta.logRetentionDuration"
LOG_RETENTION_DEFAULT = "interval 30 days"
CLEANUP_ENABLED = "delta.enableExpiredLogCleanup"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """The log files to delete, in order, and the oldest retained version."""

    kept_from: int
    files: tuple[str, ...]


def plan_cleanup(snapshot: Snapshot, now_ms: int) -> CleanupPlan:
    """Plan the deletion of expired log files not needed by any retained version (behaviour 75).

    Retained are the newest complete checkpoint older than the retention and everything after it;
    only older files below it are deleted. Days count whole, as in Delta. The plan is empty where the
    table disables cleanup or protects versions above that checkpoint.
    """
    configuration = snapshot.metadata.configuration
    nothing = CleanupPlan(0, ())
    if str(configuration.get(CLEANUP_ENABLED, "true")).lower() != "true" or not snapshot.exists:
        return nothing
    retention = milliseconds(configuration.get(LOG_RETENTION, LOG_RETENTION_DEFAULT))
    cutoff = (now_ms - retention) // DAY_MS * DAY_MS
    storage, folder = snapshot.storage, snapshot.segment.folder
    statuses = list(list_log(storage, folder))
    times = {
        time.version: time.timestamp
        for time in History(storage, folder).commit_times(snapshot, 0, snapshot.version)
    }
    base = _newest_expired_checkpoint(statuses, times, cutoff)
    if base is None or int(configuration.get(PROTECTED_BEFORE) or 0) > base.version:
        return nothing
    names = [status.name for status in statuses if _is_expired(status, base.version, times, cutoff)]
    going = set(names)
    orphans = orphaned_sidecars(
        storage,
        folder,
        [status for status in statuses if status.name not in going],
        list(storage.list_from(f"{folder}/{SIDECAR_FOLDER}")),
        now_ms,
    )
    return CleanupPlan(base.version, (*names, *(f"{SIDECAR_FOLDER}/{name}" for name in orphans)))


def clean_up(snapshot: Snapshot, now_ms: int) -> CleanupPlan:
    """Delete the files of ``plan_cleanup``, oldest first, and return the plan.

    A crash leaves a valid log with part of its expired beginning deleted.
    """
    plan = plan_cleanup(snapshot, now_ms)
    folder = snapshot.segment.folder
    for name in plan.files:
        snapshot.storage.delete(f"{folder}/{name}")
    if plan.files:
        _log.info("Deleted %s expired files of %s below version %s", len(plan.files), folder, plan.kept_from)
    return plan


def _newest_expired_checkpoint(
    statuses: list[FileStatus], times: dict[int, int], cutoff: int
) -> CheckpointFiles | None:
    checkpoints = complete_checkpoints(sort_listing(statuses).checkpoint_files)
    expired = [
        checkpoint
        for checkpoint in checkpoints
        if checkpoint.version in times and times[checkpoint.version] < cutoff
    ]
    return expired[-1] if expired else None


def _is_expired(status: FileStatus, below: int, times: dict[int, int], cutoff: int) -> bool:
    file = log_file(status)
    if file is None or file.version >= below:
        return False
    time = times.get(file.version, file.modified_ms) if file.kind is Kind.COMMIT else file.modified_ms
    return time < cutoff


def orphaned_sidecars(
    storage: Storage, folder: str, kept: list[FileStatus], sidecars: list[FileStatus], now_ms: int
) -> list[str]:
    """The names of sidecars older than a day that no checkpoint among the log's ``kept`` files names.

    A writer may still need younger ones. None, with a warning, where a checkpoint cannot be read.
    """
    old = [status.name for status in sidecars if status.modified_ms < now_ms - DAY_MS]
    if not old:
        return []
    needed: set[str] = set()
    for checkpoint in complete_checkpoints(sort_listing(kept).checkpoint_files):
        try:
            actions = read_checkpoint_actions(storage, folder, checkpoint)
        except CorruptLog as error:
            _log.warning("No sidecar is deleted, for a checkpoint cannot be read: %s", error)
            return []
        needed |= {sidecar_name(action) for action in actions if isinstance(action, Sidecar)}
    return [name for name in old if name not in needed]
