"""Progress callbacks of long operations.

The code that works reports its progress to the watcher of its thread (a context variable), so that no
argument passes through all layers. Without a watcher a report costs nothing.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol

Unit = Literal["bytes", "rows", "files"]


class Watcher(Protocol):
    """Receives progress; called often, so it must return at once."""

    def begin(self, doing: str, unit: Unit, total: int | None) -> None:
        """Begin a part of the work; ``total`` is None if it is unknown."""

    def advance(self, count: int) -> None:
        """Add to what is done."""

    def wait_for(self, what: str) -> None:
        """Report that the work waits for a program, such as Spark; ``what`` is empty once it goes on."""

    def remark(self, text: str) -> None:
        """Report something about the result that a person should read."""


_logger = logging.getLogger(__name__)
_watcher: ContextVar[Watcher | None] = ContextVar("freezeframe_watcher", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Within the block this thread's long operations report to the watcher."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def begin(doing: str, unit: Unit, total: int | None = None) -> None:
    """Report that a part of the work begins; ``doing`` is a word such as ``copying``."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.begin(doing, unit, total)


def advance(count: int = 1) -> None:
    """Report that ``count`` more are done."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.advance(count)


def wait_for(what: str) -> None:
    """Report what another program does while the work waits for it; empty once it goes on."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.wait_for(what)


def remark(text: str) -> None:
    """Report something that a person should read; without a watcher it is a line of the log."""
    watcher = _watcher.get()
    if watcher is None:
        _logger.warning("%s", text)
    else:
        watcher.remark(text)


def count_bytes(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks; their bytes count as done when the consumer gets them."""
    for chunk in chunks:
        advance(len(chunk))
        yield chunk
