"""Processes race to create the same names: one wins each, its bytes stay, and none sees half a file."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from multiprocessing.connection import Connection

from freezeframe.errors import OutcomeUnknown
from freezeframe.proof.child import race, wait_for_start
from freezeframe.proof.place import Place
from freezeframe.proof.task import Task
from freezeframe.storage import Storage

PROMISE = "Of the writers that create a name, exactly one succeeds, and nobody sees half of its bytes."
_WRITERS = 4
_NAMES = 40
_DIGEST_BYTES = 32
_BYTES = 60_000


def run(task: Task) -> None:
    """See the module."""
    for place, _ in task.rounds():
        names = [f"race/{number:06}" for number in range(_NAMES)]
        answers = race(_create_all, [(place, names)] * _WRITERS)
        storage = place.storage()
        winners = Counter(name for won, _, _ in answers for name in won)
        digests = {name: digest for won, _, _ in answers for name, digest in won.items()}
        for name in names:
            task.require(winners[name] == 1, f"{name}: {winners[name]} of {_WRITERS} writers created it")
            found = _digest(storage, name)
            task.require(
                found == digests.get(name), f"{name}: the bytes of the writer that succeeded are gone"
            )
        for torn in (name for _, half, _ in answers for name in half):
            task.report(f"{torn}: a reader was given half of its bytes")
        task.counts.update(
            names=_NAMES, creates=_NAMES * _WRITERS, reads=sum(reads for _, _, reads in answers)
        )


def _create_all(connection: Connection, place: Place, names: list[str]) -> None:
    """Create each name, and read the next one, which others may be writing."""
    storage = place.storage()
    won: dict[str, str] = {}
    torn, reads = [], 0
    wait_for_start(connection)
    for number, name in enumerate(names):
        body = uuid.uuid4().bytes * (_BYTES // 16)
        digest = hashlib.sha256(body).digest()
        if _create(storage, name, digest + body):
            won[name] = digest.hex()
        for other in names[number : number + 2]:
            reads += 1
            if _digest(storage, other) == "":
                torn.append(other)
    connection.send((won, torn, reads))


def _create(storage: Storage, name: str, content: bytes) -> bool:
    try:
        storage.put_if_absent(name, content)
    except FileExistsError:
        return False
    except OutcomeUnknown:
        return storage.read(name) == content
    return True


def _digest(storage: Storage, name: str) -> str | None:
    """The digest that the file begins with; "" if its bytes have another, None if there is no file."""
    try:
        content = storage.read(name)
    except FileNotFoundError:
        return None
    digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return digest.hex() if hashlib.sha256(body).digest() == digest and len(body) == _BYTES // 16 * 16 else ""
