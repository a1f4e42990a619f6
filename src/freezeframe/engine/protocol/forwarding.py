"""Engines that pass their tasks on to another one."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from freezeframe.engine.protocol.table_engine import (
    NOTHING,
    FindTask,
    MergeResult,
    MergeTask,
    Positions,
    TableEngine,
    WriteTask,
    WrittenBatch,
)

# Base class of engines that delegate to another one.


class ForwardingEngine(ABC):
    """Base class that forwards every method of ``TableEngine`` but ``close``."""

    @abstractmethod
    def _behind(self) -> TableEngine:
        """The delegate engine."""

    @property
    def session(self) -> Any:
        """See ``TableEngine.session``."""
        return self._behind().session

    def merge(self, task: MergeTask) -> MergeResult:
        """See ``TableEngine.merge``."""
        return self._behind().merge(task)

    def write_batch(self, frame: Any, task: WriteTask) -> WrittenBatch:
        """See ``TableEngine.write_batch``."""
        return self._behind().write_batch(frame, task)

    def find(self, task: FindTask) -> pa.Table:
        """See ``TableEngine.find``."""
        return self._behind().find(task)

    def find_all(self, tasks: Sequence[FindTask]) -> tuple[pa.Table, ...]:
        """See ``TableEngine.find_all``."""
        return self._behind().find_all(tasks)

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any] | None:
        """See ``TableEngine.run``."""
        return self._behind().run(calls)

    def count_found(self, task: FindTask) -> tuple[int, ...]:
        """See ``TableEngine.count_found``."""
        return self._behind().count_found(task)

    def numbered_rows(self, frame: Any, name: str) -> Any | None:
        """See ``TableEngine.numbered_rows``."""
        return self._behind().numbered_rows(frame, name)

    def read(
        self,
        files: tuple[str, ...],
        schema: Mapping[str, Any],
        deleted: Mapping[str, Positions] = NOTHING,
        *,
        like: Any = None,
    ) -> Any:
        """See ``TableEngine.read``."""
        return self._behind().read(files, schema, deleted, like=like)

    def require_shared(self, folder: str) -> None:
        """See ``TableEngine.require_shared``."""
        self._behind().require_shared(folder)


# A lazily created engine: reading a snapshot creates none.
#
# Loading Spark's Python side costs a second and a server costs more, so neither happens before an
# update really has rows to move.


class DeferredEngine(ForwardingEngine):
    """Creates the engine on first use by ``make``, once."""

    def __init__(self, make: Callable[[], TableEngine]) -> None:
        self._make = make
        self._engine: TableEngine | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the engine if it was created; a later call creates a new one."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _behind(self) -> TableEngine:
        with self._lock:
            if self._engine is None:
                self._engine = self._make()
            return self._engine
