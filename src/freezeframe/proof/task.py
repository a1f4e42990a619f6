"""What a proof works with: its folder, tenants and processes, and its counts."""

from __future__ import annotations

import multiprocessing
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.connection import Connection
from random import Random
from typing import Any

from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import FreezeframeError, OutcomeUnknown, StorageUnavailable
from freezeframe.script.tenants import storage_at
from freezeframe.settings import Settings, load_settings
from freezeframe.storage import PrefixStorage, Storage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store

_SCRATCH = "freezeframe-prove-"


def open_storage(root: str) -> Storage:
    """Open the storage at a directory or an ``s3://bucket/prefix``, with the user's settings."""
    return storage_at(root, load_settings())


@dataclass(frozen=True, slots=True)
class ProofFolder:
    """A folder of a storage, which can be sent to other processes.

    ``opener`` opens the storage at ``root``; tests pass a class whose storage breaks a promise.
    """

    root: str
    name: str
    opener: Callable[[str], Storage] = open_storage

    def storage(self) -> Storage:
        """Open the folder as a storage."""
        return PrefixStorage(self.opener(self.root), self.name)

    def within(self, name: str) -> ProofFolder:
        """Return a folder in this folder."""
        return replace(self, name=f"{self.name}/{name}")

    def tenant(self, **options: Any) -> Tenant:
        """Open the folder as a tenant's directory."""
        return tenant_on(self.storage(), **options)


def tenant_on(storage: Storage, engine: TableEngine | None = None, **options: Any) -> Tenant:
    """Open a tenant on any storage with the Arrow engine, or ``engine``; ``options`` are settings."""
    return Tenant(storage, engine or ArrowEngine(), _settings(tuple(sorted(options.items()))))


def store_tenant_on(storage: Storage, **options: Any) -> Tenant:
    """Open, or create, a tenant of a store on any storage."""
    store = Store(storage, ArrowEngine(), _settings(tuple(sorted(options.items()))))
    return store.tenant("tenant", create=True)


@cache
def _settings(options: tuple[tuple[str, Any], ...]) -> Settings:
    """Cached: reading the environment takes longer than opening a tenant."""
    chosen: dict[str, Any] = {"engine": "auto", "gc_grace_seconds": 0, "lease_dead_seconds": 0}
    return Settings(**chosen | dict(options))


@contextmanager
def scratch(root: str, opener: Callable[[str], Storage] = open_storage) -> Iterator[ProofFolder]:
    """Create a new folder in a storage, and delete it with its content when the block ends."""
    folder = ProofFolder(root, f"{_SCRATCH}{uuid.uuid4().hex[:12]}", opener)
    try:
        folder.storage().put_if_absent("begun", b"")
        folder.storage().delete("begun", durable=False)
    except OutcomeUnknown as unknown:
        raise StorageUnavailable(
            f"Nothing could be written to {root}.",
            cause=unknown.cause,
            remedy="Check that it is there, the network and the credentials.",
        ) from unknown
    try:
        yield folder
    finally:
        with suppress(FreezeframeError, OSError):  # a failed deletion must not hide a violation
            clear(folder)


def clear(folder: ProofFolder) -> None:
    """Delete the folder with its content."""
    storage = folder.storage()
    for status in list(storage.list_below("")):
        storage.delete(status.name, durable=False)
    storage.prune("")


_PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class _Failure:
    cause: str


class Child:
    """A process that runs ``target(connection, *arguments)``; "spawn" gives it the variables of now."""

    def __init__(self, target: Callable[..., None], *arguments: Any, method: str = "forkserver") -> None:
        context: Any = multiprocessing.get_context(method)  # its class has no Process where the name is open
        context.set_forkserver_preload(["freezeframe.proof"])
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, target, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def hear(self, seconds: float = _PATIENCE_SECONDS) -> Any:
        """Return the next message of the process; None if there is none in that time."""
        if not self._connection.poll(seconds):
            return None
        try:
            said = self._connection.recv()
        except (EOFError, ConnectionResetError):
            said = _Failure("It ended without a message.")
        if isinstance(said, _Failure):
            raise StorageUnavailable(
                "A process of the proof ended early.",
                cause=said.cause,
                remedy="Correct the cause, or report it.",
            )
        return said

    def say(self, value: Any) -> None:
        """Send the process a message."""
        self._connection.send(value)

    def kill(self) -> list[Any]:
        """Kill the process by SIGKILL, and return its messages that were not received yet."""
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
    except Exception as error:  # noqa: BLE001 - the waiting process gets any error
        connection.send(_Failure(f"{type(error).__name__}: {error}"))


@contextmanager
def children(
    target: Callable[..., None], arguments: list[tuple[Any, ...]], method: str = "forkserver"
) -> Iterator[list[Child]]:
    """Start a process for each tuple of arguments, and end all of them with the block."""
    with ExitStack() as stack:
        started = []
        for argument in arguments:
            child = Child(target, *argument, method=method)
            stack.callback(child.close)
            started.append(child)
        yield started


def race(
    target: Callable[..., None],
    arguments: list[tuple[Any, ...]],
    seconds: float = _PATIENCE_SECONDS,
    method: str = "forkserver",
) -> list[Any]:
    """Start processes, let them begin together, and return the answer of each, or None after the seconds."""
    with children(target, arguments, method) as racers:
        for racer in racers:
            racer.hear()
        for racer in racers:
            racer.say("go")
        return [racer.hear(seconds) for racer in racers]


def wait_for_start(connection: Connection) -> None:
    """Report from a process of ``race`` that it is ready, and wait for the others."""
    connection.send("ready")
    connection.recv()


_VIOLATIONS_MAX = 10  # one violation is enough


@dataclass(slots=True)
class Task:
    """Context of a proof, which also counts its trials and violations."""

    folder: ProofFolder
    seed: str
    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic

    def rounds(self) -> Iterator[tuple[ProofFolder, Random]]:
        """Yield a new folder and a random source for each round.

        Another round begins while there is time for the longest so far and no violation was seen.
        """
        began = self.clock()
        ends, longest, number = began + self.seconds, 0.0, 0
        while number == 0 or (began + longest <= ends and not self.violations):
            folder = self.folder.within(f"round-{number}")
            yield folder, Random(f"{self.seed}/{number}")  # noqa: S311 - repeated by its seed
            clear(folder)
            began, last = self.clock(), began
            longest = max(longest, began - last)
            number += 1

    def require(self, kept: bool, seen: str) -> None:  # noqa: FBT001 - reads as a sentence
        """Report ``seen`` unless ``kept``."""
        if not kept:
            self.report(seen)

    def report(self, seen: str) -> None:
        """Record a violation."""
        if len(self.violations) < _VIOLATIONS_MAX:
            self.violations.append(seen)
