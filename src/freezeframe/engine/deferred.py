"""An engine that is made when it is first asked for something: reading a snapshot needs none.

Loading Spark's Python side costs a second and a server costs more, so neither happens before an
update really has rows to move.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from freezeframe.engine.base import (
    NOTHING,
    FindTask,
    Landed,
    LandTask,
    MergeResult,
    MergeTask,
    Positions,
    TableEngine,
)


class DeferredEngine:
    """The engine that ``make`` gives, made once, by the first call that needs it."""

    def __init__(self, make: Callable[[], TableEngine]) -> None:
        self._make = make
        self._engine: TableEngine | None = None
        self._lock = threading.Lock()

    def merge(self, task: MergeTask) -> MergeResult:
        """See ``TableEngine.merge``."""
        return self._made().merge(task)

    def land(self, frame: Any, task: LandTask) -> Landed:
        """See ``TableEngine.land``."""
        return self._made().land(frame, task)

    def find(self, task: FindTask) -> pa.Table:
        """See ``TableEngine.find``."""
        return self._made().find(task)

    def find_all(self, tasks: Sequence[FindTask]) -> tuple[pa.Table, ...]:
        """See ``TableEngine.find_all``."""
        return self._made().find_all(tasks)

    def count_found(self, task: FindTask) -> tuple[int, ...]:
        """See ``TableEngine.count_found``."""
        return self._made().count_found(task)

    def condense(
        self,
        checkpoint: Sequence[str],
        commits: Sequence[str],
        output: str,
        *,
        parts: int,
        removed_after_ms: int | None = None,
    ) -> tuple[str, ...]:
        """See ``TableEngine.condense``."""
        made = self._made()
        return made.condense(checkpoint, commits, output, parts=parts, removed_after_ms=removed_after_ms)

    def read(
        self, files: tuple[str, ...], schema: Mapping[str, Any], deleted: Mapping[str, Positions] = NOTHING
    ) -> Any:
        """See ``TableEngine.read``."""
        return self._made().read(files, schema, deleted)

    def require_shared(self, folder: str) -> None:
        """See ``TableEngine.require_shared``."""
        self._made().require_shared(folder)

    def close(self) -> None:
        """Let go of the engine if it was ever made; a later call makes a new one."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _made(self) -> TableEngine:
        with self._lock:
            if self._engine is None:
                self._engine = self._make()
            return self._engine
