"""Spark as somebody else would start it, from the pip package alone: a cluster, a Connect server."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import MappingProxyType

import pyspark

from freezeframe.engine.configuration import JAVA_OPTIONS, SERVER_CLASS, STARTED_PATTERN
from freezeframe.engine.java import find_java

START_SECONDS = 120
HOST = "127.0.0.1"

# The part of a job's script that all kinds of Spark are given: its rows, and how it updates its `stream`.
ROWS_AND_UPDATE = """numbers = range(1000)
rows = pd.DataFrame({"Id": [f"A{n:04d}" for n in numbers], "Name": "n", "Size": [n / 4 for n in numbers]})
told = []
def update(frame, **options):
    receipt = stream.update(frame, key=["Id"], **options)
    told.append([receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted])
"""
# An insert, an upsert, a full extract and a frame of Spark's own, as their receipts count them.
COUNTS = [[1000, 0, 0, 0], [0, 300, 0, 0], [0, 900, 0, 100], [50, 50, 0, 0]]


SPARK = Path(pyspark.__file__).parent


def java(main, *arguments, heap="600m", classes=(), spark=SPARK):
    """A command line of Spark's, as its own scripts would make it; ``classes`` are jars beside Spark's."""
    path = os.pathsep.join([f"{spark}/jars/*", *map(str, classes)])
    return [str(find_java().command), f"-Xmx{heap}", *JAVA_OPTIONS, "-cp", path, main, *arguments]


@contextlib.contextmanager
def running(command, log, pattern, **environment):
    """A process, and what the pattern finds in its log; it ends with its children."""
    others = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            # A server that is told of another one refuses to start.
            env={**others, "SPARK_LOCAL_IP": HOST, **environment},
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (found := re.search(pattern, log.read_text(errors="replace"))):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield found
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def connect_server(log, *apart, options=MappingProxyType({}), environment=None, **process):
    """The port of a Connect server; ``apart`` are words in front of its command; ``process`` is `java`'s."""
    options = {
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.master": "local[2]",
        **options,
    }
    words = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    submit = ["org.apache.spark.deploy.SparkSubmit", *words, "--class", SERVER_CLASS, "spark-internal"]
    # The name and not a number is all that the server tells of its address.
    command = [*apart, *java(*submit, **process)]
    with running(command, log, STARTED_PATTERN, **(environment or {})) as found:
        yield int(found[1])


@contextlib.contextmanager
def standalone_cluster(folder, executor_memory="700m"):
    """(its address, settings of a driver that is small): a master and two workers of one core each.

    The workers' folders are ``work-0`` and ``work-1``.
    """
    port = free_port()
    home = {"SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": "2.13"}
    words = f"--host {HOST} --webui-port 0".split()
    address = f"spark://{HOST}:{port}"
    master = java("org.apache.spark.deploy.master.Master", *words, "--port", str(port))
    with contextlib.ExitStack() as stack:
        stack.enter_context(running(master, folder / "master.log", "I have been elected leader", **home))
        for number in range(2):
            work = [*words, "-c", "1", "-m", "1g", "-d", str(folder / f"work-{number}"), address]
            worker = java("org.apache.spark.deploy.worker.Worker", *work, heap="256m")
            log = folder / f"worker-{number}.log"
            stack.enter_context(running(worker, log, "Successfully registered with master", **home))
        (folder / "spark-defaults.conf").write_text(f"spark.executor.memory {executor_memory}\n")
        yield (
            address,
            {
                "FREEZEFRAME_STATE_DIR": str(folder / "state"),
                "FREEZEFRAME_SPARK_MEMORY": "512m",
                "FREEZEFRAME_SPARK_IDLE_SECONDS": "2",
                "SPARK_CONF_DIR": str(folder),
            },
        )


def free_port():
    """A port that nobody listens at."""
    with socket.create_server((HOST, 0)) as found:
        return found.getsockname()[1]
