"""How long does the history of one row take over 10, 100, 200 and 1,000 versions of 100,000 rows?

Each version brings 1,000 rows of random keys, one in ten of them new; the row that is asked for is in every
tenth. `narrow` is below the size from which rows are marked (each version writes the stream anew), `wide`
above it. Asked are a row, the page that the console asks for (50 versions), and a key that no row has.
``--store DIR`` keeps the stores between runs, so that they are built once.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
from measured import keep

from freezeframe.service.rows.differences import row_history
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine

STORED = 100_000
BATCH = 1_000
VERSIONS = (10, 100, 200, 1_000)
WIDTHS = {"narrow": 3, "wide": 20}
ASKED = 50_007
TURNS = 7


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--versions", type=int, nargs="+", default=VERSIONS)
    parser.add_argument("--build-only", action="store_true")
    wanted = parser.parse_args()
    found: dict[str, dict[str, object]] = {}
    for kind in WIDTHS:
        for versions in wanted.versions:
            place = wanted.store / f"{kind}-{versions}"
            if not place.exists():
                build(place, kind, versions)
            if not wanted.build_only:
                found[f"{kind}, {versions} versions"] = measured(place, kind)
    if found:
        keep("row_history", {"rows": STORED, "batch": BATCH, "milliseconds": found})
    return 0


def tenant_at(place: Path) -> Tenant:
    storage = LocalStorage(place)
    return Tenant(storage, ArrowEngine(), Settings(engine="auto"))


def build(place: Path, kind: str, versions: int) -> None:
    draw = random.Random(versions)
    stream = tenant_at(place).stream("Lead")
    stream.update(rows(range(STORED), kind, draw), "Id")
    for version in range(1, versions):
        known = set(draw.sample(range(STORED), BATCH * 9 // 10)) - {ASKED}
        known |= {ASKED} if version % 10 == 0 else set()
        new = (STORED + version * BATCH + number for number in range(BATCH // 10))
        stream.update(rows([*known, *new], kind, draw), "Id")


def rows(given: Iterable[int], kind: str, draw: random.Random) -> pa.Table:
    numbers = list(given)
    values = {f"Field {item}": [f"{draw.randrange(10**6)}" for _ in numbers] for item in range(WIDTHS[kind])}
    stages = [draw.choice(("open", "won", "lost")) for _ in numbers]
    # New keys lie between the others, so that rows move.
    keys = [f"K{(number * 7_919) % 10_000_019:08d}" for number in numbers]
    return pa.table({"Id": keys, "Stage": stages, "Amount": [draw.random() for _ in numbers], **values})


def measured(place: Path, kind: str) -> dict[str, object]:
    key = rows([ASKED], kind, random.Random(0))["Id"][0].as_py()
    asked: dict[str, Callable[[Tenant], object]] = {
        "a row": lambda tenant: tenant.stream("Lead").row_history(key),
        "its newest 50 versions, as JSON": lambda tenant: row_history(tenant, "Lead", key, None, 50),
        "no row": lambda tenant: tenant.stream("Lead").row_history("nobody"),
    }
    files = len(list(place.rglob("*.parquet")))
    touched = len(tenant_at(place).stream("Lead").row_history(key).versions)
    found: dict[str, object] = {"files": files, "touched": touched}
    for name, ask in asked.items():
        runs = []
        for _ in range(TURNS):
            tenant = tenant_at(place)
            begun = time.perf_counter()
            ask(tenant)
            runs.append((time.perf_counter() - begun) * 1000)
        found[name] = {"median": round(statistics.median(runs), 1), "most": round(max(runs), 1)}
    return found


if __name__ == "__main__":
    raise SystemExit(main())
