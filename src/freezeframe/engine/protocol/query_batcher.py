"""Batches the key searches of concurrent updates into one Spark query.

A small update spends nearly all its time on query planning and round trips, not on rows. The updates of
one call, each in its own thread, therefore wait until all have their search, and send one query. A
thread without a search, or with an error, leaves the batch.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from freezeframe.engine.protocol.forwarding import ForwardingEngine
from freezeframe.engine.protocol.table_engine import FindTask, TableEngine
from freezeframe.errors import EngineUnavailable, FreezeframeError


@dataclass(slots=True, eq=False)
class _Search:
    """A pending search, and its result or error."""

    task: FindTask
    is_over: bool = False
    found: pa.Table | None = None
    failure: EngineUnavailable | None = None


class QueryBatcher(ForwardingEngine):
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
            # The first thread to wake sends the query for all.
            together = [] if search.is_over else self._waiting
            if together:
                self._waiting = []
        if len(together) > 1:
            self._ask(together)
        if search.failure is not None:
            raise search.failure
        # A search that spoilt the common question, such as one in a damaged file, is to fail alone.
        return self._engine.find(task) if search.found is None else search.found

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any] | None:
        """See ``TableEngine.run``; the other parties do not wait for this one meanwhile."""
        with self._changed:
            self._parties -= 1
            self._changed.notify_all()
        try:
            return super().run(calls)
        finally:
            with self._changed:
                self._parties += 1

    def require_shared(self, folder: str) -> None:
        """See ``TableEngine.require_shared``; of concurrent calls only the first one queries Spark."""
        with self._sharing:
            super().require_shared(folder)

    def close(self) -> None:
        """Does nothing: the engine belongs to its owner."""

    def _behind(self) -> TableEngine:
        return self._engine

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
