"""A progress line on standard error for long commands.

A terminal gets a line that changes, with the remaining time; anything else gets a plain line every few
seconds. A short command prints nothing, nor does one with ``--json`` or ``--quiet``. While the work waits for
Spark, the line shows how far Spark is.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Protocol, TypeVar

from freezeframe.cli.output import is_terminal, require_yes, visible
from freezeframe.progress import Unit, watched_by
from freezeframe.store.model.update_options import say_types

_TERMINAL_SECONDS = (0.5, 0.2)  # before the first line, and between two
_PLAIN_SECONDS = (5.0, 5.0)
_BAR_LETTERS = 20
_ETA_SHARE_MIN = 0.01  # with less than that done, the time left would be a guess
_KILO = 1000


@contextmanager
def progress(label: str, *, as_json: bool = False) -> Iterator[ProgressLine]:
    """Show how far the block is; ``label`` is what is done, such as ``Exporting acme``.

    Without a label there is a line only while the work waits for another program.
    """
    state = Progress(label)
    line = ProgressLine(state)
    if as_json or _is_quiet():
        yield line
        return
    stop = threading.Event()
    thread = threading.Thread(target=line.show, args=(stop,), daemon=True)
    thread.start()
    try:
        with watched_by(state):
            yield line
    finally:
        stop.set()
        thread.join()
        for remark in state.remarks:
            _write(f"{visible(remark)}\n")


class _HasEffect(Protocol):
    @property
    def is_empty(self) -> bool: ...


_Effect = TypeVar("_Effect", bound=_HasEffect)


def carry_out_shown(
    call: Callable[..., _Effect],
    show: Callable[[_Effect], None],
    question: str,
    message: str | None,
    *,
    label: str = "",
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Show what a call would do, and carry it out after a confirmation; a preview without effect is the end.

    ``call`` takes ``dry_run=True``, or the ``message`` of the change, whose progress has the label.
    """
    if dry_run or not yes:
        preview = call(dry_run=True)
        if dry_run or preview.is_empty:
            show(preview)
            return
        if not as_json:
            show(preview)
        require_yes(question)
    with progress(label, as_json=as_json) if label else nullcontext():
        done = call(message=message or "")
    show(done)


class Progress:
    """Progress of one command; written by the worker, read by the display."""

    def __init__(self, label: str, started: float | None = None) -> None:
        self._label = label
        self._doing = ""
        self._unit: Unit = "bytes"
        self._total: int | None = None
        self._done = 0
        self._counting = threading.Lock()
        self._started = time.monotonic() if started is None else started
        self._part_started = self._started
        self._waits_for = ""
        self.remarks: list[str] = []
        self._wait_started = self._started

    def begin(self, doing: str, unit: Unit, total: int | None) -> None:
        """See ``Watcher.begin``."""
        self._doing, self._unit, self._total = doing, unit, total
        self._done, self._part_started = 0, time.monotonic()

    def advance(self, count: int) -> None:
        """See ``Watcher.advance``."""
        with self._counting:  # several threads may report
            self._done += count

    def wait_for(self, what: str) -> None:
        """See ``Watcher.wait_for``."""
        if not self._waits_for:
            self._wait_started = time.monotonic()
        self._waits_for = what

    def remark(self, text: str) -> None:
        """See ``Watcher.remark``."""
        self.remarks.append(say_types(text))

    def line(self, now: float | None = None, *, has_bar: bool = False) -> str:
        """Return the progress in one line; empty if nothing is known."""
        moment = time.monotonic() if now is None else now
        if what := visible(self._waits_for):
            label = f"{visible(self._label)}: " if self._label else ""
            return f"{label}{what}, {_time(moment - self._wait_started)}"
        if not self._label:
            return ""
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


class ProgressLine:
    """Displays progress until the end; a terminal's line is then erased."""

    def __init__(self, state: Progress) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._is_there = False

    def show(self, stop: threading.Event) -> None:
        """Write the line repeatedly until ``stop``."""
        changes = is_terminal(sys.stderr)
        first, then = _TERMINAL_SECONDS if changes else _PLAIN_SECONDS
        wait = first
        while not stop.wait(wait):
            wait = then
            text = self._state.line(has_bar=changes)
            if not changes:
                _write(f"{text}\n" if text else "")
                continue
            with self.away():
                width = max(20, shutil.get_terminal_size().columns - 1)
                _write(text[:width])
                self._is_there = bool(text)
        with self.away():
            pass

    @contextmanager
    def away(self) -> Iterator[None]:
        """Erase the terminal's line while the block writes something else."""
        with self._lock:
            if self._is_there:
                _write("\r\x1b[K")
                self._is_there = False
            yield


def _write(text: str) -> None:
    if text:
        sys.stderr.write(text)
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
