"""What do 10,000 updates of 100 rows leave of one stream: files, bytes, and the time of an update?

A stream of 5,000 rows; each update changes 90 of them and adds 10. Everything is on its defaults, but
for ``--grace-seconds`` (an hour by default, which the run would not see the end of) and ``--keep-versions``.
``--state DIR`` goes on where a run before stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections import Counter
from pathlib import Path

import measured

from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine

STORED, ROWS, EVERY = 5_000, 100, 500


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=220)
    parser.add_argument("--grace-seconds", type=float)
    parser.add_argument("--keep-versions", type=int)
    given = parser.parse_args()
    options = {"engine": "auto"}
    if given.grace_seconds is not None:
        options["gc_grace_seconds"] = given.grace_seconds
    storage = LocalStorage(given.state / "tenant")
    tenant = Tenant(storage, ArrowEngine(), Settings(**options))
    kept = given.state / "points.json"
    points = json.loads(kept.read_text()) if kept.exists() else []
    if not points:
        tenant.stream("Account").update(measured.rows(range(STORED), seed=1), key="Id")
        if given.keep_versions:
            tenant.set_retention(keep_versions=given.keep_versions)
    done, ends = points[-1]["updates"] if points else 0, time.monotonic() + given.seconds
    while done < given.updates and time.monotonic() < ends:
        seconds = []
        for number in range(done, done + EVERY):
            batch = measured.batch(number, STORED, ROWS)
            began = time.perf_counter()
            tenant.stream("Account").update(batch)
            seconds.append(time.perf_counter() - began)
        done += EVERY
        points.append({"updates": done, **look(given.state / "tenant", tenant, seconds)})
        kept.write_text(json.dumps(points))
        print(json.dumps(points[-1]), flush=True)
    if done >= given.updates:
        measured.keep(
            "small_syncs", {"options": options, "keep_versions": given.keep_versions, "points": points}
        )
    return 0


def look(folder: Path, tenant: Tenant, seconds: list[float]) -> dict[str, object]:
    """What is there after so many updates, and how long the last ones took."""
    kinds: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for path, _, names in os.walk(folder):
        for name in names:
            kind = kind_of(f"{path}/{name}")
            kinds[kind] += 1
            sizes[kind] += (Path(path) / name).stat().st_size
    began = time.perf_counter()
    frame = tenant.stream("Account").read(as_="arrow")
    read = time.perf_counter() - began
    ordered = sorted(seconds)
    return {
        "files": kinds.total(),
        "bytes": sizes.total(),
        "kinds": {kind: [kinds[kind], sizes[kind]] for kind in sorted(kinds)},
        "rows": len(frame),
        "read_seconds": round(read, 3),
        "update_ms": {
            "median": round(1000 * statistics.median(ordered), 1),
            "p99": round(1000 * ordered[len(ordered) * 99 // 100], 1),
            "most": round(1000 * ordered[-1], 1),
        },
    }


def kind_of(path: str) -> str:
    if "/_freezeframe/log/" in path:
        return "tenant checkpoints" if "checkpoint" in path else "tenant entries"
    if "/_delta_log/" in path:
        if path.endswith(".crc"):
            return "table checksums"
        return "table checkpoints" if ".checkpoint." in path else "table commits"
    return "data" if ".parquet" in path else "vectors" if path.endswith(".bin") else "other"


if __name__ == "__main__":
    raise SystemExit(main())
