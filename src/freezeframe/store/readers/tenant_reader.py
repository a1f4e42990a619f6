"""The reading half of a tenant."""

from __future__ import annotations

from collections.abc import Iterator

from freezeframe.store.maintenance.verification import Verification, verify_tenant
from freezeframe.store.tenant_log.history import HistoryEntry, Point, history
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.transaction.transaction import TenantPlace
from freezeframe.store.versions.retention import Policy, policy_of
from freezeframe.store.versions.tenant_diff import TenantDiff, tenant_diff


class TenantReader:
    """Reads a tenant's content and history."""

    def __init__(self, place: TenantPlace) -> None:
        self._place = place
        self._scope = TenantScope(place)

    def __repr__(self) -> str:
        return f"Tenant({self._place.storage.root!r})"

    @property
    def place(self) -> TenantPlace:
        """The tenant's storage, engine and settings, for packages built on this one."""
        return self._place

    @property
    def version(self) -> int:
        """The newest tenant version, -1 before the first commit."""
        return self._scope.state().version

    def streams(self, version: Point | None = None) -> tuple[str, ...]:
        """The names of the streams at a tenant version (default: now), sorted."""
        return tuple(sorted(self._scope.state(version).streams))

    def history(
        self,
        limit: int | None = None,
        *,
        until: int | None = None,
        job_id: str | None = None,
        stream: str | None = None,
        path: str | None = None,
    ) -> Iterator[HistoryEntry]:
        """The kept versions, the newest (or ``until``) first, at most ``limit`` of them.

        Every version that is listed can be read and restored. ``job_id``, ``stream`` and ``path`` leave
        only the versions that were made by that job, or changed that stream or file.
        """
        newest = self._scope.state()
        return history(self._place.log, newest, limit, until=until, job_id=job_id, stream=stream, path=path)

    def diff(self, before: Point, after: Point | None = None) -> TenantDiff:
        """The difference between two versions (default ``after``: now): streams by key, files by text.

        Each is a number, a tag or a moment.

        Raises:
            InvalidOption: one of them is neither a version, a tag nor a moment.
            VersionNotFound: one of them does not exist or is no longer kept.
        """
        return tenant_diff(self._place.storage, self._scope.state(before), self._scope.state(after))

    def tags(self) -> dict[str, int]:
        """The tags and their versions."""
        return dict(self._scope.state().tags)

    def retention(self) -> Policy:
        """The retention policy; without a limit every version is kept."""
        return policy_of(self._scope.state())

    def verify(self) -> Verification:
        """Read everything that the tenant's listed versions need, and report damage.

        Entries with their chain, tables, data files with the sizes and hashes that were recorded, and blobs.

        Raises:
            StorageUnavailable: something could not be read.
        """
        return verify_tenant(self._place.storage, self._place.settings)
