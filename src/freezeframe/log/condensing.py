"""Making the state of a log outside of this process: the seam that an engine stands behind.

Replay in this process holds the state it makes. A log that does not fit is condensed instead: an
engine reads the segment's files, keeps the last action of each data file and writes what is left as
Parquet, in parts. These parts are what a checkpoint consists of, and what a state is read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class LogCondenser(Protocol):
    """What finds the last action of each file where this process is too small for it."""

    def condense(
        self,
        checkpoint: Sequence[str],
        commits: Sequence[str],
        output: str,
        *,
        parts: int,
        removed_after_ms: int | None = None,
    ) -> tuple[str, ...]:
        """Write the last action of each file (behaviour 53) into ``output``; the names of the files there.

        All places are URIs as ``Storage.uri`` gives them; ``output`` does not exist yet.
        ``checkpoint`` are Parquet files with the columns ``add`` and ``remove``. ``commits`` are JSON
        files that come after them, in the order that the first twenty digits of their names tell; a
        JSON checkpoint is the first of them. About ``parts`` files are written, with the columns ``add``
        and ``remove`` of a checkpoint, ``dataChange`` being false. Tombstones of ``removed_after_ms``
        and before are left out, as are those that tell no moment; with None all stay.

        Raises:
            CorruptData: a file is missing or damaged, or a line of it is no action.
            EngineUnavailable: the engine did not answer.
        """
        ...
