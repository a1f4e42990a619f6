"""Processes that commit are killed by SIGKILL: what they had acknowledged is there, and nothing by half."""

from __future__ import annotations

import time
from itertools import count
from multiprocessing.connection import Connection
from random import Random

from freezeframe.proof.child import children
from freezeframe.proof.model import Content, content, frame
from freezeframe.proof.place import Place
from freezeframe.proof.task import Task

PROMISE = "An acknowledged commit survives kill -9; one under way is there whole or not at all."
_KILLS = 6
_STREAMS = ("Account", "Lead")
_KEYS = 12


def run(task: Task) -> None:
    """See the module."""
    for place, random in task.rounds():
        for _ in range(_KILLS):
            acknowledged = _kill_one(place, random)
            tenant = place.tenant()
            found = tenant.version
            task.require(
                found >= acknowledged, f"version {acknowledged} was acknowledged; {found} is the newest"
            )
            task.require(found <= acknowledged + 1, f"version {found} was never begun")
            task.require(
                content(tenant) == expected_after(found), f"version {found} is not what was committed"
            )
            task.counts.update(kills=1, in_flight_kept=int(found > acknowledged))
        task.counts["commits"] += max(0, place.tenant().version + 1)


def rows_at(version: int) -> dict[str, int]:
    """The rows that the commit of a version brings to each of its streams."""
    return {f"key-{key}": version for key in range(version % 3, _KEYS, 3)} | {f"new-{version}": version}


def expected_after(version: int) -> Content:
    """What the tenant holds at a version."""
    rows: dict[str, int] = {}
    for one in range(version + 1):
        rows |= rows_at(one)
    if version < 0:
        return {}, {}
    return {name: dict(rows) for name in _STREAMS}, {"state.json": str(version).encode()}


def _kill_one(place: Place, random: Random) -> int:
    """Let a process commit, and kill it in one of its next commits; the last version it acknowledged."""
    with children(_commit_for_ever, [(place,)]) as (child,):
        started = child.hear()
        acknowledged: int = child.hear()
        seconds = random.uniform(0, 2) * (time.monotonic() - started)
        ends = time.monotonic() + seconds
        while (rest := ends - time.monotonic()) > 0:
            acknowledged = max(acknowledged, child.hear(rest) or -1)
        last: int = max([acknowledged, *(one for one in child.kill() if isinstance(one, int))])
        return last


def _commit_for_ever(connection: Connection, place: Place) -> None:
    tenant = place.tenant()
    connection.send(time.monotonic())
    for version in count(tenant.version + 1):
        with tenant.job() as job:
            for name in _STREAMS:
                job.stream(name).update(frame(rows_at(version)), key="Id")
            job.files.write("state.json", str(version).encode())
        connection.send(job.receipt.tenant_version)
