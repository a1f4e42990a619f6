"""The file in which the workers of a machine count together.

A small SQLite file beside the control database. It is not synced to disk: after a crash of the machine
counting begins anew, which is all that is lost.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

from freezeframe.storage.local import make_folder

_BUSY_SECONDS = 5.0


class SharedFile:
    """A SQLite file of any number of threads and processes, with one connection for each thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        make_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # tenant names must not be disclosed

    def connection(self) -> sqlite3.Connection:
        """The connection of this thread, in autocommit mode."""
        # SQLite's connections stay in the thread that made them.
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
            found.execute("PRAGMA journal_mode = WAL")
            found.execute("PRAGMA synchronous = OFF")
            self._local.connection = found
        return found
