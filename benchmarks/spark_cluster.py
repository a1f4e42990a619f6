"""A standalone cluster of Spark on this machine, from the pip package alone."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

WORKERS = 2
START_SECONDS = 120


@contextlib.contextmanager
def standalone_cluster(
    folder: Path, executor_memory: str, *, disk: Path | None = None
) -> Iterator[tuple[str, list[int]]]:
    """(the master's address, the processes of its workers): two workers of one core each.

    With ``disk`` each worker sees a folder of its own under that path (a mount namespace, which needs root).
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    os.environ.update(
        SPARK_HOME=str(home),
        SPARK_SCALA_VERSION="2.13",
        SPARK_LOCAL_IP="127.0.0.1",
        SPARK_CONF_DIR=str(folder),
    )
    (folder / "spark-defaults.conf").write_text(f"spark.executor.memory {executor_memory}\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    words = ["--host", "127.0.0.1", "--webui-port", "0"]
    with contextlib.ExitStack() as stack:
        master = [home / "bin" / "spark-class", "org.apache.spark.deploy.master.Master", *words]
        log = folder / "master.log"
        stack.enter_context(_running([*master, "--port", str(port)], log, "I have been elected leader"))
        workers = []
        for number in range(WORKERS):
            own = folder / f"worker-{number}"
            own.mkdir()
            apart = [
                "unshare",
                "--mount",
                "sh",
                "-c",
                'mount --bind "$0" "$1" && shift && exec "$@"',
                own,
                disk,
            ]
            worker = [home / "bin" / "spark-class", "org.apache.spark.deploy.worker.Worker", *words]
            worker += ["-c", "1", "-m", executor_memory, "-d", (disk or own) / "work", address]
            log = folder / f"worker-{number}.log"
            command = [*apart, *worker] if disk else worker
            started = _running(command, log, "Successfully registered with master")
            workers.append(stack.enter_context(started).pid)
        yield address, workers


@contextlib.contextmanager
def _running(command: list[str | Path], log: Path, pattern: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Spark's once its log holds the pattern."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not re.search(pattern, log.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(log.read_text())
            time.sleep(0.2)
        yield process
    finally:
        process.terminate()
        process.wait()
