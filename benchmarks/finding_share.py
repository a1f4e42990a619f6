"""What share of an update the finding of its keys by Spark is: no index can gain more."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import numpy as np
import scale
from scale import Case, keys_of_batch, processor_seconds, rows_of

SENT = 10_000
WARM_UP, TURNS = 4, 5


def share_of_finding(stored: int, folder: Path) -> dict[str, object]:
    """What share of an update of 10,000 rows the finding is, in a stream that the product made."""
    case = Case(stored, SENT)
    scale.CASES["this"] = case
    process = os.fork()  # what the filling needs in memory is no part of an update's
    if not process:
        scale.fill(case, folder)
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
    os.environ["FREEZEFRAME_ENGINE"] = "spark"
    engine, stream, key = scale.opened(case, folder)
    source, whole, finding = np.random.default_rng(stored), [], []
    spent = _watched(engine)
    with contextlib.closing(engine):
        for number in range(WARM_UP + TURNS):
            batch = rows_of(case, keys_of_batch(case, number, source), source)
            before, began = processor_seconds(), time.perf_counter()
            stream.update(batch, key=key)
            whole.append((time.perf_counter() - began, processor_seconds() - before))
            finding.append(spent.pop())
    whole, finding = (np.array(item[WARM_UP:]) for item in (whole, finding))
    shares = np.median(finding / whole, axis=0)
    return {
        "median_seconds": round(float(np.median(whole[:, 0])), 3),
        "median_processor_seconds": round(float(np.median(whole[:, 1])), 3),
        "share_of_finding_by_the_clock": round(float(shares[0]), 2),
        "share_of_finding_of_the_processor": round(float(shares[1]), 2),
    }


def _watched(engine) -> list[tuple[float, float]]:
    """Seconds of each search that the engine is asked for from now on, by the clock and of the processor."""
    spent, find = [], engine.find

    def watched(task):
        before, began = processor_seconds(), time.perf_counter()
        found = find(task)
        spent.append((time.perf_counter() - began, processor_seconds() - before))
        return found

    engine.find = watched
    return spent
