"""A child process of a proof, which can be messaged and killed."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from freezeframe.errors import StorageUnavailable

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
        """What the process says next; None if it says nothing in that time.

        Raises:
            StorageUnavailable: it has ended by an error, or without a word.
        """
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
        for given in arguments:
            child = Child(target, *given)
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
