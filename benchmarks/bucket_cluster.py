"""How much of a large update passes through a job, on a cluster with a store in a bucket?

A master and two workers of one core each, whose disks nobody else sees (mount namespaces: run it as root),
and a bucket of SeaweedFS. A Spark frame is written as a stream and another one is put into it. The script's
process and Spark's driver are observed, and the rows are compared with those that Spark computes from both
frames. 10,000,000 rows <- 3,000,000 by default.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measured import keep
from processes import peak_mib
from seaweed import seaweed
from sizing_page import write_sizing
from spark_cluster import standalone_cluster
from update_data import COLUMNS, KEY

DRIVER_MEMORY, EXECUTOR_MEMORY = "1g", "2g"
LIMIT_MIB = 1_000
# How a number becomes a value of a column, in SQL.
VALUES = {
    "Name": "element_at(array('Brightloom', 'Quillstack', 'Wrenfield'), int({} + 1))",
    "Status": "element_at(array('open', 'won', 'lost'), int({} + 1))",
    "City": "element_at(array('Ottersby', 'Lindenau'), int({} + 1))",
    "Email": "string({}) || '@example.com'",
    "Notes": "'note ' || string({})",
    "Revenue": "{} / 100D",
    "Score": "{} / 100D",
    "IsActive": "{} = 1",
    "ModifiedAt": "timestamp_seconds({})",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000, help="how many are stored")
    parser.add_argument("--sent", type=int, default=3_000_000, help="how many are sent")
    parser.add_argument("--no-keep", dest="keep", action="store_false", help="leave the results file alone")
    parser.add_argument("--script", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.script:
        print(json.dumps(script(wanted.rows, wanted.sent)))
        return 0
    with tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        disk, bucket = folder / "disk", folder / "bucket"
        disk.mkdir()
        bucket.mkdir()
        variables = stack.enter_context(seaweed(bucket, "bench", volumes=100, volume_mib=512))
        address = stack.enter_context(standalone_cluster(folder, EXECUTOR_MEMORY, disk))
        os.environ |= variables | {
            "FREEZEFRAME_ROOT": "s3://bench/store",
            "FREEZEFRAME_SPARK_JARS_DIR": str(Path(__file__).parents[1] / ".cache" / "jars"),
            "TMPDIR": str(disk),
            "FREEZEFRAME_STATE_DIR": str(disk / "state"),
            "FREEZEFRAME_SPARK": address,
            "FREEZEFRAME_SPARK_MEMORY": DRIVER_MEMORY,
            "FREEZEFRAME_SPARK_IDLE_SECONDS": "5",
        }
        words = [sys.executable, __file__, "--script", "--rows", str(wanted.rows), "--sent", str(wanted.sent)]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    result |= {"memory": {"driver": DRIVER_MEMORY, "each of two executors": EXECUTOR_MEMORY}}
    if wanted.keep:
        keep("bucket_cluster", result)
        write_sizing()
    else:
        print(json.dumps(result, indent=2))
    return int(result["update"]["script_mib"] > LIMIT_MIB)


def script(stored: int, sent: int) -> dict[str, Any]:
    """Both updates as a job's script makes them, and what this process and the driver took."""
    from freezeframe.engine.spark import SparkEngine
    from freezeframe.script.tenants import storage_at
    from freezeframe.settings import load_settings
    from freezeframe.store.snapshot_store import Store

    settings = load_settings()
    engine = SparkEngine(settings)
    try:
        session = engine.session
        new = sent // 10
        before, batch = frame(session, 0, stored, 1), frame(session, stored + new - sent, stored + new, 2)
        stream = (
            Store(storage_at(settings.root, settings), engine, settings)
            .tenant("acme", create=True)
            .stream("Lead")
        )
        steps = {}
        for name, rows in (("first", before), ("update", batch)):
            began = time.perf_counter()
            receipt = stream.update(rows, key=KEY)
            steps[name] = {
                "seconds": round(time.perf_counter() - began, 1),
                "counts": [receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted],
                **peaks(settings),
            }
        inserted, updated, unchanged, deleted = steps["update"]["counts"]
        assert (inserted, updated + unchanged, deleted) == (new, sent - new, 0), steps
        expected, found = digest(merged(before, batch)), digest(stream.read(as_="spark"))
        assert expected == found, (expected, found)
        return {"rows": {"stored": stored, "batch": sent}, "digest": found, **steps}
    finally:
        engine.close()


def frame(session: Any, begin: int, end: int, seed: int) -> Any:
    """The rows with these numbers, of twelve columns; three cells in ten are missing."""
    cells = [f"format_string('00Q%09d', id) {KEY}"]
    for place, (name, (size, _)) in enumerate(COLUMNS.items()):
        number = f"pmod(xxhash64(id, {100 * seed + place}), {size})"
        value = VALUES.get(name, "{}").format(number)
        cells.append(f"if(pmod(xxhash64(id, {1_000 * seed + place}), 10) < 3, null, {value}) {name}")
    return session.range(begin, end).selectExpr(*cells)


def merged(before: Any, batch: Any) -> Any:
    """What must be stored: the batch's cells, and the stored ones where those are missing."""
    cells = [f"coalesce(b.{name}, s.{name}) {name}" for name in COLUMNS]
    return before.alias("s").join(batch.alias("b"), KEY, "full").selectExpr(KEY, *cells)


def digest(rows: Any) -> list[str]:
    """The same for the same rows in any order."""
    texts = ", ".join(f"coalesce(string({name}), '?')" for name in [KEY, *COLUMNS])
    row = f"sum(cast(xxhash64({texts}) AS decimal(20, 0)))"
    return [str(item) for item in rows.selectExpr("count(*)", f"count(DISTINCT {KEY})", row).first()]


def peaks(settings: Any) -> dict[str, int]:
    """The most memory that this process and the driver ever had, in MiB."""
    from freezeframe.engine.server.server import running_servers

    (standing,) = running_servers(settings)
    return {"script_mib": peak_mib(os.getpid()), "driver_mib": peak_mib(standing.process)}


if __name__ == "__main__":
    sys.exit(main())
