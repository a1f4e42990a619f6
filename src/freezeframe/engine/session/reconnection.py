"""Lazily opened Spark connection, reopened once after a lost server."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.errors.jvm_stack import without_jvm_stack
from freezeframe.engine.errors.spark_errors import spark_errors
from freezeframe.engine.session.connect import Connection, connect
from freezeframe.errors import EngineUnavailable
from freezeframe.settings import Settings

_Answer = TypeVar("_Answer")


class SparkLink:
    """One session at a time. With ``is_shared`` it is the one that the server's other processes use too.

    A shared session has compiled its plans already when a job begins, which is most of what the first
    merge of a process costs. Nothing with a name may be left in it: it belongs to all.
    """

    def __init__(self, settings: Settings, progress: Callable[[str], None], *, is_shared: bool) -> None:
        self._settings = settings
        self._progress = progress
        self._is_shared = is_shared
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """The open connection; opened if it is not."""
        with self._lock:
            if self._connection is None:
                self._connection = connect(self._settings, self._progress, is_shared=self._is_shared)
            return self._connection

    def run(self, ask: Callable[[SparkSession], _Answer]) -> _Answer:
        """The answer, asked once more on a new session if the first one was gone.

        Raises:
            EngineUnavailable: neither the first server nor the next one answered.
        """
        try:
            return self._ask(ask)
        except EngineUnavailable as error:
            if not error.details.get("is_gone"):
                raise
        return self._ask(ask)

    def close(self) -> None:
        """Close the connection. Idempotent; a later call opens a new session."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def _ask(self, ask: Callable[[SparkSession], _Answer]) -> _Answer:
        connection = self.connection()
        try:
            with _with_log(connection), spark_errors():
                return ask(connection.session)
        except EngineUnavailable as error:
            if error.details.get("is_gone"):
                self._abandon(connection)
            raise

    def _abandon(self, connection: Connection) -> None:
        with self._lock:
            # Another thread may already have opened the next one.
            if self._connection is connection:
                self._connection = None
        connection.abandon()


@contextlib.contextmanager
def _with_log(connection: Connection) -> Iterator[None]:
    try:
        yield
    except EngineUnavailable as error:
        tail = connection.log_tail()
        error.cause = without_jvm_stack(f"{error.cause}\n{tail}") if tail else error.cause
        raise
