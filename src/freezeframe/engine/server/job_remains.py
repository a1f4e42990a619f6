"""Cleanup after killed jobs on a warm server: drops their databases and ends their sessions.

Run by the server's watcher (``python -m freezeframe.engine.server.job_remains FOLDER``), which has no
Spark of its own. Ending a session interrupts its queries and removes its views, files and functions.
"""

from __future__ import annotations

import fcntl
import sys
from contextlib import closing, suppress
from pathlib import Path

import grpc
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.server.server import living_address
from freezeframe.engine.server.watcher import DATABASES


def clear(folder: Path) -> None:
    """Clear what the files of ``folder`` name that nobody holds; nothing if the server is gone."""
    address = living_address(folder)
    if address is None:
        return
    session = SparkSession(connection=address.url)
    with closing(session.client):
        for file in (folder / DATABASES).iterdir():
            with suppress(FileNotFoundError, BlockingIOError), file.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for session_id in lock.read().split():
                    _end(f"{address.url};session_id={session_id}")
                session.sql(f"drop database if exists {file.name} cascade")
                file.unlink()
        session.client.release_session()


def _end(url: str) -> None:
    other = SparkSession(connection=url)
    # The session may have ended already.
    with closing(other.client), suppress(PySparkException, grpc.RpcError):
        other.client.release_session()


if __name__ == "__main__":
    clear(Path(sys.argv[1]))
