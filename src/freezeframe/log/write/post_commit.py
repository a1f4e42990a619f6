"""Post-commit hooks: checksum, checkpoint, log compaction. None can undo the commit.

The writer of a version calls ``after_commit``. A failure costs later readers only time, so it is
logged and not raised.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from freezeframe.errors import FreezeframeError, InvalidOption
from freezeframe.log.actions.action_columns import FILE_SCHEMA, action_keys, no_rows
from freezeframe.log.actions.actions import Action, Add, Remove
from freezeframe.log.checkpoints.checksum import Checksum, read_checksum
from freezeframe.log.primitives.paths import checksum_name
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.table.table_log import TableLog
from freezeframe.log.write.checkpoint_writer import write_checkpoint
from freezeframe.log.write.checksum_writer import (
    NotIncremental,
    checksum_after,
    checksum_of,
    verify_checksum,
    write_checksum,
)
from freezeframe.log.write.compaction import compact_log

CHECKPOINT_INTERVAL_KEY = "delta.checkpointInterval"
CHECKPOINT_INTERVAL = 10

_Made = Checksum | NotIncremental

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Intervals of checkpoints and log compaction, in commits.

    ``checkpoint_interval`` None: the table's property, else 10. ``compaction_interval`` 0 (Delta's
    default) disables compaction. ``tombstones_after``: see ``write_checkpoint``.
    """

    checkpoint_interval: int | None = None
    compaction_interval: int = 0
    write_checksums: bool = True
    tombstones_after: int | None = None

    def __post_init__(self) -> None:
        if self.checkpoint_interval is not None and self.checkpoint_interval < 1:
            raise InvalidOption("checkpoint_interval must be at least 1.", remedy="Leave it out for 10.")
        if self.compaction_interval < 0 or self.compaction_interval == 1:
            raise InvalidOption("compaction_interval must be 0 or at least 2.", remedy="Use 0 for never.")


def after_commit(
    log: TableLog, version: int, actions: Sequence[Action] | None = None, upkeep: Upkeep | None = None
) -> None:
    """Update ``log`` to the committed ``version``, and run the hooks due at it.

    The commit's ``actions`` allow an incremental checksum. Errors of this package are logged as
    warnings and never raised.
    """
    chosen = upkeep or Upkeep()
    try:
        after: _Made = NotIncremental("MISSING_OLD_CRC")
        if chosen.write_checksums and actions is not None and version > 0:
            after = _checksum_after(log, version, actions)
        snapshot = log.update()
        checksum = _write_checksum(log, snapshot, version, after) if chosen.write_checksums else None
        if _is_due(version, snapshot, chosen.checkpoint_interval):
            _write_checkpoint(log, snapshot, version, checksum, chosen.tombstones_after)
        every = chosen.compaction_interval
        if every and (version + 1) % every == 0:
            compact_log(log.storage, log.folder, version + 1 - every, version)
    except (FreezeframeError, FileNotFoundError) as error:
        _log.warning("The upkeep after version %s of %s failed: %s", version, log.path, error)


def _is_due(version: int, snapshot: Snapshot, interval: int | None) -> bool:
    if interval is None:
        text = snapshot.metadata.configuration.get(CHECKPOINT_INTERVAL_KEY, "")
        interval = int(text) if text.isdecimal() and int(text) > 0 else CHECKPOINT_INTERVAL
    return version > 0 and version % interval == 0


def _write_checkpoint(
    log: TableLog, snapshot: Snapshot, version: int, checksum: Checksum | None, tombstones_after: int | None
) -> None:
    wanted = snapshot if snapshot.version == version else log.snapshot_at(version=version)
    if checksum is not None:
        # Both state and checksum are in memory here, so their comparison is cheap.
        verify_checksum(wanted, checksum)
    write_checkpoint(wanted, tombstones_after=tombstones_after)
    if tombstones_after is not None:  # nor are they kept in memory
        wanted.with_state(wanted.state.without_expired(tombstones_after))


def _checksum_after(log: TableLog, version: int, actions: Sequence[Action]) -> _Made:
    before = log.current_snapshot
    if before.version != version - 1:
        return NotIncremental("OLD_STATE_UNKNOWN")
    previous = _previous(log, version - 1)
    if previous is None:
        return NotIncremental("MISSING_OLD_CRC")
    keys = action_keys(action for action in actions if isinstance(action, Add | Remove))
    named = before.state.files.of_keys(keys) if len(keys) else no_rows(FILE_SCHEMA)
    return checksum_after(previous, actions, named)


def _write_checksum(log: TableLog, snapshot: Snapshot, version: int, found: _Made) -> Checksum | None:
    if isinstance(found, NotIncremental):
        if snapshot.version != version:
            return None  # other writers were first; their checksums suffice
        found = checksum_of(snapshot)
    write_checksum(log.storage, log.folder, version, found)
    return found


def _previous(log: TableLog, version: int) -> Checksum | None:
    name = f"{log.folder}/{checksum_name(version)}" if log.folder else checksum_name(version)
    if not any(status.name == checksum_name(version) for status in log.list_from(version)):
        return None
    return read_checksum(log.storage, name)
