"""A peer in a process of its own: asked over a pipe, its time taken inside, its memory watched from here.

Peers are the classes that a module names in ``PEERS``; each gets a folder, and answers by its methods.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import sys
import time
import traceback
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
from measured import seconds_of
from processes import Watched, family, stop, watched

START_SECONDS = 180
LOG_TAIL = 2_000
LOG_FOLDERS = frozenset({"_delta_log", "log"})


class PeerFailed(Exception):
    """The peer raised; the text is its traceback."""


class NotFinished(Exception):
    """The peer was stopped because its answer took too long."""


class PeerProcess:
    """One peer, from its first question to ``close``; nothing of it stays behind."""

    def __init__(self, name: str, folder: Path, module: str = "update_peers") -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self._name, self._module = name, module
        self._log = folder / "stderr.log"
        self._start()

    def ask(self, verb: str, *arguments: Any, patience_seconds: float) -> Any:
        """The answer to a question; see ``_Served`` for the verbs."""
        self._pipe.send((verb, arguments))
        try:
            if not self._pipe.poll(patience_seconds):
                raise NotFinished(f"not finished in {patience_seconds:.0f} s")
            answer = self._pipe.recv()
        except EOFError:
            self._process.join(5)
            last = self._log.read_text(errors="replace")[-LOG_TAIL:]
            raise PeerFailed(f"{last}\nthe process ended with {self._process.exitcode}") from None
        if isinstance(answer, PeerFailed):
            raise answer
        return answer

    def watched(self, *, folder: bool = False) -> AbstractContextManager[Watched]:
        """Watch the memory of the peer's processes meanwhile, and the bytes in its folder too if asked to."""
        return watched(self._family, (lambda: bytes_in(self.data)) if folder else lambda: 0)

    def restart(self) -> None:
        """The same peer in a new process."""
        self.close()
        self._start()

    def close(self) -> None:
        """End the process and every other one that it started."""
        family = self._family()
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        self._process.join(10)
        stop(family)
        self._process.join(10)
        self._pipe.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there, self._module, self._name, str(self.folder)), daemon=False
        )
        # A process that is spawned takes over this one's search path, and imports by it at once.
        before, packages = sys.path, _peers(self._module)[self._name].packages
        sys.path = [str(packages), *before] if packages else before
        self._process.start()
        sys.path = before
        there.close()
        self.ask("ready", patience_seconds=START_SECONDS)

    def _family(self) -> list[psutil.Process]:
        return family(self._process.pid)


def bytes_in(folder: Path) -> int:
    """The bytes of all files in a folder but those of logs; files that go away meanwhile do not count."""
    total = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in LOG_FOLDERS]
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(f"{place}/{name}", follow_symlinks=False).st_size  # noqa: PTH116 - called often
    return total


class _Served:
    """The verbs that a peer's process answers."""

    def __init__(self, module: str, name: str, folder: Path) -> None:
        # Settings of ours are read when the package is first used: a server of this process's own state.
        os.environ["FREEZEFRAME_STATE_DIR"] = str(folder / "state")
        os.environ["FREEZEFRAME_SPARK_IDLE_SECONDS"] = "30"
        self.peer = _peers(module)[name](folder / "data")

    def ready(self) -> bool:
        return True

    def create(self, stored: Path, *where: str) -> None:
        self.peer.create(stored, *where)

    def open(self, *where: str) -> None:
        self.peer.open(*where)

    def update(self, batch: Path) -> float:
        """The seconds of one update; reading the batch is not among them."""
        import pyarrow.parquet as pq

        frame = self.peer.frame(pq.read_table(batch))
        return seconds_of(lambda: self.peer.update(frame))

    def read(self) -> float:
        """The seconds of reading all rows."""
        return seconds_of(self.peer.rows)

    def timed(self, verb: str, *arguments: Any) -> tuple[float, int]:
        """The seconds of another question to the peer, and its answer."""
        started = time.perf_counter()
        answer = getattr(self.peer, verb)(*arguments)
        return time.perf_counter() - started, answer

    def digest(self) -> str:
        from update_data import digest

        return digest(self.peer.rows())


def _peers(module: str) -> dict[str, Any]:
    return importlib.import_module(module).PEERS


def _serve(connection: Connection, module: str, name: str, folder: str) -> None:
    # Spark talks a lot; what matters of it is told if the process ends.
    with open(f"{folder}/stderr.log", "a") as log:  # noqa: PTH123 - its descriptor is all that is needed
        os.dup2(log.fileno(), sys.stderr.fileno())
    served = _Served(module, name, Path(folder))
    while (question := connection.recv()) is not None:
        verb, arguments = question
        try:
            connection.send(getattr(served, verb)(*arguments))
        except Exception:  # noqa: BLE001 - the other process raises it
            connection.send(PeerFailed(traceback.format_exc()[-LOG_TAIL:]))
