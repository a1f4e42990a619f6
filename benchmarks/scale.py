"""How does the cost of an update of 10,000 rows grow with the stream it goes into?

Keys at random meet every file; keys in time order, where nine rows in ten of a batch are among the newest
200,000, meet the newest files alone, for the statistics say where keys can be. One more case is large:
two million rows into twenty million, with 4 GB for Spark. One has keys of which nine in ten share their
first part, one has 100 columns, and one a text of 4,000 characters in each row. Each case
is a process of its own with a Spark server of its own; what it found is merged into the results, so that
single cases can be measured on a quiet machine: ``--only random_20m time_20m``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from measured import RESULTS, keep, machine
from processes import family, processor_seconds, watched
from simulation_plot import plot
from sizing_page import write_sizing

CHUNK_ROWS = 500_000
NEWEST = 200_000
WARM_UP, TURNS = 3, 5
MILLION = 1_000_000
TEXT_BYTES = 4_000


@dataclass(frozen=True)
class Case:
    stored: int
    sent: int = 10_000
    keys: str = "random"
    memory: str = "4g"
    turns: int = TURNS
    warm_up: int = WARM_UP


CASES = {
    "random_10k": Case(10_000),
    "random_100k": Case(100_000),
    "random_1m": Case(MILLION),
    "random_5m": Case(5 * MILLION),
    "random_20m": Case(20 * MILLION),
    "time_1m": Case(MILLION, keys="time"),
    "time_5m": Case(5 * MILLION, keys="time"),
    "time_20m": Case(20 * MILLION, keys="time"),
    "skewed_1m": Case(MILLION, keys="skewed"),
    "wide_100k": Case(100_000, keys="wide"),
    "texts_100k": Case(100_000, keys="texts"),
    "large_2m_of_20m": Case(20 * MILLION, 2 * MILLION, turns=1, warm_up=0),
}
SMALL = [name for name, case in CASES.items() if case.stored <= MILLION]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=SMALL)
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--fill", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.fill:
        fill(CASES[wanted.case], wanted.fill)
        return 0
    if wanted.case:
        print(json.dumps(measure(wanted.case)))
        return 0
    path = RESULTS / "scale.json"
    cases = json.loads(path.read_text())["cases"] if path.exists() else {}
    for name in wanted.only:
        done = subprocess.run(
            [sys.executable, __file__, "--case", name], stdout=subprocess.PIPE, text=True, check=True
        )
        cases[name] = {
            **asdict(CASES[name]),
            **json.loads(done.stdout.splitlines()[-1]),
            "machine": machine(),
        }
        keep("scale", {"cases": cases, "growth": growth(cases)})
    draw(cases)
    write_sizing()
    return 0


def growth(cases: dict) -> dict[str, dict[str, float]]:
    """How many times as much, as far as it was measured; a loaded machine tells the truth by the second."""
    asked = {
        "random keys, 10k to 1M (at most 3)": ("random_10k", "random_1m"),
        "keys in time order, 1M to 20M (at most 3)": ("time_1m", "time_20m"),
        "random keys, 1M to 20M": ("random_1m", "random_20m"),
        "keys that share their first part, to random ones": ("random_1m", "skewed_1m"),
    }
    return {
        name: {
            measure: round(cases[after][f"median_{measure}"] / cases[before][f"median_{measure}"], 2)
            for measure in ("seconds", "processor_seconds")
        }
        for name, (before, after) in asked.items()
        if before in cases and after in cases
    }


def draw(cases: dict) -> None:
    """``docs/assets/scale.svg``: seconds of the clock and of the processor, against rows stored."""
    small = [
        case
        for case in cases.values()
        if case["sent"] == Case(0).sent and case["keys"] not in ("wide", "texts")
    ]
    panels = [
        (
            f"An update of 10,000 rows, {title}",
            "rows stored",
            {
                f"{kind} keys": sorted(
                    (item["stored"], item[measure]) for item in small if item["keys"] == kind
                )
                for kind in sorted({item["keys"] for item in small})
            },
        )
        for title, measure in (("by the clock", "median_seconds"), ("processor", "median_processor_seconds"))
    ]
    plot(panels, "scale.svg")


def measure(name: str) -> dict[str, object]:
    case = CASES[name]
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-", dir=os.environ.get("TMPDIR")) as folder:
        root = Path(folder)
        began = time.perf_counter()
        # In a process of its own: what it needs in memory is no part of an update's.
        subprocess.run([sys.executable, __file__, "--case", name, "--fill", str(root)], check=True)
        filled = time.perf_counter() - began
        engine, stream, key = opened(case, root)
        source = np.random.default_rng(case.stored)
        try:
            with watched(family) as memory:
                seconds, processor = [], []
                for number in range(case.warm_up + case.turns):
                    batch = rows_of(case, keys_of_batch(case, number, source), source)
                    before, started = processor_seconds(family()), time.perf_counter()
                    receipt = stream.update(batch, key=key)
                    seconds.append(time.perf_counter() - started)
                    processor.append(processor_seconds(family()) - before)
                    assert receipt.inserted + receipt.updated + receipt.unchanged == case.sent
        finally:
            engine.close()
        counted = slice(case.warm_up, None)
        return {
            "median_seconds": round(statistics.median(seconds[counted]), 3),
            "median_processor_seconds": round(statistics.median(processor[counted]), 3),
            "runs": [round(second, 3) for second in seconds],
            "fill_seconds": round(filled, 1),
            "peak_mib": memory.peak_pss // 2**20,
            "stored_mib": round(size_of(root / "data") / 2**20),
        }


def opened(case: Case, root: Path):
    """(the engine, the stream, its key)."""
    from freezeframe.engine.protocol import DeferredEngine
    from freezeframe.engine.spark import SparkEngine
    from freezeframe.settings import Settings
    from freezeframe.storage import LocalStorage
    from freezeframe.store import Tenant

    settings = Settings(spark="local", spark_memory=case.memory, state_dir=root / "state")
    engine = DeferredEngine(lambda: SparkEngine(settings))
    stream = Tenant(LocalStorage(root / "data"), engine, settings).stream("Account")
    return engine, stream, ["Account", "Id"] if case.keys == "skewed" else ["Id"]


def fill(case: Case, root: Path) -> None:
    """The stored rows: in the order of their keys for time, in any order for others."""
    _engine, stream, key = opened(case, root)
    source = np.random.default_rng(case.stored + 1)
    order = np.arange(case.stored) if case.keys == "time" else source.permutation(case.stored)
    chunks = [order[at : at + CHUNK_ROWS] for at in range(0, case.stored, CHUNK_ROWS)]
    if case.keys == "time":  # as syncs bring them: each batch newer than all before
        for chunk in chunks:
            stream.update(rows_of(case, chunk, source), key=key)
        return
    stream.update(pa.concat_tables([rows_of(case, chunk, source) for chunk in chunks]), key=key)


def keys_of_batch(case: Case, number: int, source: np.random.Generator) -> np.ndarray:
    """Nine known keys in ten, the rest new."""
    known = case.sent * 9 // 10
    newest = min(NEWEST, case.stored) if case.keys == "time" else case.stored
    new = case.stored + number * case.sent + np.arange(case.sent - known)
    return np.concatenate([case.stored - 1 - source.choice(newest, known, replace=False), new])


def rows_of(case: Case, keys: np.ndarray, source: np.random.Generator) -> pa.Table:
    """Eight columns, a text key first; one cell in ten is null."""
    count = len(keys)
    ids = pc.utf8_lpad(pa.array(keys).cast(pa.string()), 12, "0")
    texts = pa.array(["Brightloom", "Quillstack", "Wrenfield", None])
    columns: dict[str, pa.Array] = {"Id": pc.binary_join_element_wise("00Q", ids, "")}
    if case.keys == "skewed":
        shared = pc.if_else(pa.array(keys % 10 > 0), "everybody's", columns["Id"])
        columns = {"Account": shared, **columns}
    if case.keys == "wide":
        columns |= {f"Field{place:02}": numbers_of(count, source) for place in range(92)}
    if case.keys == "texts":  # hexadecimal digits: half of their bytes cannot be compressed away
        columns["Text"] = pa.array([source.bytes(TEXT_BYTES // 2).hex() for _ in range(count)])
    return pa.table(
        {
            **columns,
            "Name": texts.take(pa.array(source.integers(0, 4, count))),
            "Owner": pc.binary_join_element_wise(
                "owner ", pa.array(source.integers(0, 9999, count)).cast("string"), ""
            ),
            "Amount": pa.array(source.random(count), mask=source.random(count) < 0.1),
            "Visits": pa.array(source.integers(0, 10**6, count)),
            "IsOpen": pa.array(source.random(count) < 0.5),
            "ModifiedAt": pa.array(source.integers(0, 2 * 10**15, count)).cast(pa.timestamp("us", "UTC")),
        }
    )


def numbers_of(count: int, source: np.random.Generator) -> pa.Array:
    """Whole numbers, three in ten of them missing."""
    return pa.array(source.integers(0, 10**6, count), mask=source.random(count) < 0.3)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main())
