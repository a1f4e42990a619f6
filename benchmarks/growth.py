"""How do costs grow with the versions of a tenant, and with the tenants of a store?

1. A stream of 1,000 rows is updated, a few rows at a time, up to a number of versions. The update after these
   is measured, and in a process of its own: opening the tenant, its newest 20 versions, an old one, gc.
2. A store gets tenants, each with a stream. In a process of its own: opening the store and one tenant, a
   page of names, gc and overview of one tenant; and of all of them: their names, overviews, sweep.

Processor seconds, medians; the sizes take turns, for other work on the machine makes them longer, too. The
exponent of a cost is the slope between the logarithms of it and of the size, from the least to the largest.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from measured import keep

from freezeframe.service.overview import Overviews
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Store, Tenant
from freezeframe.store.diff.counts import ArrowEngine

STEPS = (10, 100, 1_000, 10_000)
ROWS, SENT, RUNS, CREATED, TURNS = 1_000, 5, 11, 5, 3
SETTINGS = Settings(engine="auto")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=STEPS)
    parser.add_argument("--ask", choices=["versions", "tenants"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="where the tenants are made, in a temporary folder")
    given = parser.parse_args()
    if given.ask:
        print(json.dumps((ask_versions if given.ask == "versions" else ask_tenants)(given.folder)))
        return 0
    found = {}
    for name, grow in (("versions", grow_versions), ("tenants", grow_tenants)):
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            places = {step: Path(folder) / str(step) for step in given.steps}
            steps = {step: grow(place, step) for step, place in places.items()}
            for step, costs in asked(name, places).items():
                steps[step] |= costs
                print(name, step, steps[step], flush=True)
            found[name] = {"processor_seconds": steps, "exponents": exponents(steps)}
    keep("growth", found)
    return 0


def asked(name: str, places: dict[int, Path]) -> dict[int, dict[str, float]]:
    """Return the medians of what processes that open the places pay; these take turns."""
    told: dict[int, list[dict[str, float]]] = {step: [] for step in places}
    for _ in range(TURNS):
        for step, place in places.items():
            command = [sys.executable, __file__, "--ask", name, "--folder", place]
            answer = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            told[step].append(json.loads(answer))
    return {
        step: {cost: statistics.median(answer[cost] for answer in answers) for cost in answers[0]}
        for step, answers in told.items()
    }


def exponents(steps: dict[int, dict[str, float]]) -> dict[str, float]:
    """Return the slope of each cost from the first step to the last."""
    (size, before), *_, (end, after) = steps.items()
    return {
        name: round(math.log(after[name] / before[name]) / math.log(end / size), 2)
        for name in after
        if before[name]
    }


def processor_seconds(call: Callable[[], object], runs: int = RUNS) -> float:
    """Return the median of the processor time of some calls."""
    taken = []
    for _ in range(runs):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return round(statistics.median(taken), 5)


def batch(number: int) -> pa.Table:
    """Return rows that are stored with other values."""
    keys = [f"k{(number * 7 + row) % ROWS}" for row in range(SENT)]
    return pa.table({"Id": keys, "v": [number] * len(keys), "text": [f"text {number}"] * len(keys)})


def grow_versions(folder: Path, step: int) -> dict[str, float]:
    """Bring the tenant to a version, and measure the updates after it."""
    tenant = Tenant(LocalStorage(folder), ArrowEngine(), SETTINGS)
    stream = tenant.stream("Lead")
    if tenant.version < 0:
        keys = [f"k{row}" for row in range(ROWS)]
        stream.update(pa.table({"Id": keys, "v": [0] * ROWS, "text": ["text"] * ROWS}), key="Id")
    while tenant.version < step:
        stream.update(batch(tenant.version), key="Id")
    return {"update": processor_seconds(lambda: stream.update(batch(tenant.version), key="Id"))}


def ask_versions(folder: Path) -> dict[str, float]:
    """Measure what a process that opens the tenant pays."""
    tenant = Tenant(LocalStorage(folder), ArrowEngine(), SETTINGS)
    opened = processor_seconds(lambda: tenant.stream("Lead").read(as_="arrow"), 1)
    middle = tenant.version // 2
    return {
        "open and read": opened,
        "newest 20 versions": processor_seconds(lambda: list(tenant.history(20))),
        "read an old version": processor_seconds(
            lambda: (
                Tenant(LocalStorage(folder), ArrowEngine(), SETTINGS)
                .stream("Lead")
                .read(as_="arrow", version=middle)
            ),
            1,
        ),
        "gc, dry run": processor_seconds(lambda: tenant.gc(dry_run=True), 1),
    }


def store_in(folder: Path) -> Store:
    """Open the store."""
    return Store(LocalStorage(folder), ArrowEngine(), SETTINGS)


def grow_tenants(folder: Path, step: int) -> dict[str, float]:
    """Bring the store to a number of tenants, and measure the last creations."""
    store = store_in(folder)
    rows = pa.table({"Id": ["a", "b"], "v": [1, 2]})
    names = iter([f"tenant-{number:06}" for number in range(len(store), step)])

    def create() -> None:
        store.tenant(next(names), create=True).stream("Lead").update(rows, key="Id")

    for _ in range(step - len(store) - CREATED):
        create()
    return {"create a tenant with a stream": processor_seconds(create, CREATED)}


def ask_tenants(folder: Path) -> dict[str, float]:
    """Measure what a process that opens the store pays."""
    store = store_in(folder)
    opened = processor_seconds(lambda: store["tenant-000007"].stream("Lead").read(as_="arrow"), 1)
    one = store["tenant-000007"]
    overviews = Overviews()
    return {
        "open the store, read a tenant": opened,
        "a page of 100 names": processor_seconds(lambda: store.tenants(limit=100)),
        "gc of a tenant": processor_seconds(one.gc, 3),
        "overview of a tenant": processor_seconds(lambda: Overviews().of(one)),
        "all names": processor_seconds(lambda: list(store)),
        "overview of all": processor_seconds(lambda: [overviews.of(store[name]) for name in store], 1),
        "sweep of all": processor_seconds(store.sweep, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
