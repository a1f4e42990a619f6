"""The control database: its URL, connections, transactions and errors, on SQLite or PostgreSQL.

It knows nothing of stores and holds none of the tenants' data. Only the modules of this package see rows.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection

from freezeframe.clock import now_ms
from freezeframe.control.control_file import control_file
from freezeframe.control.upgrade import is_current, upgrade
from freezeframe.errors import (
    FreezeframeError,
    InvalidOption,
    ReportDamage,
    SetupError,
    StorageFull,
    TryAgain,
)
from freezeframe.settings import Settings
from freezeframe.storage.local import make_folder, sync_folder

BUSY_SECONDS = 30.0
WRITES = "freezeframe_writes"  # the execution option that says which kind of transaction begins
_LOOKED_EVERY_SECONDS = (0.0005, 0.002)
_BUSY_TIMEOUT = f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}"


def _on_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say, not where the driver guesses
    cursor = connection.cursor()
    cursor.execute(_BUSY_TIMEOUT)
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = FULL")

    # A write-ahead log, so that readers do not wait for the writer.
    def switch() -> None:
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            cursor.execute("PRAGMA journal_mode = WAL")

    _run_when_unlocked(switch)  # SQLite does not wait here, despite the time-out
    cursor.close()


def _on_begin(connection: Connection) -> None:
    if not connection.get_execution_options().get(WRITES, False):
        connection.exec_driver_sql("BEGIN")
        return
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)  # noqa: S101 - set for engines of SQLite alone
    # SQLite's own wait grows to a tenth of a second at a time: a writer who had met others often came last
    # for as long as they kept coming, though a transaction here takes a few milliseconds.
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        _run_when_unlocked(lambda: driver.execute("BEGIN IMMEDIATE"))
    except sqlite3.OperationalError:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # once more: its error is SQLAlchemy's own
    finally:
        driver.execute(_BUSY_TIMEOUT)


def _run_when_unlocked(act: Callable[[], object]) -> None:
    """Call ``act`` as soon as no other connection has the file locked."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            act()
        except sqlite3.OperationalError as error:
            # Not by the code: a database in recovery, or locked by a checkpoint, has others.
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(random.uniform(*_LOOKED_EVERY_SECONDS))  # noqa: S311 - jitter
        else:
            return


# The database's clock, which all workers share and which alone decides about leases.

Clock = Callable[[Connection], int]

# The time of the statement: the transaction's own would stand still while it waits for a lock.
_POSTGRESQL_NOW_MS = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")


def database_now_ms(connection: Connection) -> int:
    """Return milliseconds since 1970, by the clock of the machine on which the database runs."""
    if connection.dialect.name == "sqlite":  # the database runs in this process, on this machine's clock
        return now_ms()
    return int(connection.execute(_POSTGRESQL_NOW_MS).scalar_one())


def milliseconds(moment: datetime) -> int:
    """Return a moment in milliseconds since 1970; ``moment`` has a zone."""
    return round(moment.timestamp() * 1000)


_FORBIDDEN = "permission denied"
# Drivers' messages where a retry does not help; not all of these have an error code.
_SETUP = (
    "unable to open database file",
    "readonly database",
    "read-only database",
    "password authentication failed",
    "no pg_hba.conf entry",
    _FORBIDDEN,
    "no password supplied",
    "could not translate host name",
    "failed to resolve host",
)
_DAMAGE = ("file is not a database", "malformed")
_FULL = ("disk is full", "no space left", "disk full")
_ABSENT = "does not exist"


@contextmanager
def typed_errors(url: URL) -> Iterator[None]:
    """Raise failures of the database and its driver as errors of this package.

    A violated constraint or a wrong statement is not translated: it is a bug.
    """
    try:
        yield
    except (OperationalError, InterfaceError, NoFreeConnection) as error:
        raise _to_typed_error(url, _driver_message(error)) from error
    except DBAPIError as error:
        said = _driver_message(error)
        if error.connection_invalidated or any(words in said for words in (*_DAMAGE, _FORBIDDEN)):
            raise _to_typed_error(url, said) from error
        raise
    except ModuleNotFoundError as error:
        raise SetupError(
            "The driver for PostgreSQL is not installed.",
            cause=str(error),
            remedy="Install it: pip install 'freezeframe[postgresql]'.",
        ) from error


def _driver_message(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip()


def _to_typed_error(url: URL, said: str) -> FreezeframeError:
    name = url.render_as_string(hide_password=True)
    folded = said.lower()
    if any(words in folded for words in _DAMAGE):
        return ReportDamage(
            f"The control database {name} is damaged.",
            cause=said,
            remedy="Restore it from a backup; the tenants' data is not affected.",
            code="CONTROL_DATABASE_DAMAGED",
        )
    if any(words in folded for words in _FULL):
        return StorageFull(
            f"The control database {name} has no space left.", cause=said, remedy="Make room and try again."
        )
    absent = _ABSENT in folded and ("database" in folded or "role" in folded)
    if absent or any(words in folded for words in _SETUP):
        return SetupError(
            f"The control database {name} cannot be used.",
            cause=said,
            remedy="Use the service's own role, or let this one write entries: "
            f"GRANT SELECT, INSERT ON audit TO {url.username};"
            if "denied for table audit" in folded
            else "Check the setting database_url, and who may read and write there.",
        )
    return TryAgain(
        f"The control database {name} cannot be reached, or is busy.",
        cause=said,
        remedy="Try again; if it fails again, check that the database runs.",
        code="CONTROL_DATABASE_UNAVAILABLE",
    )


_CONNECT_SECONDS = 10
# Of a process on SQLite, beside the five that stay open: a worker of the service has 40 threads, and those
# that wait to write must leave a connection to those that only read.
_MORE_CONNECTIONS = 40
# A stalled worker must not hold locks that all others wait for.
_POSTGRESQL_OPTIONS = "-c lock_timeout=30000 -c idle_in_transaction_session_timeout=60000"


class ControlDatabase:
    """One control database at its newest version; safe to share between threads, not after a fork.

    ``ControlDatabase.open`` makes one. ``clock`` is the database's own.
    """

    def __init__(self, engine: Engine, clock: Clock = database_now_ms) -> None:
        self._engine = engine
        self._writing = engine.execution_options(**{WRITES: True})
        self._clock = clock

    @classmethod
    def open(cls, url: str, clock: Clock = database_now_ms) -> ControlDatabase:
        """Return the database at ``sqlite:///path`` or ``postgresql://user:password@host/name``.

        It is made if it is not there (a PostgreSQL database must be, but may be empty) and upgraded if an
        older freezeframe made it; any number of processes may do so at once.
        """
        parsed = _parse_url(url)
        with typed_errors(parsed):
            database = cls(_engine(parsed), clock)
        try:
            database._upgrade()
        except BaseException:
            database.close()
            raise
        return database

    @property
    def name(self) -> str:
        """The URL, without a password."""
        return self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Open a transaction that may write: committed at the end, rolled back by an exception.

        On SQLite it waits until it is the only one (``BEGIN IMMEDIATE``).
        """
        with typed_errors(self._engine.url), self._writing.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads, and waits for no writer."""
        with typed_errors(self._engine.url), self._engine.connect() as connection:
            yield connection

    def now_ms(self, connection: Connection) -> int:
        """Return milliseconds since 1970 by the database's clock."""
        return self._clock(connection)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._engine.dispose()

    def _upgrade(self) -> None:
        with self.read() as connection:
            if is_current(connection):
                return
        with self.begin() as connection:
            upgrade(connection)


def insert_if_absent(connection: Connection, table: Table, values: dict[str, Any]) -> bool:
    """Insert a row unless its key exists, also under concurrent inserts; return whether it was inserted."""
    return insert_absent(connection, table, [values]) == 1


def insert_absent(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> int:
    """Insert the rows whose keys do not exist, also under concurrent inserts; return their number."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table).on_conflict_do_nothing()
    return connection.execute(statement, rows, execution_options={"preserve_rowcount": True}).rowcount


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise _no_database(url, str(error)) from error
    backend = parsed.get_backend_name()
    if backend in {"postgresql", "postgres"}:
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or not parsed.database or parsed.database == ":memory:":
        raise _no_database(parsed.render_as_string(hide_password=True), "")
    return parsed.set(drivername="sqlite")


def _no_database(url: str, cause: str) -> InvalidOption:
    return InvalidOption(
        f"{url!r} is not a control database.",
        cause=cause,
        remedy="Set database_url to sqlite:///path/of/a/file or postgresql://user:password@host/name.",
    )


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        arguments = {"connect_timeout": _CONNECT_SECONDS, "options": _POSTGRESQL_OPTIONS}
        return create_engine(url, pool_pre_ping=True, connect_args={**arguments, **url.query})
    path = Path(str(url.database))
    try:
        # Readable by its owner alone, before SQLite would make it for all; it is durable.
        if not path.exists():
            make_folder(path.parent)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            sync_folder(path.parent)
    except OSError as error:
        raise SetupError(
            f"The control database cannot be made at {path}.",
            cause=str(error),
            remedy="Check who may write there, or set database_url.",
        ) from error
    waiting = {"timeout": BUSY_SECONDS}
    engine = create_engine(url, connect_args=waiting, max_overflow=_MORE_CONNECTIONS)
    # Every new connection is set up, and each transaction begins as its options say.
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def database_url(settings: Settings, root: str) -> str:
    """Return the URL of the control database of the store at ``root``."""
    if settings.database_url:
        return settings.database_url
    if "://" in root:
        raise InvalidOption(
            f"A store at {root} needs a separate control database.",
            cause="An object store cannot hold a database.",
            remedy="Set database_url (FREEZEFRAME_DATABASE_URL) to sqlite:///path or postgresql://….",
        )
    return URL.create("sqlite", database=str(control_file(root))).render_as_string()
