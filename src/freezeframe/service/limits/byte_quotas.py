"""How many bytes a minute a tenant's requests may bring and take, counted by all workers of one machine.

What a request announces is counted before it moves, so of requests that come at once only those are let in
that find something left; the one that goes over is finished. A worker takes a hundredth of a quota at once
from the shared counters and counts within it by itself: only then is the counters' file touched.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Literal

from limits import RateLimitItemPerMinute

from freezeframe.errors import RateLimited
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.limits.rate_limits import SharedCounters

Way = Literal["upload", "download"]
_PORTIONS = 100
_REMEMBERED_MAX = 20_000
_DONE: dict[Way, str] = {"upload": "sent", "download": "read"}


@dataclass(slots=True)
class _Lease:
    """What this worker may still count within; ``is_last``: the quota is used up until it ends."""

    ends: float
    left: int
    is_last: bool = False


class ByteQuotas:
    """The quotas of one service, by tenant; 0 is none."""

    def __init__(
        self, counters: SharedCounters, upload_bytes_per_minute: int, download_bytes_per_minute: int
    ) -> None:
        self._counters = counters
        limits: dict[Way, int] = {
            "upload": upload_bytes_per_minute,
            "download": download_bytes_per_minute,
        }
        self._items = {way: RateLimitItemPerMinute(limit) for way, limit in limits.items() if limit}
        self._lock = threading.Lock()
        self._leases: dict[tuple[Way, EnvironmentName, TenantId], _Lease] = {}

    @property
    def are_there(self) -> bool:
        """Whether anything has to be counted at all."""
        return bool(self._items)

    def require_left(self, environment: EnvironmentName, tenant: TenantId) -> None:
        """Refuse a request of a tenant that has used a quota up, as far as this worker knows; no look around.

        Raises:
            RateLimited: a quota of this minute is used up.
        """
        for way in self._items:
            self.spend_at_once(way, 0, environment, tenant, reserves=True)

    def spend_at_once(
        self, way: Way, size: int, environment: EnvironmentName, tenant: TenantId, *, reserves: bool = False
    ) -> bool:
        """``spend`` where it needs no look at the shared counters; False: nothing was counted.

        Raises:
            RateLimited: as ``spend``.
        """
        item = self._items.get(way)
        if item is None:
            return True
        with self._lock:
            lease = self._leases.get((way, environment, tenant))
            is_known = lease is not None and lease.ends > time.time()
            if lease is not None and is_known and lease.is_last and reserves:
                raise _refusal(way, item.amount, lease.ends)
            if not size:
                return True
            if lease is None or not is_known or (lease.left < size and not lease.is_last):
                return False
            lease.left -= size
            return True

    def spend(
        self, way: Way, size: int, environment: EnvironmentName, tenant: TenantId, *, reserves: bool = False
    ) -> None:
        """Count bytes that a tenant's request moves; ``reserves``: it has not moved them yet.

        Raises:
            RateLimited: it reserves, and nothing was left before it.
        """
        if self.spend_at_once(way, size, environment, tenant, reserves=reserves):
            return
        item = self._items[way]
        names = (environment, tenant)
        portion = max(size, item.amount // _PORTIONS)
        key = item.key_for(way, *names)
        spent = self._counters.incr(key, item.get_expiry(), amount=portion)
        ends = self._counters.get_expiry(key)
        is_last = spent >= item.amount
        with self._lock:
            if len(self._leases) >= _REMEMBERED_MAX:
                self._leases.clear()  # at most one portion of each quota is counted twice
            known = self._leases.get((way, *names))
            kept = known.left if known is not None and known.ends > time.time() else 0
            self._leases[way, environment, tenant] = _Lease(ends, kept + portion - size, is_last)
        if reserves and spent - portion >= item.amount:
            raise _refusal(way, item.amount, ends)


def _refusal(way: Way, amount: int, ends: float) -> RateLimited:
    seconds = max(1, round(ends - time.time() + 0.5))
    return RateLimited(
        f"More than {amount:,} bytes were {_DONE[way]} within a minute.",
        cause=f"That is the quota of one tenant (service_tenant_{way}_bytes_per_minute).",
        remedy=f"Ask again in {seconds} seconds.",
        retry_after_seconds=seconds,
    )
