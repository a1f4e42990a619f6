"""The proofs by name, their promises, and their run."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from freezeframe.errors import InvalidOption
from freezeframe.proof.storages import crashes, create_atomically, errors, list_all, skew_clocks
from freezeframe.proof.task import ProofFolder, Task
from freezeframe.proof.tenants import (
    collect_garbage,
    damage_files,
    erase_rows,
    isolate,
    keep_values,
    restore,
    travel,
)
from freezeframe.proof.writers import commit_at_once, kill_writers


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
        """Return all fields by name, and the verdict."""
        return {
            "name": self.name,
            "verdict": "kept" if self.is_kept else "broken",
            "promise": self.promise,
            "counts": dict(self.counts),
            "violations": list(self.violations),
            "seconds": round(self.seconds, 1),
        }


TELL_SECONDS = 10.0

PROMISES = {
    "atomic-create": (
        "Of the writers that create a name, exactly one succeeds, and no reader sees a part of its bytes. "
    ),
    "listing": "A listing shows what was created and deleted before it, in the order of the names.",
    "concurrency": (
        "Concurrent jobs of a tenant are strictly serialisable: no commit is lost, doubled or seen too late."
    ),
    "kill": "An acknowledged commit survives kill -9; one under way is there whole or not at all.",
    "crash": "A crash between two storage calls leaves the old content or the new, without a repair.",
    "errors": (
        "After a failed storage call acknowledged changes exist, failed ones do not, and none is partial."
    ),
    "damage": "Damage of any file raises an error or has no effect; it is never returned as rows.",
    "clocks": (
        "Clocks that are wrong change no order: times rise with versions, and a moment finds its version."
    ),
    "values": "A value comes back exactly as it went in, or is refused; in a time zone, as the same instant.",
    "isolation": "A tenant sees and changes its own directory only, whatever the names that it is given.",
    "time-travel": (
        "Every listed version can be read again, by number or by time, all streams and files of one moment."
    ),
    "restore": "Every listed version can be restored, exactly, and nothing that came since is lost.",
    "gc": "gc deletes what retention lets go and nothing else, beside readers and writers.",
    "erase": "An erased row is in no version that can be read, and its key in no byte that is left.",
}

PROOFS: Mapping[str, Callable[[Task], None]] = {
    "atomic-create": create_atomically,
    "listing": list_all,
    "concurrency": commit_at_once,
    "kill": kill_writers,
    "crash": crashes,
    "errors": errors,
    "damage": damage_files,
    "clocks": skew_clocks,
    "values": keep_values,
    "isolation": isolate,
    "time-travel": travel,
    "restore": restore,
    "gc": collect_garbage,
    "erase": erase_rows,
}
"""What tries each promise, in the order in which they are tried."""


def select_proofs(only: Sequence[str]) -> tuple[str, ...]:
    """Return the named proofs in the order of ``PROOFS``; all of them if no name is given."""
    unknown = sorted({*only} - {*PROOFS})
    if unknown:
        raise InvalidOption(
            f"There is no proof named {', '.join(unknown)}.", remedy=f"Choose from {', '.join(PROOFS)}."
        )
    return tuple(name for name in PROOFS if not only or name in only)


def prove(
    folder: ProofFolder,
    names: Sequence[str],
    seed: int,
    seconds: float = 0.0,
    tell: Callable[[str, dict[str, int]], None] = lambda *_: None,
    *,
    tell_seconds: float = TELL_SECONDS,
) -> Iterator[ProofResult]:
    """Run the proofs one after the other, and yield the result of each.

    Each proof has one round, and more within its share of the ``seconds`` that are left. A thread passes the
    counts of the running proof to ``tell`` every ``tell_seconds``.
    """
    logger = logging.getLogger("freezeframe")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # log lines about planned faults would hide findings
    ends = time.monotonic() + seconds
    try:
        for number, name in enumerate(names):
            share = max(0.0, ends - time.monotonic()) / (len(names) - number)
            task = Task(folder.within(name), f"{seed}/{name}", share)
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
    started = time.monotonic()
    try:
        PROOFS[name](task)
    except Exception as error:  # noqa: BLE001 - any error means that the promise was not kept
        task.violations.append(f"ended by {type(error).__name__}: {error}")
    return ProofResult(
        name, PROMISES[name], dict(task.counts), tuple(task.violations), time.monotonic() - started
    )
