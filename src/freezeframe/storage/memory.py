"""Storages for tests and proofs: in memory, and with injected faults."""

from __future__ import annotations

import errno
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from freezeframe.clock import now_ms
from freezeframe.errors import InvalidOption, OutcomeUnknown, StorageUnavailable
from freezeframe.storage.base import FileStatus, ForwardingStorage, Storage

_numbers = itertools.count()


class MemoryStorage:
    """Files in the memory of this process, separate for each instance."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, int]] = {}
        self._folders: dict[str, set[str]] = {}  # file names by folder, because log listings are frequent
        self._lock = threading.Lock()
        self._root = f"memory://{next(_numbers)}"

    def copy(self) -> MemoryStorage:
        """Return another storage with the same files."""
        found = MemoryStorage()
        with self._lock:
            found._files = dict(self._files)
            found._folders = {folder: set(names) for folder, names in self._folders.items()}
        return found

    @property
    def root(self) -> str:
        """A name unique to this instance within the process."""
        return self._root

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``."""
        inside, first = folder.strip("/"), start.encode()
        with self._lock:
            names = [name for name in self._folders.get(inside, ()) if name.encode() >= first]
            names.sort(key=str.encode)
            files = [(name, *self._files[f"{inside}/{name}" if inside else name]) for name in names]
        return iter([FileStatus(name, len(content), modified_ms) for name, content, modified_ms in files])

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """See ``Storage.list_below``."""
        prefix = f"{folder.strip('/')}/" if folder.strip("/") else ""
        with self._lock:
            files = list(self._files.items())
        return iter(
            [
                FileStatus(path[len(prefix) :], len(content), modified_ms)
                for path, (content, modified_ms) in files
                if path.startswith(prefix)
            ]
        )

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        with self._lock:
            if name not in self._files:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            content = self._files[name][0]
        return content[offset:] if length is None else content[offset : offset + length]

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """See ``Storage.put_if_absent``."""
        whole = content if isinstance(content, bytes) else b"".join(content)
        with self._lock:
            if name in self._files:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            self._keep(name, whole)

    def replace(
        self,
        name: str,
        content: bytes | Iterable[bytes],
        *,
        durable: bool = True,  # noqa: ARG002 - the protocol's signature
    ) -> None:
        """See ``Storage.replace``."""
        whole = content if isinstance(content, bytes) else b"".join(content)
        with self._lock:
            self._keep(name, whole)

    def _keep(self, name: str, content: bytes) -> None:
        folder, _, last = name.rpartition("/")
        self._files[name] = (content, now_ms())
        self._folders.setdefault(folder, set()).add(last)

    def delete(self, name: str, *, durable: bool = True) -> None:  # noqa: ARG002 - the protocol's signature
        """See ``Storage.delete``."""
        folder, _, last = name.rpartition("/")
        with self._lock:
            if self._files.pop(name, None) is not None:
                self._folders[folder].discard(last)

    def prune(self, folder: str) -> None:
        """See ``Storage.prune``: there are no folders."""

    def local_path(self, name: str) -> Path | None:  # noqa: ARG002 - the protocol's signature
        """None: the files are only in memory."""
        return None

    def uri(self, name: str) -> str:
        """Return a name for messages; no engine can open it."""
        return f"{self.root}/{name}"


# ``FaultyStorage`` wraps any other storage, so tests use the real code and the real bytes. Its call log
# lists the possible faults: run once without a plan, then once for every call and every failure mode.

_T = TypeVar("_T")


class Crash(BaseException):
    """Simulated crash of the process; not a subclass of ``Exception``, so handlers do not catch it."""


class Way(Enum):
    """Failure mode of a call."""

    FAIL_BEFORE = "refused; nothing happened"
    FAIL_AFTER = "done, but the answer is lost"
    CUT_BEFORE = "the process dies before it"
    CUT_AFTER = "the process dies after it"
    DELAY = "done, but late"


@dataclass(frozen=True, slots=True)
class Fault:
    """Inject ``way`` at call number ``call`` (from 0; counting only calls of ``verb``, if given)."""

    call: int
    way: Way
    verb: str | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.call < 0 or self.seconds < 0 or self.verb not in {None, *VERBS}:
            raise InvalidOption(
                f"{self!r} is not a fault.",
                cause=f"Calls count from 0, delays are not negative, verbs are {', '.join(VERBS)}.",
                remedy="Correct the plan.",
            )


@dataclass(frozen=True, slots=True)
class Call:
    """A recorded call: its verb, and its file or folder."""

    verb: str
    name: str


VERBS = ("list_from", "list_below", "read", "put_if_absent", "replace", "delete", "prune")
WRITES = frozenset({"put_if_absent", "replace", "delete", "prune"})


class FaultyStorage(ForwardingStorage):
    """``inner`` with injected faults. After a crash every later call crashes as well.

    A lost response raises ``OutcomeUnknown`` for a write and ``StorageUnavailable`` for a read.
    There are no local paths, so that every byte passes through a call that can fail.
    """

    def __init__(self, inner: Storage, plan: Iterable[Fault] = ()) -> None:
        super().__init__(inner)
        self._plan = tuple(plan)
        self._calls: list[Call] = []
        self._dead = False
        self._lock = threading.Lock()

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call so far, in order."""
        with self._lock:
            return tuple(self._calls)

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``Storage.list_from``; the fault occurs at the call, not while iterating."""
        return self._do("list_from", folder, lambda: iter(list(self._inner.list_from(folder, start))))

    def list_below(self, folder: str) -> Iterator[FileStatus]:
        """See ``Storage.list_below``."""
        return self._do("list_below", folder, lambda: iter(list(self._inner.list_below(folder))))

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        return self._do("read", name, lambda: self._inner.read(name, offset, length))

    def put_if_absent(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """See ``Storage.put_if_absent``."""
        self._do("put_if_absent", name, lambda: self._inner.put_if_absent(name, content))

    def replace(self, name: str, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
        """See ``Storage.replace``."""
        self._do("replace", name, lambda: self._inner.replace(name, content, durable=durable))

    def delete(self, name: str, *, durable: bool = True) -> None:
        """See ``Storage.delete``."""
        self._do("delete", name, lambda: self._inner.delete(name, durable=durable))

    def prune(self, folder: str) -> None:
        """See ``Storage.prune``."""
        self._do("prune", folder, lambda: self._inner.prune(folder))

    def local_path(self, name: str) -> Path | None:  # noqa: ARG002 - the protocol's signature
        """None: a direct read would bypass the injected faults."""
        return None

    def _do(self, verb: str, name: str, work: Callable[[], _T]) -> _T:
        fault = self._enter(verb, name)
        if fault is None:
            return work()
        match fault.way:
            case Way.FAIL_BEFORE:
                raise StorageUnavailable(f"Planned: {verb} of {name!r} was refused.", remedy="Try again.")
            case Way.CUT_BEFORE:
                self._die(verb, name)
            case Way.DELAY:
                time.sleep(fault.seconds)
                return work()
        try:
            work()
        finally:
            # A crash after a call occurs whatever the outcome of the call.
            if fault.way is Way.CUT_AFTER:
                self._die(verb, name)
        lost = OutcomeUnknown if verb in WRITES else StorageUnavailable
        raise lost(f"Planned: the answer to {verb} of {name!r} was lost.", remedy="Read it back.")

    def _enter(self, verb: str, name: str) -> Fault | None:
        """Note a call and return its fault. Subclasses do something in front of a call here."""
        with self._lock:
            if self._dead:
                raise Crash(f"{verb} of {name!r} after the crash")
            same = sum(call.verb == verb for call in self._calls)
            number = {None: len(self._calls), verb: same}
            self._calls.append(Call(verb, name))
        return next((fault for fault in self._plan if number.get(fault.verb) == fault.call), None)

    def _die(self, verb: str, name: str) -> None:
        with self._lock:
            self._dead = True
        raise Crash(f"{verb} of {name!r}")
