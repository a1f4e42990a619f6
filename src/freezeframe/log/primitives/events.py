"""Events of a log (update, snapshot, commit, checkpoint) for listeners."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event of a log; ``error`` is the message of a failure, else empty.

    Names are ``deltaLog.update``, ``deltaLog.snapshot``, ``deltaLog.commit``, ``deltaLog.checkpoint``.
    """

    name: str
    path: str
    duration_ms: float
    metrics: Mapping[str, Any]
    error: str = ""


Listener: TypeAlias = Callable[[LogEvent], None]


@contextmanager
def report(listener: Listener | None, name: str, path: str) -> Iterator[dict[str, Any]]:
    """Reports the block to the listener when it ends; the block adds its metrics.

    A failure of the listener is logged; the observed operation continues.
    """
    metrics: dict[str, Any] = {}
    if listener is None:
        yield metrics
        return
    started, error = time.perf_counter(), ""
    try:
        yield metrics
    except BaseException as caught:
        error = str(caught) or type(caught).__name__
        raise
    finally:
        event = LogEvent(name, path, (time.perf_counter() - started) * 1000, metrics, error)
        try:
            listener(event)
        except Exception:  # noqa: BLE001 - a listener's failure must not stop the log
            _log.exception("The listener of %s failed at %s", path, name)
