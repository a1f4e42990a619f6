"""A job's own database in the catalog of a warm server, which all jobs of the server share.

Its name is a file in the server's folder that every process of the job holds a lock of. The process that
made the database drops it at its end. For a killed job the server's watcher finds a file that no process
holds and runs this module (``python -m freezeframe.engine.server.job_database FOLDER``), which drops the
database and ends the sessions. Ending a session interrupts its queries and removes its views, files and
functions.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from freezeframe.engine.server.server import living_address
from freezeframe.engine.server.watcher import DATABASES, DEFAULT_CLOSED
from freezeframe.errors import InvalidOption

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

VARIABLE = "FREEZEFRAME_SPARK_DATABASE"
"""The variable that names a run's file to its processes."""

# Spark's error shows this path, so it says what to do. No folder can be created below a device.
_NO_FOLDER = "/dev/null/shared_by_all_jobs__use_freezeframe.spark()"

_ON_SERVER = "server:"

# Plans that can access the tables and views of other jobs.
_SHARED_BY_ALL = re.compile(
    r"\bcreate\s+(or\s+replace\s+)?global\s+temp|\bglobal_temp\s*\.|"
    r"\bcreate\s+(database|schema|namespace)\b(?!\s+if not exists job_)",
    re.IGNORECASE,
)


@contextmanager
def claim(folder: Path) -> Iterator[Path]:
    """A name for the database of a run on the server of that folder, held until the block ends."""
    file = _new_file(folder)
    with _lock_file(file):
        yield file


@dataclass(slots=True)
class JobDatabase:
    """The database that a session is in; ``leave`` drops it if this session was the first of its job."""

    file: Path
    _lock: IO[str]
    _is_maker: bool

    @classmethod
    def enter(cls, session: SparkSession, folder: Path) -> JobDatabase:
        """Put a session on the server of that folder into the database of its job, made if it is not there.

        The job is a run's, where this process is part of one, and else the session itself.
        """
        named = Path(os.environ.get(VARIABLE, ""))
        file = named if named.parent == folder / DATABASES else _new_file(folder)
        lock = _lock_file(file)
        is_maker = not lock.tell()
        lock.write(f"{session.session_id}\n")
        lock.flush()
        # No table can be saved in the default database, which all jobs of the server share.
        closed = folder / DEFAULT_CLOSED
        if not closed.exists():
            session.sql(f"alter database default set location '{_NO_FOLDER}'")
            closed.touch()
        session.sql(f"create database if not exists {file.name}")
        session.sql(f"use {file.name}")
        # By the server's own id of the session its Python daemons find the job that they end with.
        lock.write(f"{_ON_SERVER}{session.client._server_session_id}\n")  # noqa: SLF001 - Spark has no other way
        lock.flush()
        return cls(file, lock, is_maker)

    def leave(self, session: SparkSession) -> None:
        """Leave the database; after an error of Spark, which passes through, the watcher drops it."""
        with self._lock:
            if self._is_maker:
                # Reattaching needs a thread, and an ending process cannot start one.
                session.client.disable_reattachable_execute()
                session.sql(f"drop database if exists {self.file.name} cascade")
                self.file.unlink(missing_ok=True)


def require_own(request: object) -> None:
    """Refuse a plan that would create catalog objects visible to all jobs of the server."""
    command = request.plan.command  # type: ignore[attr-defined]
    kind = command.WhichOneof("command_type")
    is_shared = kind == "create_dataframe_view" and command.create_dataframe_view.is_global
    if kind == "sql_command":
        is_shared = bool(_SHARED_BY_ALL.search(command.sql_command.input.sql.query))
    if is_shared:
        raise InvalidOption(
            "A job cannot create global temporary views or databases.",
            cause="All jobs of the warm Spark server would see them, also those of other tenants.",
            remedy="Use createOrReplaceTempView, or a table without a database's name: each job has its own"
            " database, which is dropped with the job.",
        )


def _new_file(folder: Path) -> Path:
    return folder / DATABASES / f"job_{uuid.uuid4().hex}"


def _lock_file(file: Path) -> IO[str]:
    """Return the file, open at its end and locked; a restart of the server deletes it."""
    file.parent.mkdir(mode=0o700, exist_ok=True)
    lock = file.open("a")
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def clear(folder: Path) -> None:
    """Drop the databases named in ``folder`` that no process holds; do nothing if the server is gone."""
    address = living_address(folder)
    if address is None:
        return
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 - only the cleanup makes a session

    session = SparkSession(connection=address.url)
    with closing(session.client):
        for file in (folder / DATABASES).iterdir():
            with suppress(FileNotFoundError, BlockingIOError), file.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for session_id in lock.read().split():
                    if not session_id.startswith(_ON_SERVER):
                        _end(f"{address.url};session_id={session_id}")
                session.sql(f"drop database if exists {file.name} cascade")
                file.unlink()
        session.client.release_session()


def _end(url: str) -> None:
    import grpc  # noqa: PLC0415 - as above
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415

    other = SparkSession(connection=url)
    # The session may have ended already.
    with closing(other.client), suppress(PySparkException, grpc.RpcError):
        other.client.release_session()


if __name__ == "__main__":
    clear(Path(sys.argv[1]))
