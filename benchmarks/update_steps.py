"""Where does the time of one warm update go, and what is the floor?

Samples of the calling thread's stack (a wait for Spark counts where it is waited), and what nothing can be
faster than: an empty Spark job on the same server, an attach to it, a landed and fsynced commit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType

import pyarrow.parquet as pq
from measured import keep, seconds_of
from update_data import KEY, Rows, write_rows

SIZES = {"10k_1k": Rows(10_000, 1_000), "1m_100k": Rows(1_000_000, 100_000)}
WARM_UP = 6
SAMPLE_SECONDS = 0.001
LEAST_SHARE = 0.02
FLOOR_RUNS = 60
COMMIT_BYTES = 2_000


def main(runs: int, sizes: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as folder:
        root = Path(folder)
        # The first update starts a server of this process's own.
        os.environ |= {
            "FREEZEFRAME_STATE_DIR": str(root / "state"),
            "FREEZEFRAME_SPARK": "auto",
            "FREEZEFRAME_SPARK_IDLE_SECONDS": "5",
        }
        profiles = {}
        for name in sizes:
            profiles[name] = _profiled(SIZES[name], root / name, runs)
            print(f"--- {name}: {profiles[name]['milliseconds']} ms an update")
            print("\n".join(profiles[name]["steps"]), flush=True)
        result = {"floor_milliseconds": _floor(root), **profiles}
        if sizes == list(SIZES):
            keep("update_steps", result)
        else:
            print(result["floor_milliseconds"])


def _profiled(rows: Rows, folder: Path, runs: int) -> dict:
    """The tree of steps with milliseconds per update."""
    from freezeframe import open_tenant

    write_rows(rows, WARM_UP + runs, folder / "rows")
    stream = open_tenant(folder / "snapshots").stream("Lead")
    stream.update(pq.read_table(folder / "rows" / "stored.parquet"), key=[KEY])
    batches = [pq.read_table(folder / "rows" / f"batch-{number}.parquet") for number in range(WARM_UP + runs)]
    for batch in batches[:WARM_UP]:
        stream.update(batch, key=[KEY])
    steps, taken = _Step("update"), []
    for batch in batches[WARM_UP:]:
        began = time.perf_counter()
        with _Sampler(steps):
            stream.update(batch, key=[KEY])
        taken.append(time.perf_counter() - began)
    mean = statistics.mean(taken) * 1000
    return {
        "milliseconds": round(statistics.median(taken) * 1000, 1),
        "mean_milliseconds": round(mean, 1),
        "steps": _lines(steps, mean / max(steps.samples, 1), LEAST_SHARE * steps.samples),
    }


@dataclass(slots=True)
class _Step:
    """A function of ours, the samples that it was seen in, and the functions below it."""

    name: str
    samples: int = 0
    below: dict[str, _Step] = field(default_factory=dict)


class _Sampler:
    """Looks at the calling thread's stack every millisecond, from a thread of its own."""

    def __init__(self, steps: _Step) -> None:
        self._steps = steps
        self._watched = threading.get_ident()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> None:
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(SAMPLE_SECONDS)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        sys.setswitchinterval(self._interval)

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            step = self._steps
            step.samples += 1
            for name in _own_functions(sys._current_frames()[self._watched]):
                step = step.below.setdefault(name, _Step(name))
                step.samples += 1


def _own_functions(frame: FrameType | None) -> list[str]:
    """The functions of this package on a stack, outermost first."""
    names = []
    while frame is not None:
        _, found, place = frame.f_code.co_filename.rpartition("/freezeframe/")
        if found:
            names.append(f"{place.removesuffix('.py').replace('/', '.')}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return names[::-1]


def _lines(step: _Step, milliseconds_each: float, least: float, depth: int = 0) -> list[str]:
    """The steps below one, the longest first; a chain of calls that only pass on is one line."""
    lines = []
    for first in sorted(step.below.values(), key=lambda item: -item.samples):
        if first.samples < least:
            continue
        last = first
        while (
            len(last.below) == 1 and (only := next(iter(last.below.values()))).samples >= last.samples * 0.95
        ):
            last = only
        name = first.name if last is first else f"{first.name} ... {last.name}"
        lines.append(f"{first.samples * milliseconds_each:8.1f} ms  {'  ' * depth}{name}")
        lines += _lines(last, milliseconds_each, least, depth + 1)
    return lines


def _floor(root: Path) -> dict[str, float]:
    """The median milliseconds of what an update cannot do without."""
    from freezeframe.engine.connect import connect
    from freezeframe.engine.plans.python_tasks import answers, collect
    from freezeframe.settings import Settings
    from freezeframe.storage import LocalStorage

    storage = LocalStorage(root / "floor")
    content = b"x" * COMMIT_BYTES
    connection = connect(Settings(), print, is_shared=True)
    try:
        session = connection.session
        of_spark = {
            "request_without_a_job": _median_ms(lambda _: collect(session.sql("SELECT 1"))),
            "request_of_an_empty_job": _median_ms(lambda _: collect(session.range(1))),
            "request_of_an_empty_task_in_a_python_worker": _median_ms(
                lambda _: answers(session, [partial(bytes, 1)])
            ),
        }
    finally:
        connection.close()
    return {
        **of_spark,
        "attach": _median_ms(lambda _: connect(Settings(), print, is_shared=True).close()),
        "landed_commit": _median_ms(lambda number: storage.put_if_absent(f"log/{number}.json", content)),
    }


def _median_ms(call: Callable[[int], object]) -> float:
    seconds = [seconds_of(lambda number=number: call(number)) for number in range(FLOOR_RUNS)]
    return round(statistics.median(seconds[FLOOR_RUNS // 4 :]) * 1000, 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    options = parser.parse_args()
    main(options.runs, options.sizes)
