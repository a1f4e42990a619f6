"""A standalone cluster of Spark on this machine, from the pip package alone."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from processes import running

WORKERS = 2
MOUNTED = 'mount --bind "$0" "$1" && shift && exec "$@"'


@contextlib.contextmanager
def standalone_cluster(folder: Path, executor_memory: str, disk: Path) -> Iterator[str]:
    """The address of a master of two workers of one core each.

    Each worker sees a folder of its own under the path ``disk`` (a mount namespace, which needs root).
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
        stack.enter_context(running([*master, "--port", str(port)], log, "I have been elected leader"))
        for number in range(WORKERS):
            own = folder / f"worker-{number}"
            own.mkdir()
            apart = ["unshare", "--mount", "sh", "-c", MOUNTED, own, disk]
            starts = [home / "bin" / "spark-class", "org.apache.spark.deploy.worker.Worker", *words]
            starts += ["-c", "1", "-m", executor_memory, "-d", disk / "work", address]
            log = folder / f"worker-{number}.log"
            stack.enter_context(running([*apart, *starts], log, "Successfully registered with master"))
        yield address
