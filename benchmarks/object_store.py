"""What does an update of a stream in a bucket wait for? Its requests counted, ours and Spark's.

10,000 rows <- 1,000 on a test server of this machine. A request of ours takes 20 ms more; how many of them
had to wait for each other is counted. Spark's are what the server has seen besides; they are not slowed down.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measured import batch, keep, rows, summary

STORED, BATCH = 10_000, 1_000
RUNS = 5
WARM_UP = 2
LATENCY_SECONDS = 0.02
IN_SEQUENCE_LIMIT = 12
START_SECONDS = 60
COMMITTERS = ("magic", "file")


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="freezeframe-bench-") as folder,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        port = taken.getsockname()[1]
        taken.close()
        log = Path(folder) / "server.log"
        with log.open("wb") as output:
            server = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-p", str(port)], stdout=output, stderr=output
            )
        try:
            result = measured(Path(folder), port, log)
        finally:
            server.terminate()
            server.wait()
    keep("object_store", result)
    return int(result["most_in_sequence"] > IN_SEQUENCE_LIMIT)


def measured(folder: Path, port: int, log: Path) -> dict[str, Any]:
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "FREEZEFRAME_ROOT": "s3://bench/store",
        "FREEZEFRAME_STATE_DIR": str(folder / "state"),
        "FREEZEFRAME_SPARK_JARS_DIR": str(Path(__file__).parents[1] / ".cache" / "jars"),
        "FREEZEFRAME_SPARK": "auto",
        "FREEZEFRAME_SPARK_IDLE_SECONDS": "5",
    }
    made_bucket(port)
    from latency import LatencyStorage

    from freezeframe.engine.spark import SparkEngine
    from freezeframe.script.tenants import storage_at
    from freezeframe.settings import load_settings
    from freezeframe.store.snapshot_store import Store

    settings = load_settings()
    storage = LatencyStorage(storage_at(settings.root, settings), LATENCY_SECONDS)
    engine = SparkEngine(settings)
    try:
        stream = Store(storage, engine, settings).tenant("acme", create=True).stream("Lead")
        stream.update(rows(range(STORED), seed=1), key="Id")
        updates = []
        for number in range(WARM_UP + RUNS + 2):
            frame = batch(number, STORED, BATCH)
            # The last but one leaves the key to the stream, which has to be asked for it.
            options: dict[str, Any] = {"key": "Id"} if number != WARM_UP + RUNS else {}
            if number > WARM_UP + RUNS:  # the last one has its keys looked for by Spark
                large = settings.model_copy(update={"engine": "spark"})
                stream = Store(storage, engine, large).tenant("acme").stream("Lead")
                _ = stream.version
            seen, asked, started = len(lines(log)), len(storage.requests), time.perf_counter()
            assert stream.update(frame, **options).inserted == BATCH // 10
            seconds = time.perf_counter() - started
            updates.append(counted(storage.requests[asked:], lines(log)[seen:], seconds))
        writes = {name: written(engine.session, log, name) for name in COMMITTERS}
    finally:
        engine.close()
    *kept, without_key, by_spark = updates[WARM_UP:]
    return {
        "rows": {"stored": STORED, "batch": BATCH},
        "latency_seconds": LATENCY_SECONDS,
        "most_in_sequence": max(item["logs_in_sequence"] for item in kept),
        "limit": IN_SEQUENCE_LIMIT,
        "updates": kept,
        "update_without_key": without_key,
        "update_searched_by_spark": by_spark,
        "update": summary([item["seconds"] for item in kept]),
        "requests_of_a_write_by_spark": writes,
    }


def counted(ours: Sequence[Any], all_lines: Sequence[str], seconds: float) -> dict[str, Any]:
    """Requests of one update: those for logs, leases and the registry, and those for rows."""
    from latency import in_sequence

    logs = [our for our in ours if not our.name.endswith(".parquet")]
    return {
        "logs": len(logs),
        "logs_in_sequence": len(in_sequence(logs)),
        "ours": len(ours),
        "ours_in_sequence": len(in_sequence(ours)),
        "verbs": dict(Counter(our.verb for our in ours)),
        "spark": len(all_lines) - len(ours),
        "seconds": round(seconds, 3),
    }


def written(session: Any, log: Path, committer: str) -> int:
    """How many requests Spark needs to write a frame as one file, by a committer of Hadoop's."""
    frame = session.range(BATCH).coalesce(1)
    for number in range(2):  # the first time it also looks at the bucket
        before = len(lines(log))
        writer = frame.write.mode("append").option("fs.s3a.committer.name", committer)
        writer.parquet(f"s3a://bench/written/{committer}-{number}")
    return len(lines(log)) - before


def lines(log: Path) -> list[str]:
    """The requests that the server has seen."""
    return [line for line in log.read_text(errors="replace").splitlines() if "HTTP/1.1" in line]


def made_bucket(port: int) -> None:
    """The bucket, once the server answers."""
    import boto3
    from botocore.exceptions import EndpointConnectionError

    deadline = time.monotonic() + START_SECONDS
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
    while True:
        try:
            client.create_bucket(Bucket="bench")
        except EndpointConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
