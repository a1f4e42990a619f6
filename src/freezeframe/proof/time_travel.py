"""Every listed version is read again and restored, by number and by time, streams and files together."""

from __future__ import annotations

from random import Random

from freezeframe.proof.model import Content, content, frame
from freezeframe.proof.place import Place
from freezeframe.proof.task import Task

TRAVEL_PROMISE = (
    "Every listed version can be read again, by number or by time, all streams and files of one moment."
)
RESTORE_PROMISE = "Every listed version can be restored, exactly, and nothing that came since is lost."
_JOBS = 12
_STREAMS = ("Account", "Lead", "Contact@crm")


def travel(task: Task) -> None:
    """Read each version as a newcomer, in no order."""
    for place, random in task.rounds():
        held = _versions(place, random)
        tenant = place.tenant()
        history = list(tenant.history())
        random.shuffle(history)
        task.require(len(history) == len(held), f"{len(history)} of {len(held)} versions are listed")
        for entry in history:
            for point in (entry.version, entry.timestamp):
                found = content(tenant.at(point))
                task.require(
                    found == held[entry.version], f"version {entry.version} at {point} reads otherwise"
                )
                task.counts["reads"] += 1
        task.counts["versions"] += len(held)


def restore(task: Task) -> None:
    """Restore each version, and read what was the newest before as well."""
    for place, random in task.rounds():
        held = _versions(place, random)
        for version in random.sample(sorted(held), len(held)):
            tenant = place.tenant()
            newest = tenant.version
            tenant.restore(version)
            after = place.tenant()
            task.require(content(after) == held[version], f"version {version} restored reads otherwise")
            task.require(content(after.at(newest)) == held[newest], f"version {newest} is lost by a restore")
            held[after.version] = content(after)
            task.counts["restores"] += 1


def _versions(place: Place, random: Random) -> dict[int, Content]:
    """Random jobs, and what the tenant held after each."""
    held: dict[int, Content] = {}
    streams: dict[str, dict[str, int]] = {}
    files: dict[str, bytes] = {}
    tenant = place.tenant(checkpoint_interval=4)
    for number in range(_JOBS):
        with tenant.job() as job:
            for name in random.sample(_STREAMS, 2):
                rows = {f"key-{random.randrange(8)}": number * 100 + one for one in range(3)}
                override = random.randrange(5) == 0
                job.stream(name).update(frame(rows), key="Id", override=override)
                streams[name] = rows if override else streams.get(name, {}) | rows
            path = f"maps/{random.randrange(3)}.json"
            files[path] = random.randbytes(20)
            job.files.write(path, files[path])
        held[tenant.version] = ({name: dict(rows) for name, rows in streams.items()}, dict(files))
    return held
