"""Table maintenance: checkpoint, log compaction, cleanup, verification."""

from __future__ import annotations

from freezeframe.log.checkpoints.hint import Hint
from freezeframe.log.primitives.events import report
from freezeframe.log.table.cleanup import CleanupPlan, clean_up
from freezeframe.log.table.table_log import TableLog
from freezeframe.log.table.verification import Finding, verify_log, verify_snapshot
from freezeframe.log.write.checkpoint_writer import write_checkpoint
from freezeframe.log.write.compaction import compact_log


class Maintenance:
    """Maintenance of one table at its newest version; its rows never change."""

    def __init__(self, log: TableLog) -> None:
        self._log = log

    def checkpoint(self) -> Hint:
        """Write a checkpoint of the newest version, which spares readers the replay of earlier commits.

        Raises:
            InvalidOption: the table does not exist.
            CorruptLog, StorageUnavailable: as ``write_checkpoint``.
        """
        with report(self._log.options.listener, "deltaLog.checkpoint", self._log.path) as metrics:
            hint = write_checkpoint(self._log.update())
            metrics |= {"version": hint.version, "actions": hint.size, "bytes": hint.size_in_bytes}
            return hint

    def compact_log(self, start: int, end: int) -> str | None:
        """Write a compacted file for a range of commits, and return its name (None where it would be empty).

        Raises:
            InvalidOption: the range holds fewer than two versions.
            CorruptLog, FileNotFoundError, StorageUnavailable: as ``compaction.compact_log``.
        """
        return compact_log(self._log.storage, self._log.folder, start, end)

    def clean_up(self) -> CleanupPlan:
        """Delete log files beyond the table's log retention (behaviour 75) and return the plan."""
        return clean_up(self._log.update(), self._log.options.clock())

    def verify(self) -> list[Finding]:
        """Verify the log and the data of its newest version; no findings mean no damage.

        Raises:
            InputNotFound: the table does not exist.
        """
        findings = verify_log(self._log.storage, self._log.folder)
        return findings or verify_snapshot(self._log.update())
