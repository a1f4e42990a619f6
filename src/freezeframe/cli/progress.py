"""One line that tells how far a long command is, on standard error.

A terminal gets a line that changes, with the time that is left; anything else gets a plain line every few
seconds; a command that is done soon says nothing, and so does one with ``--json`` or ``--quiet``.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from freezeframe.cli.output import is_terminal
from freezeframe.cli.visible import visible
from freezeframe.progress import Unit, watched_by

_TERMINAL_SECONDS = (0.5, 0.2)  # before the first line, and between two
_PLAIN_SECONDS = (5.0, 5.0)
_BAR_LETTERS = 20
_ETA_SHARE_MIN = 0.01  # with less than that done, the time left would be a guess
_KILO = 1000


@contextmanager
def progress(label: str, *, as_json: bool = False) -> Iterator[None]:
    """Show how far the block is; ``label`` is what is done, such as ``Exporting acme``."""
    if as_json or _is_quiet():
        yield
        return
    state = Progress(label)
    stop = threading.Event()
    thread = threading.Thread(target=_show, args=(state, stop), daemon=True)
    thread.start()
    try:
        with watched_by(state):
            yield
    finally:
        stop.set()
        thread.join()


class Progress:
    """How far one command is; written by the work, read by whoever shows it."""

    def __init__(self, label: str, started: float | None = None) -> None:
        self._label = label
        self._doing = ""
        self._unit: Unit = "bytes"
        self._total: int | None = None
        self._done = 0
        self._started = time.monotonic() if started is None else started
        self._part_started = self._started

    def begin(self, doing: str, unit: Unit, total: int | None) -> None:
        """See ``Watcher.begin``."""
        self._doing, self._unit, self._total = doing, unit, total
        self._done, self._part_started = 0, time.monotonic()

    def advance(self, count: int) -> None:
        """See ``Watcher.advance``."""
        self._done += count

    def line(self, now: float | None = None, *, has_bar: bool = False) -> str:
        """What is known now, in one line."""
        moment = time.monotonic() if now is None else now
        parts = [visible(self._label)]
        if not self._doing or not self._done:
            return f"{parts[0]}: {self._doing + ', ' if self._doing else ''}{_time(moment - self._started)}"
        share = min(1.0, self._done / self._total) if self._total else None
        if share is not None:
            full = round(share * _BAR_LETTERS)
            bar = f"[{'#' * full}{'.' * (_BAR_LETTERS - full)}] " if has_bar else ""
            parts.append(f"{bar}{share:.0%}")
        of = f" of {_amount(self._total, self._unit)}" if self._total else ""
        parts.append(f"{self._doing} {_amount(self._done, self._unit)}{of}")
        if share is not None and share >= _ETA_SHARE_MIN:
            parts.append(f"{_time((moment - self._part_started) * (1 - share) / share)} left")
        return "  ".join(parts)


def _show(state: Progress, stop: threading.Event) -> None:
    """Show the state until it is over; a terminal's line is taken away then."""
    changes = is_terminal(sys.stderr)
    first, then = _TERMINAL_SECONDS if changes else _PLAIN_SECONDS
    if stop.wait(first):
        return
    while True:
        if changes:
            width = max(20, shutil.get_terminal_size().columns - 1)
            sys.stderr.write(f"\r{state.line(has_bar=True)[:width]}\x1b[K")
        else:
            sys.stderr.write(f"{state.line()}\n")
        sys.stderr.flush()
        if stop.wait(then):
            break
    if changes:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _is_quiet() -> bool:
    from typer._click.globals import get_current_context

    context = get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("quiet"))


def _amount(count: int, unit: Unit) -> str:
    if unit != "bytes":
        return f"{count:,} {unit}"
    size, names = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= _KILO and len(names) > 1:
        size /= _KILO
        names.pop(0)
    return f"{count} bytes" if names[0] == "bytes" else f"{size:.1f} {names[0]}"


def _time(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
