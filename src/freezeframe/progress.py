"""Progress callbacks of long operations.

The work says it where it happens, and a watcher is heard of by the thread that it began in; so nothing
need be handed down through all layers for the sake of a line on somebody's screen. Without a watcher
saying it costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol

Unit = Literal["bytes", "rows", "files"]


class Watcher(Protocol):
    """Receives progress; called often, so it must return at once."""

    def begin(self, doing: str, unit: Unit, total: int | None) -> None:
        """A part of the work begins; ``total`` is None where nobody knows it yet."""

    def advance(self, count: int) -> None:
        """So much more of it is done."""

    def wait_for(self, what: str) -> None:
        """The work waits for another program, such as Spark; ``what`` is empty once it goes on."""

    def remark(self, text: str) -> None:
        """Something about the result that a person should read."""


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
    """Say that a part of the work begins; ``doing`` is a word such as ``copying``."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.begin(doing, unit, total)


def advance(count: int = 1) -> None:
    """Say that so much more is done."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.advance(count)


def wait_for(what: str) -> None:
    """Say what another program is doing while the work waits for it; empty once it goes on."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.wait_for(what)


def remark(text: str) -> None:
    """Say something about the result that a person should read; without a watcher it is a line of the log."""
    watcher = _watcher.get()
    if watcher is None:
        _logger.warning("%s", text)
    else:
        watcher.remark(text)


def count_bytes(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks; their bytes count as done when they are taken."""
    for chunk in chunks:
        advance(len(chunk))
        yield chunk
