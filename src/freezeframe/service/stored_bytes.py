"""How many bytes a tenant may keep, as its overview counts them: what its newest version holds."""

from __future__ import annotations

from freezeframe.errors import TooLarge
from freezeframe.service.overview import Overviews
from freezeframe.store import Tenant


class StoredBytes:
    """The limit of one service for each tenant; 0 is none, and then nothing is ever counted."""

    def __init__(self, overviews: Overviews, bytes_max: int) -> None:
        self._overviews = overviews
        self._bytes_max = bytes_max

    def require_room(self, tenant: Tenant, size: int, replaces: str = "") -> None:
        """Refuse bytes that would be too many; those of the file that they replace go.

        Earlier versions are not counted, and what jobs write meanwhile is not refused.

        Raises:
            TooLarge: the tenant would have more than it may.
        """
        if not self._bytes_max:
            return
        seen = self._overviews.of(tenant)
        held = seen.file_bytes + sum(stream.size_bytes for stream in seen.streams)
        if replaces and tenant.files.exists(replaces):
            held -= tenant.files.entry(replaces).size
        if held + size > self._bytes_max:
            raise TooLarge(
                f"The tenant would hold {held + size:,} bytes.",
                cause=f"{self._bytes_max:,} are the most that one may (service_tenant_stored_bytes_max).",
                remedy="Remove files or rows that are not needed, or have the limit raised.",
                code="TENANT_FULL",
            )
