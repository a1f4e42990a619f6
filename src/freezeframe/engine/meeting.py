"""Several updates under way at once whose searches for keys become one question to Spark.

Of a small update nearly all is a question: planning it and carrying it there and back, not rows. So
updates of one call, each in a thread of its own, wait until all of them know what they look for, and ask
together. Whoever needs no search, or has failed, leaves and is not waited for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from freezeframe.errors import EngineUnavailable, FreezeframeError


@dataclass(slots=True, eq=False)
class _Search:
    """What one of them looks for, and in the end what was found or why it could not be."""

    task: FindTask
    is_over: bool = False
    found: pa.Table | None = None
    failure: EngineUnavailable | None = None


class Meeting:
    """The engine behind it for ``parties`` threads; each is a ``party`` until it needs the engine no more."""

    def __init__(self, engine: TableEngine, parties: int) -> None:
        self._engine = engine
        self._parties = parties
        self._waiting: list[_Search] = []
        self._changed = threading.Condition()
        self._sharing = threading.Lock()

    @contextlib.contextmanager
    def party(self) -> Iterator[None]:
        """One of the threads at work: when the block ends, the others wait for it no longer."""
        try:
            yield
        finally:
            with self._changed:
                self._parties -= 1
                self._changed.notify_all()

    def find(self, task: FindTask) -> pa.Table:
        """See ``TableEngine.find``; waits until every party waits here or has left.

        Once all have left, as when an update is carried out again, nobody is waited for.
        """
        search = _Search(task)
        with self._changed:
            self._waiting.append(search)
            self._changed.notify_all()
            self._changed.wait_for(lambda: search.is_over or self._is_complete())
            # Whoever wakes first asks for all.
            together = [] if search.is_over else self._waiting
            if together:
                self._waiting = []
        if len(together) > 1:
            self._ask(together)
        if search.failure is not None:
            raise search.failure
        # A search that spoilt the common question, such as one in a damaged file, is to fail alone.
        return self._engine.find(task) if search.found is None else search.found

    def find_all(self, tasks: Sequence[FindTask]) -> tuple[pa.Table, ...]:
        """See ``TableEngine.find_all``."""
        return self._engine.find_all(tasks)

    def merge(self, task: MergeTask) -> MergeResult:
        """See ``TableEngine.merge``."""
        return self._engine.merge(task)

    def land(self, frame: Any, task: LandTask) -> Landed:
        """See ``TableEngine.land``."""
        return self._engine.land(frame, task)

    def count_found(self, task: FindTask) -> tuple[int, ...]:
        """See ``TableEngine.count_found``."""
        return self._engine.count_found(task)

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
        return self._engine.condense(
            checkpoint, commits, output, parts=parts, removed_after_ms=removed_after_ms
        )

    def read(
        self, files: tuple[str, ...], schema: Mapping[str, Any], deleted: Mapping[str, Positions] = NOTHING
    ) -> Any:
        """See ``TableEngine.read``."""
        return self._engine.read(files, schema, deleted)

    def require_shared(self, folder: str) -> None:
        """See ``TableEngine.require_shared``; of several that ask at once the first asks Spark."""
        with self._sharing:
            self._engine.require_shared(folder)

    def close(self) -> None:
        """Nothing: the engine is its owner's."""

    def _is_complete(self) -> bool:
        return len(self._waiting) >= max(self._parties, 1)

    def _ask(self, searches: Sequence[_Search]) -> None:
        try:
            found = self._engine.find_all([search.task for search in searches])
            for search, table in zip(searches, found, strict=True):
                search.found = table
        except EngineUnavailable as error:
            for search in searches:
                search.failure = error
        except FreezeframeError:
            pass  # each asks alone
        finally:
            with self._changed:
                for search in searches:
                    search.is_over = True
                self._changed.notify_all()
