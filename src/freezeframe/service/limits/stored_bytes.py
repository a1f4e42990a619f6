"""Storage quota of a tenant: its newest version and its pending uploads."""

from __future__ import annotations

from collections.abc import Iterable

from freezeframe.errors import TooLarge
from freezeframe.service.jobs.uploads import Uploads
from freezeframe.service.overview.overview import Overviews
from freezeframe.store import Tenant


class StoredBytes:
    """The limit of one service for each tenant; 0 is none, and then nothing is ever counted."""

    def __init__(self, overviews: Overviews, uploads: Uploads, bytes_max: int) -> None:
        self._overviews = overviews
        self._uploads = uploads
        self._bytes_max = bytes_max

    def limit_tenant(self, tenant: Tenant, size: int, *replaced: str) -> Tenant:
        """The tenant for a change that adds ``size`` bytes; those of replaced files are subtracted.

        What others commit meanwhile is counted as well: the tenant's commit looks again, at the state that
        it follows.

        Raises:
            TooLarge: the tenant would have more than it may.
        """
        if not self._bytes_max:
            return tenant
        self._require_room(tenant, size, replaced)
        return tenant.with_check(lambda _: self._require_room(tenant, size, replaced))

    def require_room_for_waiting(self, tenant: Tenant, folder: str, *replaced: str) -> None:
        """Refuse what waits already for the tenant: uploads by their announced length, inputs of imports.

        To be asked when the new one waits too: two that come at once see each other.

        Raises:
            TooLarge: the tenant would have more than it may.
        """
        if self._bytes_max:
            self._require_room(tenant, self._uploads.waiting_bytes(folder), replaced)

    def _require_room(self, tenant: Tenant, size: int, replaced: Iterable[str]) -> None:
        seen = self._overviews.of(tenant)
        held = seen.file_bytes + sum(stream.size_bytes for stream in seen.streams)
        held -= sum(tenant.files.entry(path).size for path in replaced if path and tenant.files.exists(path))
        if held + size > self._bytes_max:
            raise TooLarge(
                f"The tenant would hold {held + size:,} bytes.",
                cause=f"{self._bytes_max:,} are the most that one may (service_tenant_stored_bytes_max).",
                remedy="Remove files or rows that are not needed, or have the limit raised.",
                code="TENANT_FULL",
            )
