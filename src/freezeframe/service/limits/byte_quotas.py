"""Byte quotas a minute for each tenant, shared by all workers of a machine.

What a request announces is counted before it moves, so of requests that come at once only those are let in
that find something left; the one that goes over is finished.
"""

from __future__ import annotations

from typing import Literal

from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.limits.rate_limits import MinuteQuotas
from freezeframe.service.limits.shared_counters import SharedCounters

Way = Literal["upload", "download"]
_DONE = {"upload": "sent", "download": "read"}


class ByteQuotas(MinuteQuotas):
    """The quotas of one service, by ``Way`` and by environment and tenant; 0 is none."""

    def __init__(
        self, counters: SharedCounters, upload_bytes_per_minute: int, download_bytes_per_minute: int
    ) -> None:
        amounts = {"upload": upload_bytes_per_minute, "download": download_bytes_per_minute}
        super().__init__(counters, amounts)

    @property
    def are_there(self) -> bool:
        """Whether there is any quota."""
        return bool(self._amounts)

    def require_left(self, environment: EnvironmentName, tenant: TenantId) -> None:
        """Refuse a request of a tenant that has used up a quota, as far as this worker knows without a query.

        Raises:
            RateLimited: a quota of this minute is used up.
        """
        for way in self._amounts:
            self.spend_at_once(way, (environment, tenant), 0)

    def _explain(self, kind: str) -> tuple[str, str]:
        return (
            f"More than {self._amounts[kind]:,} bytes were {_DONE[kind]} within a minute.",
            f"That is the quota of one tenant (service_tenant_{kind}_bytes_per_minute).",
        )
