"""Each file of a tenant, damaged in each way: a read gives the right rows, or an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random

from freezeframe.errors import FreezeframeError
from freezeframe.proof.model import Content, content, frame
from freezeframe.proof.place import Place, tenant_on
from freezeframe.proof.task import Task
from freezeframe.storage import MemoryStorage, Storage
from freezeframe.storage.faulty import FaultyStorage

PROMISE = "Damage of any file is told as an error, or does not matter; it is never returned as rows."
_JOBS = 9
_FLIPS = 4
_AT_ONCE = 8
_Damage = tuple[str, str, bytes | None]
"""The file, the way, and what is left of its bytes."""
_NUMBER = re.compile(r"\d{4,}|[0-9a-f-]{12,}(?![a-z_])")


def run(task: Task) -> None:
    """Damage copies, in memory, of the bytes that the storage returns; a file of each kind in each round."""
    for place, random in task.rounds():
        held = _fill_tenant(place)
        storage = place.storage()
        files = {one.name: storage.read(one.name) for one in storage.list_below("")}
        whole = FaultyStorage(_copy(files))
        task.require(not _read_all(task, whole, held, "none"), "what was not damaged could not be read")
        needed = {call.name for call in whole.calls if call.verb == "read"}
        damages = [
            (name, way, damaged)
            for name in _one_of_each_kind(sorted(files), needed, random)
            for way, damaged in _damages(files[name], random)
        ]
        told = _told(task, files, damages, held)
        task.counts.update(files=len({one[0] for one in damages}), damages=len(damages), told=told)


def _told(task: Task, files: Mapping[str, bytes], damages: list[_Damage], held: dict[int, Content]) -> int:
    """How many damages were told as an error."""

    def is_told(damage: _Damage) -> bool:
        name, way, damaged = damage
        return _read_all(task, _copy({**files, name: damaged}), held, f"{name}, {way}")

    # Side by side: a reader waits for a while before it takes a damaged hint for what it is.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return sum(pool.map(is_told, damages))


def _copy(files: Mapping[str, bytes | None]) -> MemoryStorage:
    copy = MemoryStorage()
    for name, whole in files.items():
        if whole is not None:
            copy.put_if_absent(name, whole)
    return copy


def _one_of_each_kind(names: list[str], needed: set[str], random: Random) -> list[str]:
    """One of those that are needed where there are any: damage of the others does not matter."""
    random.shuffle(names)
    names.sort(key=needed.__contains__)
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


def _read_all(task: Task, copy: Storage, held: dict[int, Content], damage: str) -> bool:
    """Read the newest version and an older one, as a newcomer; whether damage was told as an error."""
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
        return True
    return False
