"""Counters of a minute or another time, shared by all workers of a machine."""

from __future__ import annotations

import time

from freezeframe.service.limits.shared_file import SharedFile

_ADD = """
    INSERT INTO counters VALUES (:key, :amount, :expires) ON CONFLICT (key) DO UPDATE SET
        value = CASE WHEN expires <= :now THEN :amount ELSE value + :amount END,
        expires = CASE WHEN expires <= :now THEN :expires ELSE expires END
    RETURNING value, expires
"""
_WINDOW_SECONDS = 60.0


class SharedCounters:
    """Counters that any number of threads and processes add to."""

    def __init__(self, file: SharedFile) -> None:
        self._file = file
        self._swept = time.monotonic()
        file.connection().execute(
            "CREATE TABLE IF NOT EXISTS counters"
            " (key TEXT PRIMARY KEY, value INTEGER NOT NULL, expires REAL NOT NULL) WITHOUT ROWID"
        )

    def add(self, key: str, amount: int, seconds: float = _WINDOW_SECONDS) -> tuple[int, float]:
        """Add to a counter that lives so long from its first addition: its value, and when it ends."""
        now, connection = time.time(), self._file.connection()
        if time.monotonic() - self._swept > _WINDOW_SECONDS:
            self._swept = time.monotonic()
            connection.execute("DELETE FROM counters WHERE expires <= ?", (now,))
        given = {"key": key, "amount": amount, "expires": now + seconds, "now": now}
        row = connection.execute(_ADD, given).fetchone()
        return int(row[0]), float(row[1])
