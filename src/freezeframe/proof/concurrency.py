"""Processes commit to one stream at once while others read: none is lost, doubled, or seen out of order."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection

from freezeframe.errors import ConflictError
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


def run(task: Task) -> None:
    """See the module."""
    for place, _ in task.rounds():
        place.tenant().stream("Account").update(frame({"first": 0}), key="Id")
        first = Operation("first", "commit", 0.0, 0.0, place.tenant().version, {"first": 0})
        processes = [(place, number, number < _WRITERS) for number in range(_WRITERS + _READERS)]
        answers = race(_take_part, processes)
        history = [first, *(one for answer in answers for one in answer or ())]
        tenant = place.tenant()
        last = rows_of(tenant.stream("Account").read(as_="arrow"))
        now = time.monotonic()
        history.append(Operation("the last reader", "read", now, now, tenant.version, last))
        for seen in violations(history):
            task.report(seen)
        acknowledged = sum(one.kind == "commit" for one in history) - 1
        task.require(acknowledged == _WRITERS * _COMMITS, f"{acknowledged} commits were acknowledged")
        task.counts.update(commits=acknowledged, reads=len(history) - acknowledged - 1)


def _take_part(connection: Connection, place: Place, number: int, commits: bool) -> None:  # noqa: FBT001 - sent
    wait_for_start(connection)
    history = []
    for step in range(_COMMITS):
        rows = {f"{number}-{step}": step, _SHARED: number * 1000 + step}
        history.append(_commit(place, number, rows) if commits else _read(place, number))
        if commits:
            history.append(_read(place, number))
    connection.send(history)


def _commit(place: Place, number: int, rows: dict[str, int]) -> Operation:
    began = time.monotonic()
    stream = place.tenant().stream("Account")
    while True:
        try:
            receipt = stream.update(frame(rows), key="Id")
        except ConflictError:
            continue
        return Operation(f"writer {number}", "commit", began, time.monotonic(), receipt.version, rows)


def _read(place: Place, number: int) -> Operation:
    began = time.monotonic()
    tenant = place.tenant()
    view = tenant.at(tenant.version)
    rows = rows_of(view.stream("Account").read(as_="arrow"))
    return Operation(f"reader {number}", "read", began, time.monotonic(), view.version, rows)
