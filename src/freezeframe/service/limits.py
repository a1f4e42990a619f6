"""Limits of one key or person: requests a second, requests at once, and open streams of events.

Each process counts for itself. The limits keep one client from taking all of a service; protection from
floods is the proxy's.
"""

import asyncio
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from freezeframe.errors import RateLimited, TryAgain
from freezeframe.service.access.keys import Principal

_WAITING_TIMES = 10
_RETRY_SECONDS = 1
_STREAM_RETRY_SECONDS = 30
_SAVED_SECONDS = 10
_CALLERS_MAX = 10_000


@dataclass(slots=True)
class _Bucket:
    """The requests that a principal has left at a moment."""

    left: float
    moment: float


class RateLimits:
    """Requests a second of each principal; ten seconds' worth may be saved up. 0 is no limit."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._most = per_second * _SAVED_SECONDS
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def spend(self, principal: Principal) -> None:
        """Count one request."""
        if not self._per_second:
            return
        who, now = _name(principal), time.monotonic()
        with self._lock:
            bucket = self._buckets.setdefault(who, _Bucket(self._most, now))
            self._buckets.move_to_end(who)
            if len(self._buckets) > _CALLERS_MAX:
                self._buckets.popitem(last=False)
            bucket.left = min(self._most, bucket.left + (now - bucket.moment) * self._per_second)
            bucket.moment = now
            if bucket.left < 1:
                seconds = math.ceil((1 - bucket.left) / self._per_second)
                raise RateLimited(
                    f"This {principal.kind} sends more than {self._per_second:g} requests a second.",
                    cause="That is the limit (service_requests_per_second).",
                    remedy=f"Try again in {seconds} seconds, and send fewer requests.",
                    retry_after_seconds=seconds,
                )
            bucket.left -= 1


class OpenStreams:
    """The logs and streams of events that this process is sending, by principal."""

    def __init__(self, streams_max: int, per_principal_max: int) -> None:
        self._streams_max = streams_max
        self._per_principal_max = per_principal_max
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    @property
    def number(self) -> int:
        """How many are open."""
        with self._lock:
            return self._open.total()

    def begin(self, principal: Principal) -> None:
        """Count one more stream of the principal, until ``end``."""
        with self._lock:
            held = self._open[_name(principal)]
            if held >= self._per_principal_max:
                raise RateLimited(
                    f"This {principal.kind} has {held} open log and event streams already.",
                    cause="That is the limit for one key or person (service_streams_per_principal_max).",
                    remedy=f"Close one of them, or try again in {_STREAM_RETRY_SECONDS} seconds.",
                    retry_after_seconds=_STREAM_RETRY_SECONDS,
                )
            if self._open.total() >= self._streams_max:
                raise TryAgain(
                    "Too many log and event streams are open.",
                    cause=f"A process has at most {self._streams_max} (service_streams_max).",
                    remedy=f"Ask again in {_STREAM_RETRY_SECONDS} seconds.",
                    retry_after_seconds=_STREAM_RETRY_SECONDS,
                )
            self._open[_name(principal)] += 1

    def end(self, principal: Principal) -> None:
        """Count one stream less."""
        with self._lock:
            self._open[_name(principal)] -= 1
            self._open += Counter()  # without those that have none


def _name(principal: Principal) -> str:
    return f"{principal.kind}/{principal.id}"


@dataclass(slots=True)
class _Line:
    """The requests of one principal: those that are carried out, and those that wait."""

    free: asyncio.Semaphore
    number: int = 0


class FairLimits:
    """The turns of one process, for its one event loop; ``at_once`` of each principal, 0 is no limit.

    A process has a fixed number of threads. Without this limit, one key's slow requests could hold all of
    them, and everybody's quick ones would wait.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._lines: dict[tuple[str, str], _Line] = {}

    @asynccontextmanager
    async def turn(self, principal: Principal) -> AsyncIterator[None]:
        """Wait until fewer than ``at_once`` requests of the principal run, then run the block as one more."""
        if not self._at_once:
            yield
            return
        who = (principal.kind, principal.id)
        line = self._lines.setdefault(who, _Line(asyncio.Semaphore(self._at_once)))
        if line.number >= self._at_once * (1 + _WAITING_TIMES):
            raise RateLimited(
                f"{self._at_once * _WAITING_TIMES} requests of this {principal.kind} wait already.",
                cause=f"A process executes {self._at_once} of one key or person at once"
                " (service_requests_at_once_per_principal).",
                remedy=f"Ask again in {_RETRY_SECONDS} second.",
                retry_after_seconds=_RETRY_SECONDS,
            )
        line.number += 1
        try:
            async with line.free:
                yield
        finally:
            line.number -= 1
            if not line.number:
                self._lines.pop(who, None)
