"""SQLite as the control database: durable, and shared by several processes."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from freezeframe.storage.local import make_folder, sync_folder

BUSY_SECONDS = 30.0
WRITES = "freezeframe_writes"  # the execution option that says which kind of transaction begins
_LOOKED_EVERY_SECONDS = (0.0005, 0.002)
_BUSY_TIMEOUT = f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}"


def create_file(path: Path) -> None:
    """Make the file, readable by its owner alone, before SQLite would make it for all; it is durable."""
    if path.exists():
        return
    make_folder(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    sync_folder(path.parent)


def set_up(engine: Engine) -> None:
    """Every connection gets our settings, every transaction the kind that it says.

    A transaction that will write says so at once (``BEGIN IMMEDIATE``): two that read first and write
    then would both hold what the other waits for, and SQLite would refuse one of them without waiting.
    """
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)


def _on_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say, not where the driver guesses
    cursor = connection.cursor()
    cursor.execute(_BUSY_TIMEOUT)
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = FULL")
    _write_ahead(cursor)
    cursor.close()


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Readers do not wait for the writer; the file remembers it, so it is switched once."""

    def switch() -> None:
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            cursor.execute("PRAGMA journal_mode = WAL")

    _run_when_unlocked(switch)  # SQLite does not wait here, despite the time-out


def _on_begin(connection: Connection) -> None:
    if not connection.get_execution_options().get(WRITES, False):
        connection.exec_driver_sql("BEGIN")
        return
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)  # noqa: S101 - set_up is for engines of SQLite
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
    """Do it as soon as no other connection has the file locked."""
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
