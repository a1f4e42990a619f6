"""The proofs by name, and their run one after the other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from freezeframe.errors import InvalidOption
from freezeframe.proof import (
    atomic_create,
    clock_skew,
    concurrency,
    damage,
    durability,
    erasure,
    garbage,
    isolation,
    listing,
    storage_faults,
    time_travel,
    values,
)
from freezeframe.proof.place import Place
from freezeframe.proof.result import ProofResult
from freezeframe.proof.task import Task

TELL_SECONDS = 10.0

PROOFS: MappingProxyType[str, tuple[str, Callable[[Task], None]]] = MappingProxyType(
    {
        "atomic-create": (atomic_create.PROMISE, atomic_create.run),
        "listing": (listing.PROMISE, listing.run),
        "concurrency": (concurrency.PROMISE, concurrency.run),
        "kill": (durability.PROMISE, durability.run),
        "crash": (storage_faults.CRASH_PROMISE, storage_faults.crashes),
        "errors": (storage_faults.ERROR_PROMISE, storage_faults.errors),
        "damage": (damage.PROMISE, damage.run),
        "clocks": (clock_skew.PROMISE, clock_skew.run),
        "values": (values.PROMISE, values.run),
        "isolation": (isolation.PROMISE, isolation.run),
        "time-travel": (time_travel.TRAVEL_PROMISE, time_travel.travel),
        "restore": (time_travel.RESTORE_PROMISE, time_travel.restore),
        "gc": (garbage.PROMISE, garbage.run),
        "erase": (erasure.PROMISE, erasure.run),
    }
)


def select_proofs(only: Sequence[str]) -> tuple[str, ...]:
    """The proofs that are named, in their own order; all of them if none is.

    Raises:
        InvalidOption: there is no such proof.
    """
    unknown = sorted({*only} - {*PROOFS})
    if unknown:
        raise InvalidOption(
            f"There is no proof named {', '.join(unknown)}.", remedy=f"Choose from {', '.join(PROOFS)}."
        )
    return tuple(name for name in PROOFS if not only or name in only)


def prove(
    place: Place,
    names: Sequence[str],
    seed: int,
    seconds: float = 0.0,
    tell: Callable[[str, dict[str, int]], None] = lambda *_: None,
    *,
    tell_seconds: float = TELL_SECONDS,
) -> Iterator[ProofResult]:
    """The result of each proof as it ends.

    Each proof has one round; what is left of ``seconds`` when one begins is shared out between those to come.
    ``tell`` is given the counts of a proof that is still running, every
    ``tell_seconds``, in a thread of its own.
    """
    logger = logging.getLogger("freezeframe")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # log lines about planned faults would hide real findings
    ends = time.monotonic() + seconds
    try:
        for number, name in enumerate(names):
            share = max(0.0, ends - time.monotonic()) / (len(names) - number)
            task = Task(place.within(name), f"{seed}/{name}", share)
            with _report_progress(tell, name, task, tell_seconds):
                result = _result(task, name)
            yield result
    finally:
        logger.setLevel(level)


@contextmanager
def _report_progress(
    tell: Callable[[str, dict[str, int]], None], name: str, task: Task, seconds: float
) -> Iterator[None]:
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(seconds):
            tell(name, dict(task.counts))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _result(task: Task, name: str) -> ProofResult:
    promise, run = PROOFS[name]
    started = time.monotonic()
    try:
        run(task)
    except Exception as error:  # noqa: BLE001 - whatever a broken storage leads to, the promise was not kept
        task.violations.append(f"ended by {type(error).__name__}: {error}")
    return ProofResult(name, promise, dict(task.counts), tuple(task.violations), time.monotonic() - started)
