"""Processes of a benchmark: started and ready, asked what they took, stopped with all that they started."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

# Reading the memory of a large process takes its time; it may cost a thirtieth of a core at most.
SAMPLE_SECONDS = 0.1
SAMPLE_COST_FACTOR = 30
START_SECONDS = 120
STOP_SECONDS = 60


@contextlib.contextmanager
def running(command: Sequence[str | Path], log: Path, ready: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process once its log has the pattern ``ready``; it is stopped at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not re.search(ready, log.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(log.read_text(errors="replace"))
            time.sleep(0.2)
        yield process
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def family(*process_ids: int) -> list[psutil.Process]:
    """The processes with these numbers (none: this one), and all below them. A Spark server is a child."""
    found = []
    for process_id in process_ids or (os.getpid(),):
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(process_id)
            found += [process, *process.children(recursive=True)]
    return found


def processor_seconds(processes: Iterable[psutil.Process]) -> float:
    """User and system time of the processes so far, and of their children that have ended."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def stop(processes: Sequence[psutil.Process]) -> None:
    """End them, with force those that do not listen."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=10)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def pss(process_id: int) -> int:
    """The memory of a process, pages that it shares counted by its share; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def peak_mib(process_id: int) -> int:
    """The most memory that a process ever had, in MiB; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


@dataclass(slots=True)
class Watched:
    """What was seen meanwhile: the highest memory, and the highest of another measure."""

    peak_pss: int = 0
    peak_of_other: int = 0


@contextlib.contextmanager
def watched(
    processes: Callable[[], Iterable[psutil.Process]], other: Callable[[], int] = lambda: 0
) -> Iterator[Watched]:
    """Look at the memory of the processes that there are at each moment, and at ``other``, from a thread."""
    seen, done = Watched(), threading.Event()

    def look() -> None:
        while True:
            started = time.perf_counter()
            seen.peak_pss = max(seen.peak_pss, sum(pss(process.pid) for process in processes()))
            seen.peak_of_other = max(seen.peak_of_other, other())
            cost = time.perf_counter() - started
            if done.wait(max(SAMPLE_SECONDS, SAMPLE_COST_FACTOR * cost)):
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
