"""An engine that is made when it is first asked for something: reading a snapshot needs none.

Loading Spark's Python side costs a second and a server costs more, so neither happens before an
update really has rows to move.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from freezeframe.engine.base import Landed, LandTask, MergeResult, MergeTask, TableEngine


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

    def read(self, files: tuple[str, ...], schema: Mapping[str, Any]) -> Any:
        """See ``TableEngine.read``."""
        return self._made().read(files, schema)

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
