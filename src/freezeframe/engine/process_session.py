"""The Spark session of a process: made once, replaced when its server is lost."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession as AnySession
from pyspark.sql.connect.session import SparkSession

from freezeframe.engine.classic_session import ClassicConnection
from freezeframe.engine.configuration import REMOTE, foreign_remote
from freezeframe.engine.connect import Connection, address_of, can_share, connect, is_own_session
from freezeframe.engine.java import without_jvm_stack
from freezeframe.engine.plans.columns import plans_in
from freezeframe.engine.spark_errors import spark_errors
from freezeframe.errors import EngineUnavailable
from freezeframe.settings import Settings

# A session that the script made is used as it is, classic or Connect. Where there is none, one is made where
# the settings say that Spark is, and becomes the default session of the process and the active one of the
# thread. ``SPARK_REMOTE`` and Spark's own switch for Connect are set then, because its builder reads them. On
# a server of ours the builder makes further sessions as the first was made: in the job's own database.

_Answer = TypeVar("_Answer")

# Set by PySpark itself for as long as a process uses Connect.
_CONNECT_SWITCH = "SPARK_CONNECT_MODE_ENABLED"

# Spark's builder holds this while it has a session made: a second lock could be taken crosswise.
_lock = SparkSession._lock  # noqa: SLF001
_made: Connection | None = None
_before: dict[str, str | None] = {}
_BUILDER = SparkSession.Builder
_VALIDATE = AnySession.Builder._validate_startup_urls  # noqa: SLF001


def process_session(settings: Settings, progress: Callable[[str], None]) -> Any:
    """Return the session of this process; make one if there is none or its own server died."""
    with _lock:
        found = _existing_session()
        is_dead = _made is not None and found is _made.session and not _made.is_alive()
        if found is None or is_dead:
            _end(is_gone=is_dead)
            found = _begun(settings, progress)
        return found


def is_of_this_machine(session: Any) -> bool:
    """Return whether the session was made here and its server is known to see this machine's files."""
    made = _made
    return made is not None and session is made.session and made.sees_our_files()


def is_made_here(session: Any) -> bool:
    """Return whether the session was made by this library, for this process."""
    return _made is not None and session is _made.session


def own_address(session: Any) -> str:
    """Return the address, token included, of the server of ours that a session is on; empty for others."""
    return _made.variables.get(REMOTE, "") if _made is not None and is_made_here(session) else ""


def run_on_session(
    settings: Settings, progress: Callable[[str], None], ask: Callable[[Any], _Answer]
) -> _Answer:
    """Return the answer of the session of this process; asked once more if a session made here was gone."""
    session = process_session(settings, progress)
    try:
        with spark_errors():
            return ask(session)
    except EngineUnavailable as error:
        if not error.details.get("is_gone") or not _forgotten(session):
            raise
    with spark_errors():
        return ask(process_session(settings, progress))


def _existing_session() -> Any:
    for kind in (AnySession, SparkSession):
        with suppress(PySparkRuntimeError):
            return kind.active()
    return None


def _begun(settings: Settings, progress: Callable[[str], None]) -> SparkSession:
    global _made  # noqa: PLW0603 - there is one process
    _made = connect(settings, progress, is_process=True)
    if _made.database is not None:
        SparkSession.Builder = _builder(settings, progress)  # type: ignore[misc]
    SparkSession._set_default_and_active_session(_made.session)  # noqa: SLF001 - as its own builder does
    address = {} if foreign_remote(os.environ) else _made.variables
    if address:
        AnySession.Builder._validate_startup_urls = _leave_master_out  # type: ignore[assignment,method-assign]  # noqa: SLF001
    for name, value in {**address, _CONNECT_SWITCH: "1"}.items():
        _before[name] = os.environ.get(name)
        os.environ[name] = value
    return _made.session


def _builder(settings: Settings, progress: Callable[[str], None]) -> type[SparkSession.Builder]:
    class Builder(_BUILDER):
        """Spark's own, but a session on a server of ours is made like that of the process."""

        def create(self) -> SparkSession:
            made = _made
            if made is None or self._options.get("spark.remote") != made.variables[REMOTE]:
                return super().create()
            session: SparkSession = (
                process_session(settings, progress)
                if made.session.is_stopped
                else connect(settings, progress, is_process=True).session
            )
            self._apply_options(session)
            return session

    return Builder


def _leave_master_out(builder: AnySession.Builder) -> None:
    """Take the master out of a builder's options: Spark would refuse it, and tell the server's token."""
    master = builder._options.pop("spark.master", None)  # noqa: SLF001
    if master is not None:
        sys.stderr.write(f"The master {master!r} is not used: the session is freezeframe's.\n")
    _VALIDATE(builder)


def _end(*, is_gone: bool = False) -> None:
    global _made
    ended, _made = _made, None
    if ended is None:
        return
    AnySession.Builder._validate_startup_urls = _VALIDATE  # type: ignore[method-assign]  # noqa: SLF001
    for name, value in _before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    _before.clear()
    if is_gone:
        ended.abandon()
    else:
        ended.close()
    # Its server has released it or is gone: this removes it from where Spark's builder looks.
    ended.session.release_session_on_close = False
    ended.session.stop()


def _forgotten(session: Any) -> bool:
    """Return whether the session was made here; then the next question makes another one."""
    with _lock:
        is_ours = _made is not None and _made.session is session
        if is_ours:
            _end(is_gone=True)
        return is_ours


class SparkLink:
    """One session at a time; on a server of ours it is the one that the server's other processes use too.

    A shared session has compiled its plans already when a job begins, which is most of what the first
    merge of a process costs. Nothing with a name may be left in it: it belongs to all.
    """

    def __init__(self, settings: Settings, progress: Callable[[str], None]) -> None:
        self._settings = settings
        self._progress = progress
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """Return the open connection; opened if it is not."""
        with self._lock:
            # What runs in the script's own Spark ends with it.
            if self._connection is None or not (self._connection.attachment or self._connection.is_alive()):
                self._connection = self._opened()
            return self._connection

    def _opened(self) -> Connection:
        """Connect to the Spark of the script's own session, unless the settings name another one."""
        settings, session = self._settings, _existing_session()
        if settings.spark == "auto" and not (session is None or is_own_session(session)):
            if not isinstance(session, SparkSession):
                with spark_errors():
                    found = ClassicConnection.beside(session, settings)
                if found is not None:
                    return found
            elif address := address_of(session):
                settings = settings.model_copy(update={"spark": address})
        return connect(settings, self._progress, is_shared=can_share(self._settings))

    def run(self, ask: Callable[[SparkSession], _Answer]) -> _Answer:
        """Return the answer, asked once more on a new session if the first one was gone."""
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
            with _with_log(connection), spark_errors(), plans_in(connection.session):
                return ask(connection.session)
        except EngineUnavailable as error:
            if error.details.get("is_gone"):
                with self._lock:
                    # Another thread may already have opened the next one.
                    if self._connection is connection:
                        self._connection = None
                connection.abandon()
            raise


@contextlib.contextmanager
def _with_log(connection: Connection) -> Iterator[None]:
    try:
        yield
    except EngineUnavailable as error:
        tail = connection.log_tail()
        error.cause = without_jvm_stack(f"{error.cause}\n{tail}") if tail else error.cause
        raise
