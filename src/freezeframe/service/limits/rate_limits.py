"""How often a key or a tenant may ask, counted by all workers of one machine together.

The counters are in a small SQLite file beside the control database. It is not synced to disk: after a crash
of the machine counting begins anew, which is all that is lost. A worker takes a hundredth of a quota at
once and counts within it by itself, so a quota of less than a hundred is exact, and of a larger one what
other workers have taken and not used is missing: some hundredths.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from limits import RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from freezeframe.errors import RateLimited
from freezeframe.storage.local import make_private

_HIT = """
    INSERT INTO counters VALUES (?1, ?2, ?3) ON CONFLICT (key) DO UPDATE SET
        value = CASE WHEN expires <= ?4 THEN ?2 ELSE value + ?2 END,
        expires = CASE WHEN expires <= ?4 THEN ?3 ELSE expires END
    RETURNING value
"""
_BUSY_SECONDS = 5.0
_WHOSE = {"principal": "key or person", "tenant": "tenant", "sign-in": "name or place that signs in"}
SIGN_INS_PER_MINUTE = 10
_SWEPT_EVERY_SECONDS = 60.0
_PORTIONS = 100
_REMEMBERED_MAX = 20_000


class SharedCounters(Storage):
    """Counters in one file that any number of threads and processes add to."""

    STORAGE_SCHEME = ["freezeframe-counters"]  # noqa: RUF012 - as the base class declares it

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._local = threading.local()
        self._swept = time.monotonic()
        make_private(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # names of tenants are nobody else's business
        self._connection().execute(
            "CREATE TABLE IF NOT EXISTS counters"
            " (key TEXT PRIMARY KEY, value INTEGER NOT NULL, expires REAL NOT NULL) WITHOUT ROWID"
        )

    @property
    def base_exceptions(self) -> type[Exception]:
        """What goes wrong in the file."""
        return sqlite3.Error

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Add to a counter that lives for ``expiry`` seconds from its first addition; its value."""
        now = time.time()
        self._sweep(now)
        row = self._connection().execute(_HIT, (key, amount, now + expiry, now)).fetchone()
        return int(row[0])

    def get(self, key: str) -> int:
        """The counter's value; 0 where there is none (any more)."""
        row = self._row(key)
        return int(row[0]) if row else 0

    def get_expiry(self, key: str) -> float:
        """When the counter ends, in seconds since 1970; now where there is none."""
        row = self._row(key)
        return float(row[1]) if row else time.time()

    def check(self) -> bool:
        """Whether the file can be read."""
        return self._row("") is None

    def reset(self) -> int:
        """Forget all counters; how many there were."""
        return self._connection().execute("DELETE FROM counters").rowcount

    def clear(self, key: str) -> None:
        """Forget one counter."""
        self._connection().execute("DELETE FROM counters WHERE key = ?", (key,))

    def _row(self, key: str) -> tuple[int, float] | None:
        query = "SELECT value, expires FROM counters WHERE key = ? AND expires > ?"
        found: tuple[int, float] | None = self._connection().execute(query, (key, time.time())).fetchone()
        return found

    def _sweep(self, now: float) -> None:
        if time.monotonic() - self._swept > _SWEPT_EVERY_SECONDS:
            self._swept = time.monotonic()
            self._connection().execute("DELETE FROM counters WHERE expires <= ?", (now,))

    def _connection(self) -> sqlite3.Connection:
        # SQLite's connections stay in the thread that made them.
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
            found.execute("PRAGMA journal_mode = WAL")
            found.execute("PRAGMA synchronous = OFF")
            self._local.connection = found
        return found


@dataclass(slots=True)
class _Portion:
    """What this worker may still take of a quota until it ends; ``is_last``: there is no more of it."""

    ends: float
    left: int
    is_last: bool = False


class RateLimits:
    """The quotas of one service: requests a minute, by key or person, and by tenant; 0 is no limit."""

    def __init__(self, counters: SharedCounters, per_principal: int, per_tenant: int) -> None:
        self._limiter = FixedWindowRateLimiter(counters)
        self._items = {
            "principal": RateLimitItemPerMinute(per_principal) if per_principal else None,
            "tenant": RateLimitItemPerMinute(per_tenant) if per_tenant else None,
            "sign-in": RateLimitItemPerMinute(SIGN_INS_PER_MINUTE),
        }
        self._lock = threading.Lock()
        self._portions: dict[tuple[str, ...], _Portion] = {}

    def count_at_once(self, kind: str, *names: str) -> bool:
        """``count`` where it needs no look at the shared counters; False: nothing was counted.

        Raises:
            RateLimited: as ``count``.
        """
        item = self._items[kind]
        if item is None:
            return True
        with self._lock:
            portion = self._portions.get((kind, *names))
            if portion is None or portion.ends <= time.time():
                return False
            if portion.left > 0:
                portion.left -= 1
                return True
        if portion.is_last:
            raise self._refusal(item, kind, portion.ends)
        return False

    def count(self, kind: str, *names: str) -> None:
        """Count a request of a ``principal``, for a ``tenant``, or a ``sign-in`` from somewhere.

        Raises:
            RateLimited: its quota of this minute is used up.
        """
        item = self._items[kind]
        if item is None or self.count_at_once(kind, *names):
            return
        size = max(1, item.amount // _PORTIONS)
        is_granted = self._limiter.hit(item, kind, *names, cost=size)
        ends, _ = self._limiter.get_window_stats(item, kind, *names)
        with self._lock:
            if len(self._portions) >= _REMEMBERED_MAX:
                self._portions.clear()  # at most one portion of each quota is counted twice
            known = self._portions.setdefault((kind, *names), _Portion(ends, 0))
            is_same = known.ends > time.time()  # another thread may have taken a portion meanwhile
            left = (known.left if is_same else 0) + (size - 1 if is_granted else 0)
            self._portions[kind, *names] = _Portion(ends, left, is_last=not is_granted)
        if not is_granted:
            raise self._refusal(item, kind, ends)

    def _refusal(self, item: RateLimitItemPerMinute, kind: str, ends: float) -> RateLimited:
        seconds = max(1, round(ends - time.time() + 0.5))
        return RateLimited(
            f"There were more than {item.amount} requests within a minute.",
            cause=f"That is the quota of one {_WHOSE[kind]}.",
            remedy=f"Ask again in {seconds} seconds.",
            retry_after_seconds=seconds,
        )
