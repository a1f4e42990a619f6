"""Shutdown flag of the process, which ends responses that would stream for ever.

A server waits for the answers that are under way before it stops, and tells none of them. Streams of events
end at once instead: who follows them asks the next process.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import suppress
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Closing:
    """Whether a signal has announced the end of this process; for its one event loop."""

    def __init__(self) -> None:
        self._asked: asyncio.Event | None = None

    async def wait(self, seconds: float) -> bool:
        """Wait for ``seconds`` or until the end is announced, and return whether it is."""
        asked = self._event()
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), seconds)
        return asked.is_set()

    def _event(self) -> asyncio.Event:
        if self._asked is None:
            self._asked = asyncio.Event()
            # Python lets only the main thread take signals; a server in another one gets none anyway.
            if threading.current_thread() is threading.main_thread():
                for number in _SIGNALS:
                    self._listen(number, asyncio.get_running_loop())
        return self._asked

    def _listen(self, number: signal.Signals, loop: asyncio.AbstractEventLoop) -> None:
        before = signal.getsignal(number)
        asked = self._asked
        assert asked is not None  # noqa: S101 - set by _event

        def tell(number: int, frame: FrameType | None) -> None:
            with suppress(RuntimeError):  # the event loop is closed: no one is left to notify
                loop.call_soon_threadsafe(asked.set)
            if callable(before):
                before(number, frame)

        signal.signal(number, tell)
