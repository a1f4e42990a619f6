"""Processes commit to one stream at once while others read: none is lost, doubled, or seen out of order."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection

from freezeframe.errors import ConflictError, TryAgain
from freezeframe.proof.child import race, wait_for_start
from freezeframe.proof.job_history import Operation, violations
from freezeframe.proof.model import frame, rows_of
from freezeframe.proof.place import Place
from freezeframe.proof.task import Task

PROMISE = (
    "Concurrent jobs of a tenant are strictly serialisable: no commit is lost, doubled or seen too late."
)
_WRITERS = 3
_READERS = 1
_COMMITS = 10
_SHARED = "shared"
_PATIENCE_SECONDS = 60.0


def run(task: Task) -> None:
    """See the module."""
    for place, _ in task.rounds():
        first = _insist(partial(_commit, place, "first", {"first": 0}))
        processes = [(place, number, number < _WRITERS) for number in range(_WRITERS + _READERS)]
        answers = race(_take_part, processes)
        last = _insist(partial(_read, place, len(processes)))
        history = [first, *(one for answer in answers for one in answer or ()), last]
        for seen in violations(history):
            task.report(seen)
        acknowledged = sum(one.kind == "commit" for one in history) - 1
        task.require(acknowledged == _WRITERS * _COMMITS, f"{acknowledged} commits were acknowledged")
        repeated = sum(one.repeated for one in history)
        task.counts.update(commits=acknowledged, reads=len(history) - acknowledged - 1, repeated=repeated)


def _take_part(connection: Connection, place: Place, number: int, commits: bool) -> None:  # noqa: FBT001 - sent
    wait_for_start(connection)
    history = []
    for step in range(_COMMITS):
        rows = {f"{number}-{step}": step, _SHARED: number * 1000 + step}
        if commits:
            history.append(_insist(partial(_commit, place, f"{number}-{step}", rows)))
        history.append(_insist(partial(_read, place, number)))
    connection.send(history)


def _insist(act: Callable[[], Operation]) -> Operation:
    """What ``act`` did in the end: a storage may be silent for a moment, and that is no broken promise."""
    began, repeated = time.monotonic(), 0
    while True:
        try:
            return replace(act(), began=began, ended=time.monotonic(), repeated=repeated)
        except TryAgain as error:
            if time.monotonic() - began > _PATIENCE_SECONDS:
                raise
            # A conflict is what the proof is about; all else is a failure that a storage may have.
            repeated += not isinstance(error, ConflictError)


def _commit(place: Place, job_id: str, rows: dict[str, int]) -> Operation:
    # By an id: where the answer of a commit was lost, the job that comes again finds it done.
    with place.tenant().job(job_id) as job:
        job.stream("Account").update(frame(rows), key="Id")
    return Operation(f"job {job_id}", "commit", 0.0, 0.0, job.receipt.tenant_version, rows)


def _read(place: Place, number: int) -> Operation:
    tenant = place.tenant()
    view = tenant.at(tenant.version)
    rows = rows_of(view.stream("Account").read(as_="arrow"))
    return Operation(f"reader {number}", "read", 0.0, 0.0, view.version, rows)
