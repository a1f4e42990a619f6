"""The proofs by name, and their run one after the other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from freezeframe.errors import InvalidOption
from freezeframe.proof.place import Place, Task
from freezeframe.proof.storages import (
    ATOMIC_CREATE_PROMISE,
    CLOCK_SKEW_PROMISE,
    CRASH_PROMISE,
    ERROR_PROMISE,
    LISTING_PROMISE,
    crashes,
    create_atomically,
    errors,
    list_all,
    skew_clocks,
)
from freezeframe.proof.tenants import (
    DAMAGE_PROMISE,
    ERASURE_PROMISE,
    GARBAGE_PROMISE,
    ISOLATION_PROMISE,
    RESTORE_PROMISE,
    TRAVEL_PROMISE,
    VALUES_PROMISE,
    collect_garbage,
    damage_files,
    erase_rows,
    isolate,
    keep_values,
    restore,
    travel,
)
from freezeframe.proof.writers import CONCURRENCY_PROMISE, DURABILITY_PROMISE, commit_at_once, kill_writers


@dataclass(frozen=True, slots=True)
class ProofResult:
    """Result of a proof: the promise, counts, and violations."""

    name: str
    promise: str
    counts: Mapping[str, int]
    violations: tuple[str, ...]
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether something was tried and no violation was seen."""
        return bool(self.counts) and not self.violations

    def to_json(self) -> dict[str, Any]:
        """All fields by name, and the verdict."""
        return {
            "name": self.name,
            "verdict": "kept" if self.is_kept else "broken",
            "promise": self.promise,
            "counts": dict(self.counts),
            "violations": list(self.violations),
            "seconds": round(self.seconds, 1),
        }


TELL_SECONDS = 10.0

PROOFS: MappingProxyType[str, tuple[str, Callable[[Task], None]]] = MappingProxyType(
    {
        "atomic-create": (ATOMIC_CREATE_PROMISE, create_atomically),
        "listing": (LISTING_PROMISE, list_all),
        "concurrency": (CONCURRENCY_PROMISE, commit_at_once),
        "kill": (DURABILITY_PROMISE, kill_writers),
        "crash": (CRASH_PROMISE, crashes),
        "errors": (ERROR_PROMISE, errors),
        "damage": (DAMAGE_PROMISE, damage_files),
        "clocks": (CLOCK_SKEW_PROMISE, skew_clocks),
        "values": (VALUES_PROMISE, keep_values),
        "isolation": (ISOLATION_PROMISE, isolate),
        "time-travel": (TRAVEL_PROMISE, travel),
        "restore": (RESTORE_PROMISE, restore),
        "gc": (GARBAGE_PROMISE, collect_garbage),
        "erase": (ERASURE_PROMISE, erase_rows),
    }
)


def select_proofs(only: Sequence[str]) -> tuple[str, ...]:
    """The proofs that are named, in their own order; all of them if none is."""
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
