"""``gc`` runs while another process commits and reads: no read within the grace period is broken."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection

from freezeframe.errors import FreezeframeError
from freezeframe.proof.child import children
from freezeframe.proof.durability import expected_after, rows_at
from freezeframe.proof.model import content, frame
from freezeframe.proof.place import Place
from freezeframe.proof.task import Task
from freezeframe.store import Tenant

PROMISE = "gc deletes what retention lets go and nothing else, beside readers and writers."
_COMMITS = 30
_KEPT = 3
_GRACE_SECONDS = 5.0


def run(task: Task) -> None:
    """A process reads without end, this one commits and calls ``gc``; at the end the files are counted."""
    for place, _ in task.rounds():
        tenant = place.tenant(gc_grace_seconds=_GRACE_SECONDS)
        tenant.set_retention(keep_versions=_KEPT)
        _commit(tenant, 0)
        with children(_read_for_ever, [(place,)]) as (reader,):
            for number in range(1, _COMMITS):
                _commit(tenant, number)
                task.counts["files_deleted"] += tenant.gc().files
                while (seen := reader.hear(0)) is not None:
                    _judge(task, seen)
            _judge(task, reader.hear() or "the reader says nothing")
        collector = place.tenant()
        task.counts["files_deleted"] += collector.gc().files + collector.gc().files
        newcomer = place.tenant()
        task.require(
            content(newcomer) == expected_after(_COMMITS - 1), "after gc the newest version reads otherwise"
        )
        kept = [entry.version for entry in newcomer.history()]
        for version in kept:
            content(newcomer.at(version))
        task.require(task.counts["files_deleted"] > _COMMITS, "gc deleted less than the commits replaced")
        task.counts.update(commits=_COMMITS, versions_kept=len(kept))


def _judge(task: Task, seen: str | int) -> None:
    if isinstance(seen, int):
        task.counts["reads"] += seen
    else:
        task.report(f"a reader was told: {seen}")


def _commit(tenant: Tenant, number: int) -> None:
    with tenant.job() as job:
        for name in ("Account", "Lead"):
            job.stream(name).update(frame(rows_at(number)), key="Id")
        job.files.write("state.json", str(number).encode())


def _read_for_ever(connection: Connection, place: Place) -> None:
    """Open the newest version, wait, and then read it: less long than the grace period."""
    while True:
        try:
            tenant = place.tenant()
            view = tenant.at(tenant.version)
            time.sleep(_GRACE_SECONDS / 100)
            streams, files = content(view)
            number = int(files["state.json"])
            is_right = (streams, files) == expected_after(number)
            connection.send(1 if is_right else f"version {view.version} reads otherwise")
        except FreezeframeError as error:
            connection.send(f"{error.error_code}: {error}")
