"""Proofs about writers in processes of their own: concurrency, and kills."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, pairwise
from multiprocessing.connection import Connection
from random import Random
from typing import Literal

from freezeframe.errors import ConflictError, TryAgain
from freezeframe.proof.model import Content, Step, carry_out, content, frame, numbered, rows_of
from freezeframe.proof.task import ProofFolder, Task, children, race, wait_for_start


@dataclass(frozen=True, slots=True)
class Operation:
    """An acknowledged commit with its rows, or a read with the rows that it returned.

    ``began`` and ``ended`` are of a clock that all processes share. ``repeated`` counts tries that failed.
    """

    process: str
    kind: Literal["commit", "read"]
    began: float
    ended: float
    version: int
    rows: Mapping[str, object]
    repeated: int = 0


def violations(operations: Iterable[Operation]) -> Iterator[str]:
    """Yield a sentence for each violation in a history of upserts that began with an empty tenant."""
    history = list(operations)
    commits = sorted((item for item in history if item.kind == "commit"), key=lambda item: item.version)
    for earlier, later in pairwise(commits):
        if earlier.version == later.version:
            yield f"version {later.version} was given to {earlier.process} and to {later.process}"
        elif earlier.version + 1 != later.version:
            yield f"the versions between {earlier.version} and {later.version} are nobody's"
    yield from _out_of_order(history)
    yield from _wrong_reads([item for item in history if item.kind == "read"], commits)


def _out_of_order(history: list[Operation]) -> Iterator[str]:
    """Find operations with a lower version than an operation that ended before they began."""
    by_end = iter(sorted(history, key=lambda item: item.ended))
    ended = next(by_end, None)
    newest: Operation | None = None
    for operation in sorted(history, key=lambda item: item.began):
        while ended is not None and ended.ended < operation.began:
            if newest is None or ended.version > newest.version:
                newest = ended
            ended = next(by_end, None)
        least = -1 if newest is None else newest.version + (operation.kind == "commit")
        if operation.version < least and newest is not None:
            kind = "committed as" if operation.kind == "commit" else "read"
            done = f"{operation.process} {kind} {operation.version}"
            yield f"{done} after {newest.process} had seen {newest.version}"


def _wrong_reads(reads: list[Operation], commits: list[Operation]) -> Iterator[str]:
    rows: dict[str, object] = {}
    rest = iter(commits)
    upcoming = next(rest, None)
    for read in sorted(reads, key=lambda item: item.version):
        while upcoming is not None and upcoming.version <= read.version:
            rows |= upcoming.rows
            upcoming = next(rest, None)
        if dict(read.rows) != rows:
            wrong = sorted(key for key in {*rows, *read.rows} if rows.get(key) != read.rows.get(key))
            yield f"{read.process} read version {read.version} with other rows than committed: {wrong[:3]}"


_WRITERS = 3
_READERS = 1
_COMMITS = 10
_SHARED = "shared"
_PATIENCE_SECONDS = 60.0


def commit_at_once(task: Task) -> None:
    """Let processes commit and read at once, and check their history."""
    for folder, _ in task.rounds():
        first = _insist(partial(_commit, folder, "first", {"first": 0}))
        processes = [(folder, number, number < _WRITERS) for number in range(_WRITERS + _READERS)]
        answers = race(_take_part, processes)
        last = _insist(partial(_read, folder, len(processes)))
        history = [first, *(item for answer in answers for item in answer or ()), last]
        for seen in violations(history):
            task.report(seen)
        acknowledged = sum(item.kind == "commit" for item in history) - 1
        task.require(acknowledged == _WRITERS * _COMMITS, f"{acknowledged} commits were acknowledged")
        repeated = sum(item.repeated for item in history)
        task.counts.update(commits=acknowledged, reads=len(history) - acknowledged - 1, repeated=repeated)


def _take_part(connection: Connection, folder: ProofFolder, number: int, commits: bool) -> None:  # noqa: FBT001 - sent
    wait_for_start(connection)
    history = []
    for step in range(_COMMITS):
        rows = {f"{number}-{step}": step, _SHARED: number * 1000 + step}
        if commits:
            history.append(_insist(partial(_commit, folder, f"{number}-{step}", rows)))
        history.append(_insist(partial(_read, folder, number)))
    connection.send(history)


def _insist(act: Callable[[], Operation]) -> Operation:
    """Repeat ``act`` until it succeeds: a storage may fail for a moment without breaking a promise."""
    began, repeated = time.monotonic(), 0
    while True:
        try:
            return replace(act(), began=began, ended=time.monotonic(), repeated=repeated)
        except TryAgain as error:
            if time.monotonic() - began > _PATIENCE_SECONDS:
                raise
            # Conflicts are expected; other errors are failures of the storage.
            repeated += not isinstance(error, ConflictError)


def _commit(folder: ProofFolder, job_id: str, rows: dict[str, int]) -> Operation:
    # With an id, a job repeated after a lost response finds that it is committed.
    with folder.tenant().job(job_id) as job:
        job.stream("Account").update(frame(rows), key="Id")
    return Operation(f"job {job_id}", "commit", 0.0, 0.0, job.receipt.tenant_version, rows)


def _read(folder: ProofFolder, number: int) -> Operation:
    tenant = folder.tenant()
    view = tenant.at(tenant.version)
    rows = rows_of(view.stream("Account").read(as_="arrow").to_pydict())
    return Operation(f"reader {number}", "read", 0.0, 0.0, view.version, rows)


_KILLS = 6
_KEYS = 12


def kill_writers(task: Task) -> None:
    """Kill processes in their commits, and compare what is left."""
    for folder, random in task.rounds():
        for _ in range(_KILLS):
            acknowledged = _kill_one(folder, random)
            tenant = folder.tenant()
            found = tenant.version
            task.require(
                found >= acknowledged, f"version {acknowledged} was acknowledged; {found} is the newest"
            )
            task.require(found <= acknowledged + 1, f"version {found} was never begun")
            task.require(
                content(tenant) == expected_after(found), f"version {found} is not what was committed"
            )
            task.counts.update(kills=1, in_flight_kept=int(found > acknowledged))
        task.counts["commits"] += max(0, folder.tenant().version + 1)


def rows_at(version: int) -> dict[str, int]:
    """Return the rows that the commit of a version upserts into each stream."""
    return {f"key-{key}": version for key in range(version % 3, _KEYS, 3)} | {f"new-{version}": version}


def job_of(version: int) -> Step:
    """Return the job that commits a version."""
    return Step("job", numbered(version, rows_at(version)))


def expected_after(version: int) -> Content:
    """Return what the tenant holds at a version."""
    held: Content = ({}, {})
    for item in range(version + 1):
        held = job_of(item).expected(held, {})
    return held


def _kill_one(folder: ProofFolder, random: Random) -> int:
    """Kill a process during a commit, and return the last version that it acknowledged."""
    with children(_commit_for_ever, [(folder,)]) as (child,):
        started = child.hear()
        acknowledged: int = child.hear()
        seconds = random.uniform(0, 2) * (time.monotonic() - started)
        ends = time.monotonic() + seconds
        while (rest := ends - time.monotonic()) > 0:
            acknowledged = max(acknowledged, child.hear(rest) or -1)
        last: int = max([acknowledged, *(item for item in child.kill() if isinstance(item, int))])
        return last


def _commit_for_ever(connection: Connection, folder: ProofFolder) -> None:
    tenant = folder.tenant()
    connection.send(time.monotonic())
    for version in count(tenant.version + 1):
        with tenant.job() as job:
            carry_out(job, job_of(version).value)
        connection.send(job.receipt.tenant_version)
