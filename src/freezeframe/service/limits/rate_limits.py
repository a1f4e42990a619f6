"""Request rates of keys and tenants, shared by all workers of a machine.

A worker takes a hundredth of a quota at
once and counts within it by itself, so a quota of less than a hundred is exact, and of a larger one what
other workers have taken and not used is missing: some hundredths.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from freezeframe.errors import RateLimited
from freezeframe.service.limits.shared_counters import SharedCounters

_WHOSE = {
    "principal": "key or person",
    "tenant": "tenant",
    "sign-in": "name at an address",
    "sign-in address": "address that signs in",
}
_SETTINGS = {"principal": "service_requests_per_minute", "tenant": "service_tenant_requests_per_minute"}
SIGN_INS_PER_MINUTE = 10
SIGN_INS_OF_ADDRESS_PER_MINUTE = 100
_PORTIONS = 100
_REMEMBERED_MAX = 20_000


@dataclass(slots=True)
class _Portion:
    """What this worker may still take of a quota until it ends; ``is_last``: there is no more of it."""

    ends: float
    left: int
    is_last: bool


class MinuteQuotas(ABC):
    """Quotas by their kind, each counted for whoever is named; 0 is none."""

    def __init__(self, counters: SharedCounters, amounts: Mapping[str, int]) -> None:
        self._counters = counters
        self._amounts = {kind: amount for kind, amount in amounts.items() if amount}
        self._lock = threading.Lock()
        self._portions: dict[tuple[str, ...], _Portion] = {}

    def spend_at_once(
        self, kind: str, names: tuple[str, ...], size: int = 1, *, reserves: bool = True
    ) -> bool:
        """``spend`` without the shared counters where possible; False: nothing was counted.

        Raises:
            RateLimited: as ``spend``.
        """
        if kind not in self._amounts:
            return True
        with self._lock:
            portion = self._portions.get((kind, *names))
            if portion is None or portion.ends <= time.time():
                return not size
            if portion.is_last and portion.left <= 0 and reserves:
                raise self._refusal(kind, portion.ends)
            if portion.left < size and not portion.is_last:
                return False
            portion.left -= size
            return True

    def spend(self, kind: str, names: tuple[str, ...], size: int = 1, *, reserves: bool = True) -> None:
        """Count ``size`` for those names; without ``reserves`` also where nothing is left.

        Raises:
            RateLimited: nothing was left of the quota of this minute before it.
        """
        if self.spend_at_once(kind, names, size, reserves=reserves):
            return
        amount = self._amounts[kind]
        taken = max(size, amount // _PORTIONS, 1)
        spent, ends = self._counters.add("/".join((kind, *names)), taken)
        beyond = max(0, spent - amount)
        with self._lock:
            if len(self._portions) >= _REMEMBERED_MAX:
                self._portions.clear()  # at most one portion of each quota is counted twice
            known = self._portions.get((kind, *names))
            kept = known.left if known is not None and known.ends > time.time() else 0
            left = kept + taken - size - beyond
            self._portions[kind, *names] = _Portion(ends, left, is_last=spent >= amount)
        if reserves and spent - taken >= amount:
            raise self._refusal(kind, ends)

    def _refusal(self, kind: str, ends: float) -> RateLimited:
        seconds = max(1, round(ends - time.time() + 0.5))
        problem, cause = self._explain(kind)
        return RateLimited(
            problem, cause=cause, remedy=f"Ask again in {seconds} seconds.", retry_after_seconds=seconds
        )

    @abstractmethod
    def _explain(self, kind: str) -> tuple[str, str]:
        """Problem and cause of a refusal."""


class RateLimits(MinuteQuotas):
    """The quotas of one service: requests a minute, by key or person, and by tenant; 0 means no limit.

    A request is one of a ``principal``, for a ``tenant``, or a ``sign-in``: of one name at one address, and
    of an address whatever the name. What others do elsewhere locks nobody out.
    """

    def __init__(self, counters: SharedCounters, per_principal: int, per_tenant: int) -> None:
        amounts = {
            "principal": per_principal,
            "tenant": per_tenant,
            "sign-in": SIGN_INS_PER_MINUTE,
            "sign-in address": SIGN_INS_OF_ADDRESS_PER_MINUTE,
        }
        super().__init__(counters, amounts)

    def _explain(self, kind: str) -> tuple[str, str]:
        setting = f" ({_SETTINGS[kind]})" if kind in _SETTINGS else ""
        return (
            f"There were more than {self._amounts[kind]} requests within a minute.",
            f"That is the quota of one {_WHOSE[kind]}{setting}.",
        )
