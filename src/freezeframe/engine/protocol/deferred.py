"""A lazily created engine: reading a snapshot creates none.

Loading Spark's Python side costs a second and a server costs more, so neither happens before an
update really has rows to move.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from freezeframe.engine.protocol.forwarding import ForwardingEngine
from freezeframe.engine.protocol.table_engine import TableEngine


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
