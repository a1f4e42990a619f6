"""Log cleanup: deletes expired log files that no retained version needs."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from freezeframe.errors import CorruptLog
from freezeframe.log.actions.actions import Sidecar
from freezeframe.log.checkpoints.checkpoint import read_checkpoint_actions, sidecar_name
from freezeframe.log.primitives.intervals import milliseconds
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
    """Files of the log folder to delete, in order, and the oldest version that is retained."""

    kept_from: int
    files: tuple[str, ...]


def plan_cleanup(snapshot: Snapshot, now_ms: int) -> CleanupPlan:
    """What is older than the table's log retention and not needed by any version that stays (behaviour 75).

    The newest complete checkpoint whose version is older than the retention stays, and all
    after it; only files below it that are themselves older go. Days count whole, as in Delta.
    A table that switches cleanup off, or protects versions above that checkpoint, loses nothing.
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
    orphans = _orphaned_sidecars(storage, folder, statuses, names, now_ms)
    return CleanupPlan(base.version, (*names, *orphans))


def clean_up(snapshot: Snapshot, now_ms: int) -> CleanupPlan:
    """Delete what ``plan_cleanup`` names, oldest first, and say what it was.

    A crash on the way leaves a log whose beginning is missing, which is what was wanted.

    Raises:
        StorageUnavailable: the storage failed; what is left goes with the next call.
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
    expired = [one for one in checkpoints if one.version in times and times[one.version] < cutoff]
    return expired[-1] if expired else None


def _is_expired(status: FileStatus, below: int, times: dict[int, int], cutoff: int) -> bool:
    file = log_file(status)
    if file is None or file.version >= below:
        return False
    time = times.get(file.version, file.modified_ms) if file.kind is Kind.COMMIT else file.modified_ms
    return time < cutoff


def _orphaned_sidecars(
    storage: Storage, folder: str, statuses: list[FileStatus], going: list[str], now_ms: int
) -> list[str]:
    """Sidecars that no kept checkpoint names and that are older than a day: a writer may still be at it."""
    found = list(storage.list_from(f"{folder}/{SIDECAR_FOLDER}"))
    old = [status.name for status in found if status.modified_ms < now_ms - DAY_MS]
    if not old:
        return []
    kept = [status for status in statuses if status.name not in set(going)]
    needed: set[str] = set()
    for checkpoint in complete_checkpoints(sort_listing(kept).checkpoint_files):
        try:
            actions = read_checkpoint_actions(storage, folder, checkpoint)
        except CorruptLog as error:
            _log.warning("No sidecar is deleted, for a checkpoint cannot be read: %s", error)
            return []
        needed |= {sidecar_name(action) for action in actions if isinstance(action, Sidecar)}
    return [f"{SIDECAR_FOLDER}/{name}" for name in old if name not in needed]
