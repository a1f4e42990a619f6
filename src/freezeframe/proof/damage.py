"""Each file of a tenant, damaged in each way: a read gives the right rows, or an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from freezeframe.errors import FreezeframeError
from freezeframe.proof.model import Content, content, frame
from freezeframe.proof.place import Place, tenant_on
from freezeframe.proof.task import Task
from freezeframe.storage import MemoryStorage

PROMISE = "Damage of any file is told as an error, or does not matter; it is never returned as rows."
_JOBS = 9
_FLIPS = 4
_NUMBER = re.compile(r"\d{4,}|[0-9a-f-]{12,}(?![a-z_])")


def run(task: Task) -> None:
    """Damage copies, in memory, of the bytes that the storage returns; a file of each kind in each round."""
    for place, random in task.rounds():
        held = _fill_tenant(place)
        storage = place.storage()
        files = {one.name: storage.read(one.name) for one in storage.list_below("")}
        for name in _one_of_each_kind(sorted(files), random):
            for way, damaged in _damages(files[name], random):
                copy = MemoryStorage()
                for other, whole in files.items():
                    if other != name or damaged is not None:
                        copy.put_if_absent(other, damaged if other == name and damaged is not None else whole)
                _read_all(task, copy, held, f"{name}, {way}")
            task.counts["files"] += 1


def _one_of_each_kind(names: list[str], random: Random) -> list[str]:
    random.shuffle(names)
    return sorted({_NUMBER.sub("", name): name for name in names}.values())


def _fill_tenant(place: Place) -> dict[int, Content]:
    """A tenant with commits, checkpoints, rows, deletion vectors and blobs; what it held at each version."""
    held = {}
    tenant = place.tenant(checkpoint_interval=4, vectors_from_bytes=0)
    for number in range(_JOBS):
        with tenant.job() as job:
            rows = {f"key-{key}": number for key in range(number % 4, 40, 4)}
            job.stream("Account").update(frame(rows), key="Id")
            job.files.write("state.json", f"state {number}".encode())
        held[tenant.version] = content(place.tenant())
    return held


def _damages(whole: bytes, random: Random) -> Iterator[tuple[str, bytes | None]]:
    yield "removed", None
    yield "emptied", b""
    yield "cut off", whole[: random.randrange(max(1, len(whole)))]
    yield "zeroed", bytes(len(whole))
    for _ in range(_FLIPS if whole else 0):
        place, bit = random.randrange(len(whole)), random.randrange(8)
        flipped = bytes([whole[place] ^ (1 << bit)])
        yield f"bit {bit} of byte {place} flipped", whole[:place] + flipped + whole[place + 1 :]


def _read_all(task: Task, copy: MemoryStorage, held: dict[int, Content], damage: str) -> None:
    """Read the newest version and an older one, as a newcomer."""
    task.counts["damages"] += 1
    newest = max(held)
    try:
        tenant = tenant_on(copy)
        found = content(tenant)
        task.require(
            tenant.version == newest and found == held[newest], f"{damage}: other rows, and no error"
        )
        seen = content(tenant.at(newest // 2))
        task.require(seen == held[newest // 2], f"{damage}: other rows of an older version, and no error")
    except FreezeframeError:
        task.counts["told"] += 1
