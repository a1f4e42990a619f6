"""What the benchmarks share: the rows they update, and how a result is kept."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent / "results"
NULL_SHARE = 0.3


def rows(keys: Sequence[int], seed: int) -> pd.DataFrame:
    """Twelve columns, a text key first; three cells in ten are missing, and the keys are in random order."""
    random = np.random.default_rng(seed)
    order = random.permutation(np.asarray(keys))
    count = len(order)
    columns = {
        "Name": pd.Series(random.choice(["Brightloom", "Quillstack", "Wrenfield"], count), dtype="string"),
        "Email": pd.Series([f"{number}@example.com" for number in random.integers(0, 10**6, count)]),
        "Status": pd.Series(random.choice(["open", "won", "lost"], count), dtype="string"),
        "City": pd.Series(random.choice(["Ottersby", "Lindenau"], count), dtype="string"),
        "Notes": pd.Series([f"note {number}" for number in random.integers(0, 10**6, count)]),
        "Employees": pd.Series(random.integers(0, 10**6, count), dtype="Int64"),
        "Visits": pd.Series(random.integers(0, 10**12, count), dtype="Int64"),
        "Revenue": pd.Series(random.random(count) * 1e6, dtype="Float64"),
        "Score": pd.Series(random.random(count), dtype="Float64"),
        "IsActive": pd.Series(random.random(count) < 0.5, dtype="boolean"),  # half of them
        "ModifiedAt": pd.Series(pd.to_datetime(random.integers(0, 2 * 10**9, count), unit="s", utc=True)),
    }
    kept = {name: column.mask(random.random(count) < NULL_SHARE) for name, column in columns.items()}
    return pd.DataFrame({"Id": pd.Series([f"00Q{number:09d}" for number in order], dtype="string"), **kept})


def batch(number: int, stored: int, size: int) -> pd.DataFrame:
    """The ``number``-th batch: nine known keys in ten, the rest new ones that no other batch has."""
    random = np.random.default_rng(10_000 + number)
    known = random.choice(stored, size * 9 // 10, replace=False)
    new = stored + number * size + np.arange(size - len(known))
    return rows(np.concatenate([known, new]).tolist(), seed=20_000 + number)


def summary(seconds: Sequence[float]) -> dict[str, object]:
    """The median, the extremes and every single run."""
    return {
        "median_seconds": round(statistics.median(seconds), 4),
        "least_seconds": round(min(seconds), 4),
        "most_seconds": round(max(seconds), 4),
        "runs": [round(second, 4) for second in seconds],
    }


def seconds_of(call: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def keep(question: str, result: dict[str, object]) -> None:
    """Write a result beside the others, with the machine as far as it matters, and print it."""
    record = {
        "question": question,
        "machine": machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("freezeframe", "pyspark", "pandas", "pyarrow")},
        **result,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{question}.json").write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps({name: value for name, value in result.items() if name != "versions"}, indent=2))


def machine() -> dict[str, object]:
    """What of this machine matters for a figure."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "load_average": round(os.getloadavg()[1], 1),  # over the last five minutes, this run included
    }
