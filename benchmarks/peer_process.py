"""A peer in a process of its own: asked over a pipe, its time taken inside, its memory watched from here."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

# Reading the memory of a large process takes its time; it may cost a thirtieth of a core at most.
SAMPLE_SECONDS = 0.1
SAMPLE_COST_FACTOR = 30
START_SECONDS = 180
LOG_TAIL = 2_000
LOG_FOLDERS = frozenset({"_delta_log", "log"})


class PeerFailed(Exception):
    """The peer raised; the text is its traceback."""


class NotFinished(Exception):
    """The peer was stopped because its answer took too long."""


@dataclass(slots=True)
class Watched:
    """What was seen of a peer while it worked: its highest memory, and the highest bytes in its folder."""

    peak_pss: int = 0
    peak_folder_bytes: int = 0


class PeerProcess:
    """One peer, from its first question to ``close``; nothing of it stays behind."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self._name = name
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

    @contextlib.contextmanager
    def watched(self, *, folder: bool = False) -> Iterator[Watched]:
        """Watch the peer's processes meanwhile, and its folder too if asked to."""
        seen, done = Watched(), threading.Event()
        thread = threading.Thread(target=self._watch, args=(seen, done, folder), daemon=True)
        thread.start()
        try:
            yield seen
        finally:
            done.set()
            thread.join()

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
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        _, alive = psutil.wait_procs(family, timeout=10)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.join(10)
        self._pipe.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there, self._name, str(self.folder)), daemon=False
        )
        from update_peers import PEERS

        # A process that is spawned takes over this one's search path, and imports by it at once.
        before, packages = sys.path, PEERS[self._name].packages
        sys.path = [str(packages), *before] if packages else before
        self._process.start()
        sys.path = before
        there.close()
        self.ask("ready", patience_seconds=START_SECONDS)

    def _family(self) -> list[psutil.Process]:
        # A Spark server is a child of a child; it is part of the peer.
        try:
            process = psutil.Process(self._process.pid)
            return [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _watch(self, seen: Watched, done: threading.Event, with_folder: bool) -> None:  # noqa: FBT001 - a thread's target
        while True:
            started = time.perf_counter()
            family = self._family()
            seen.peak_pss = max(seen.peak_pss, sum(pss(process.pid) for process in family))
            if with_folder:
                seen.peak_folder_bytes = max(seen.peak_folder_bytes, bytes_in(self.data))
            cost = time.perf_counter() - started
            if done.wait(max(SAMPLE_SECONDS, SAMPLE_COST_FACTOR * cost)):
                return


def pss(process_id: int) -> int:
    """The memory of a process, pages that it shares counted by its share; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


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

    def __init__(self, name: str, folder: Path) -> None:
        # Settings of ours are read when the package is first used: a server of this process's own state.
        os.environ["FREEZEFRAME_STATE_DIR"] = str(folder / "state")
        os.environ["FREEZEFRAME_SPARK_IDLE_SECONDS"] = "30"
        from update_peers import PEERS

        self.peer = PEERS[name](folder / "data")

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
        started = time.perf_counter()
        self.peer.update(frame)
        return time.perf_counter() - started

    def receipt(self) -> dict[str, Any]:
        return self.peer.receipt.to_json()

    def read(self) -> float:
        """The seconds of reading all rows."""
        started = time.perf_counter()
        self.peer.rows()
        return time.perf_counter() - started

    def timed(self, verb: str, *arguments: Any) -> tuple[float, int]:
        """The seconds of another question to the peer, and its answer."""
        started = time.perf_counter()
        answer = getattr(self.peer, verb)(*arguments)
        return time.perf_counter() - started, answer

    def digest(self) -> str:
        from update_data import digest

        return digest(self.peer.rows())


def _serve(connection: Connection, name: str, folder: str) -> None:
    # Spark talks a lot; what matters of it is told if the process ends.
    with open(f"{folder}/stderr.log", "a") as log:  # noqa: PTH123 - its descriptor is all that is needed
        os.dup2(log.fileno(), sys.stderr.fileno())
    served = _Served(name, Path(folder))
    while (question := connection.recv()) is not None:
        verb, arguments = question
        try:
            connection.send(getattr(served, verb)(*arguments))
        except Exception:  # noqa: BLE001 - the other process raises it
            connection.send(PeerFailed(traceback.format_exc()[-LOG_TAIL:]))
