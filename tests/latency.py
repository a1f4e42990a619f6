"""A storage that is far away: every request takes its time, and is written down with its beginning and end.

It wraps any other storage, as ``faulty`` does, so the code under test is the real one. What is asked of
it is how many requests had to wait for each other: that, times the latency, is what a bucket costs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from freezeframe.errors import InvalidOption
from freezeframe.storage.base import FileStatus, Storage

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Request:
    """One request: what was asked of which name, and when it began and ended, in seconds of one clock."""

    verb: str
    name: str
    began: float
    ended: float


def in_sequence(requests: Iterable[Request]) -> tuple[Request, ...]:
    """The most requests that had to wait for each other: each began after the one before had ended."""
    chain: list[Request] = []
    for request in sorted(requests, key=lambda item: item.ended):
        if not chain or request.began >= chain[-1].ended:
            chain.append(request)
    return tuple(chain)


class LatencyStorage:
    """``inner`` behind a line on which a request takes ``seconds``, which may be changed. No local paths."""

    def __init__(self, inner: Storage, seconds: float) -> None:
        if seconds < 0:
            raise InvalidOption(f"A request cannot take {seconds} seconds.", remedy="Pass 0 or more.")
        self._inner = inner
        self.seconds = seconds
        self._requests: list[Request] = []
        self._lock = threading.Lock()

    @property
    def requests(self) -> Sequence[Request]:
        """Every request so far, in the order of their ends."""
        with self._lock:
            return tuple(self._requests)

    @property
    def root(self) -> str:
        """The inner storage's."""
        return self._inner.root

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``."""
        return self._asked("list_from", folder, lambda: iter(list(self._inner.list_from(folder, start))))

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """See ``Storage.list_below``."""
        return self._asked("list_below", folder, lambda: iter(list(self._inner.list_below(folder))))

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        return self._asked("read", name, lambda: self._inner.read(name, offset, length))

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """See ``Storage.put_if_absent``."""
        self._asked("put_if_absent", name, lambda: self._inner.put_if_absent(name, content))

    def replace(self, name: str, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
        """See ``Storage.replace``."""
        self._asked("replace", name, lambda: self._inner.replace(name, content, durable=durable))

    def delete(self, name: str, *, durable: bool = True) -> None:
        """See ``Storage.delete``."""
        self._asked("delete", name, lambda: self._inner.delete(name, durable=durable))

    def prune(self, folder: str) -> None:
        """See ``Storage.prune``: a bucket has no folders, so nothing is asked."""
        self._inner.prune(folder)

    def local_path(self, name: str) -> Path | None:  # noqa: ARG002 - the protocol's signature
        """There is none: it is far away."""
        return None

    def uri(self, name: str) -> str:
        """The inner storage's."""
        return self._inner.uri(name)

    def _asked(self, verb: str, name: str, ask: Callable[[], _T]) -> _T:
        began = time.monotonic()
        time.sleep(self.seconds)
        try:
            return ask()
        finally:
            request = Request(verb, name, began, time.monotonic())
            with self._lock:
                self._requests.append(request)
