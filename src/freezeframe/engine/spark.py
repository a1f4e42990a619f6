"""The Spark engine: one lazily opened session in which streams are merged, landed and read."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.base import Landed, LandTask, MergeResult, MergeTask
from freezeframe.engine.connect import Connection, connect
from freezeframe.engine.server import private_folder
from freezeframe.engine.spark_columns import struct_type
from freezeframe.engine.spark_errors import spark_errors
from freezeframe.engine.spark_files import local_folder, read_files
from freezeframe.engine.spark_landing import settle, write_frame
from freezeframe.engine.spark_merge import merge
from freezeframe.engine.spark_sharing import require_shared
from freezeframe.errors import EngineUnavailable
from freezeframe.settings import Settings

_Answer = TypeVar("_Answer")


class SparkEngine:
    """`TableEngine` on Spark Connect. Nothing is started or connected before the first use.

    A server of ours that died between two calls is started again, once per call; every step is
    written so that doing it again has the same effect.
    """

    def __init__(self, settings: Settings, progress: Callable[[str], None] | None = None) -> None:
        self._settings = settings
        self._progress = progress or (lambda _text: None)
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._shared: set[Path] = set()

    @property
    def session(self) -> SparkSession:
        """The engine's own session, opened if it is not."""
        return self._connected().session

    def merge(self, task: MergeTask) -> MergeResult:
        """Carry out one update; see `TableEngine.merge`."""
        return self._answered(lambda session: merge(session, task))

    def land(self, frame: Any, task: LandTask) -> Landed:
        """Write a Spark frame as Parquet; see `TableEngine.land`."""
        with spark_errors():
            schema = write_frame(frame, task)
        return self._answered(lambda session: settle(session, task, schema))

    def read(self, files: tuple[str, ...], schema: Mapping[str, Any]) -> Any:
        """A lazy Spark frame over Parquet files; see `TableEngine.read`."""
        return self._answered(lambda session: read_files(session, files, struct_type(schema)))

    def require_shared(self, folder: str) -> None:
        """Check that Spark and this process see the same files; see `TableEngine.require_shared`."""
        path = local_folder(folder)
        if path is None or path in self._shared:
            return
        memory = private_folder(private_folder(self._settings.state_dir) / "shared")
        self._answered(lambda session: require_shared(session, path, memory))
        self._shared.add(path)

    def close(self) -> None:
        """End the session and let go of the server. Idempotent; a later call opens a new session."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def _connected(self) -> Connection:
        with self._lock:
            if self._connection is None:
                self._connection = connect(self._settings, self._progress)
            return self._connection

    def _answered(self, ask: Callable[[SparkSession], _Answer]) -> _Answer:
        """The answer, asked once more on a new session if the first one was gone."""
        connection = self._connected()
        try:
            with spark_errors():
                return ask(connection.session)
        except EngineUnavailable as error:
            if not error.details.get("is_gone"):
                raise
            self._abandon(connection)
        connection = self._connected()
        with _with_log(connection), spark_errors():
            return ask(connection.session)

    def _abandon(self, connection: Connection) -> None:
        with self._lock:
            # Another thread may have noticed first and have opened the next one.
            if self._connection is connection:
                self._connection = None
        connection.abandon()


@contextlib.contextmanager
def _with_log(connection: Connection) -> Iterator[None]:
    try:
        yield
    except EngineUnavailable as error:
        tail = connection.log_tail()
        error.cause = f"{error.cause}\n{tail}" if tail else error.cause
        raise
