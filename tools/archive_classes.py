"""Make the archive of Spark's classes with which the servers of the tests start, in a folder.

Run as ``python tools/archive_classes.py FOLDER`` in the project's environment; an archive that is there is
left alone. Loading and verifying the classes anew is half of what a start of a server costs.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from freezeframe.engine.connect import connect
from freezeframe.engine.java import find_java
from freezeframe.engine.server.launch import class_archive
from freezeframe.settings import Settings

WAITED_SECONDS = 600


def main(folder: Path) -> int:
    """Start a server, let it work, and wait until it has archived its classes; the exit code."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    archive = class_archive(folder, find_java())
    if archive.exists():
        return 0
    connection = connect(Settings(state_dir=folder, spark_memory="1g", spark_idle_seconds=600), _tell)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        rows = connection.session.range(1000)
        rows.groupBy("id").count().write.parquet(f"{place}/rows")
        connection.session.read.parquet(f"{place}/rows").join(rows, "id").orderBy("id").toArrow()
    connection.close()
    # A server makes the archive when it has been idle for some seconds.
    deadline = time.monotonic() + WAITED_SECONDS
    while not archive.exists():
        if time.monotonic() > deadline:
            _tell(f"There is no archive after {WAITED_SECONDS} s; the tests run without it, at more cost.")
            return 1
        time.sleep(0.2)
    return 0


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
