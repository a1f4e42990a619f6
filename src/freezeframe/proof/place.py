"""Where a proof works: its storages, tenants and processes, and what it counts."""

from __future__ import annotations

import multiprocessing
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.connection import Connection
from random import Random
from typing import Any

import pyarrow as pa

from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import FreezeframeError, OutcomeUnknown, StorageUnavailable
from freezeframe.script.tenants import storage_at
from freezeframe.settings import Settings, load_settings
from freezeframe.storage import PrefixStorage, Storage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.job import Job
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant import TenantView

_SCRATCH = "freezeframe-prove-"


def open_storage(root: str) -> Storage:
    """The storage at a directory or an ``s3://bucket/prefix``, with the user's settings."""
    return storage_at(root, load_settings())


@dataclass(frozen=True, slots=True)
class Place:
    """The folder ``folder`` of the storage that ``opener`` makes of ``root``; can be sent to other processes.

    ``opener`` is a function of a module; tests pass one whose storage breaks a promise.
    """

    root: str
    folder: str
    opener: Callable[[str], Storage] = open_storage

    def storage(self) -> Storage:
        """The folder as a storage, opened anew."""
        return PrefixStorage(self.opener(self.root), self.folder)

    def within(self, name: str) -> Place:
        """A folder in it."""
        return replace(self, folder=f"{self.folder}/{name}")

    def tenant(self, **options: Any) -> Tenant:
        """The folder as a tenant's directory, opened anew."""
        return tenant_on(self.storage(), **options)


def tenant_on(storage: Storage, engine: TableEngine | None = None, **options: Any) -> Tenant:
    """A tenant on any storage, without Spark but with ``engine``; ``options`` are settings."""
    return Tenant(storage, engine or ArrowEngine(storage), _settings(tuple(sorted(options.items()))))


def store_tenant_on(storage: Storage, **options: Any) -> Tenant:
    """The tenant of a store on any storage, whose every job asks the store's registry; made if need be."""
    store = Store(storage, ArrowEngine(storage), _settings(tuple(sorted(options.items()))))
    return store.tenant("tenant", create=True)


@cache
def _settings(options: tuple[tuple[str, Any], ...]) -> Settings:
    """Made once: they look through the environment each time, which takes longer than to open a tenant."""
    chosen: dict[str, Any] = {"engine": "auto", "gc_grace_seconds": 0, "lease_dead_seconds": 0}
    return Settings(**chosen | dict(options))


@contextmanager
def scratch(root: str, opener: Callable[[str], Storage] = open_storage) -> Iterator[Place]:
    """A new folder of the storage, which is deleted with all that is in it when the block ends."""
    place = Place(root, f"{_SCRATCH}{uuid.uuid4().hex[:12]}", opener)
    try:
        place.storage().put_if_absent("begun", b"")
        place.storage().delete("begun", durable=False)
    except OutcomeUnknown as unknown:
        raise StorageUnavailable(
            f"Nothing could be written to {root}.",
            cause=unknown.cause,
            remedy="Check that it is there, the network and the credentials.",
        ) from unknown
    try:
        yield place
    finally:
        with suppress(FreezeframeError, OSError):  # what is left does not hide what was seen
            clear(place)


def clear(place: Place) -> None:
    """Delete all that is below the place."""
    storage = place.storage()
    for status in list(storage.list_below("")):
        storage.delete(status.name, durable=False)
    storage.prune("")


Rows = Mapping[str, int]
Content = tuple[dict[str, dict[str, int]], dict[str, bytes]]


def frame(rows: Rows) -> pa.Table:
    """Rows of the columns ``Id`` and ``v``."""
    return pa.table({"Id": pa.array(list(rows), pa.string()), "v": pa.array(list(rows.values()), pa.int64())})


def rows_of(table: pa.Table) -> dict[str, int]:
    """The rows by ``Id``; one that is there twice is told apart, so that it equals nothing."""
    found: dict[str, int] = {}
    for key, value in zip(table["Id"].to_pylist(), table["v"].to_pylist(), strict=True):
        found[f"{key} again" if key in found else key] = value
    return found


def content(reader: Tenant | TenantView | Job) -> Content:
    """All rows of all streams and the bytes of all files."""
    streams = {name: rows_of(reader.stream(name).read(as_="arrow")) for name in reader.streams()}
    return streams, {item.path: reader.files.read(item.path) for item in reader.files.list(recursive=True)}


_PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class _Failure:
    cause: str


class Child:
    """A process that runs ``target(connection, *arguments)``."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["freezeframe.proof"])
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, target, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def hear(self, seconds: float = _PATIENCE_SECONDS) -> Any:
        """What the process says next; None if it says nothing in that time."""
        if not self._connection.poll(seconds):
            return None
        try:
            said = self._connection.recv()
        except (EOFError, ConnectionResetError):
            said = _Failure("It ended without a word.")
        if isinstance(said, _Failure):
            raise StorageUnavailable(
                "A process of the proof ended before its work was done.",
                cause=said.cause,
                remedy="Mend what it says, or report it.",
            )
        return said

    def say(self, value: Any) -> None:
        """Send the process a message."""
        self._connection.send(value)

    def kill(self) -> list[Any]:
        """Kill the process by SIGKILL; what it had said that was not heard yet."""
        self._process.kill()
        self._process.join()
        heard = []
        try:
            while self._connection.poll(0):
                heard.append(self._connection.recv())
        except (EOFError, ConnectionResetError):
            pass
        return heard

    def close(self) -> None:
        """End the process, if it has not ended."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def _run(connection: Connection, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    try:
        target(connection, *arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, the process that waits is told
        connection.send(_Failure(f"{type(error).__name__}: {error}"))


@contextmanager
def children(target: Callable[..., None], arguments: list[tuple[Any, ...]]) -> Iterator[list[Child]]:
    """A process for each tuple of arguments; none is left when the block ends."""
    with ExitStack() as stack:
        started = []
        for argument in arguments:
            child = Child(target, *argument)
            stack.callback(child.close)
            started.append(child)
        yield started


def race(target: Callable[..., None], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """What each process answers. Each says a word when it is ready, waits for one, and answers once."""
    with children(target, arguments) as racers:
        for racer in racers:
            racer.hear()
        for racer in racers:
            racer.say("go")
        return [racer.hear() for racer in racers]


def wait_for_start(connection: Connection) -> None:
    """In a process of ``raced``: say that it is ready, and wait for the others."""
    connection.send("ready")
    connection.recv()


_TOLD_MAX = 10  # one violation is enough


@dataclass(slots=True)
class Task:
    """Context of a proof, which also counts its trials and violations."""

    place: Place
    seed: str
    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic

    def rounds(self) -> Iterator[tuple[Place, Random]]:
        """A new folder and a random source for each round: one, and more while there is time for the longest.

        Ends after a round in which a violation was seen. The folders are cleared.
        """
        began = self.clock()
        ends, longest, number = began + self.seconds, 0.0, 0
        while number == 0 or (began + longest <= ends and not self.violations):
            place = self.place.within(f"round-{number}")
            yield place, Random(f"{self.seed}/{number}")  # noqa: S311 - repeated by its seed
            clear(place)
            began, last = self.clock(), began
            longest = max(longest, began - last)
            number += 1

    def require(self, kept: bool, seen: str) -> None:  # noqa: FBT001 - reads as the sentence that it is
        """Report ``seen`` unless ``kept``."""
        if not kept:
            self.report(seen)

    def report(self, seen: str) -> None:
        """Note a violation."""
        if len(self.violations) < _TOLD_MAX:
            self.violations.append(seen)
