"""The service's operations on versions.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import cast

from freezeframe.client.connection import TENANT, Connection, path_of
from freezeframe.client.types import (
    Difference,
    Growth,
    HistoryPage,
    NewPolicy,
    NewTag,
    Policy,
    Restoration,
    RestorationOrder,
    RowDifference,
    Tag,
    TagList,
)


class VersionsOperations:
    """Operations on versions; see ``Client``."""

    _connection: Connection

    def show_difference(
        self,
        environment: str,
        tenant: str,
        *,
        before: int,
        after: int | None = None,
        texts: bool | None = None,
    ) -> Difference:
        """What differs between two versions of the tenant (without `after`: and now)."""
        place = path_of(TENANT + "/diff", environment, tenant)
        query = {"before": before, "after": after, "texts": texts}
        return cast("Difference", self._connection.json("GET", place, query=query))

    def show_growth(self, environment: str, tenant: str, *, limit: int | None = None) -> Growth:
        """How many rows and bytes the tenant had after each of its newest versions, the oldest first."""
        place = path_of(TENANT + "/growth", environment, tenant)
        query = {"limit": limit}
        return cast("Growth", self._connection.json("GET", place, query=query))

    def list_history(
        self,
        environment: str,
        tenant: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        stream: str | None = None,
        path: str | None = None,
        job_id: str | None = None,
    ) -> HistoryPage:
        """List a tenant's versions, the newest first; every one of them can be read and restored."""
        place = path_of(TENANT + "/history", environment, tenant)
        query = {"limit": limit, "cursor": cursor, "stream": stream, "path": path, "job_id": job_id}
        return cast("HistoryPage", self._connection.json("GET", place, query=query))

    def show_policy(self, environment: str, tenant: str) -> Policy:
        """How long a tenant's versions are kept; without limits for ever."""
        place = path_of(TENANT + "/policy", environment, tenant)
        return cast("Policy", self._connection.json("GET", place))

    def set_policy(self, environment: str, tenant: str, body: NewPolicy) -> Policy:
        """Say how long a tenant's versions are kept; `gc` carries it out."""
        place = path_of(TENANT + "/policy", environment, tenant)
        return cast("Policy", self._connection.json("PUT", place, body=body))

    def restore_tenant(
        self,
        environment: str,
        tenant: str,
        body: RestorationOrder,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Restoration:
        """Bring everything, or the streams and files that are named, back, as one new version.

        With `dry_run` the effect is told and nothing is done. `If-Match` is the tenant's version in
        quotes.
        """
        place = path_of(TENANT + "/restorations", environment, tenant)
        headers = {"if-match": if_match, "if-none-match": if_none_match, "idempotency-key": idempotency_key}
        return cast("Restoration", self._connection.json("POST", place, headers=headers, body=body))

    def show_row_difference(
        self,
        environment: str,
        tenant: str,
        stream: str,
        *,
        before: int,
        after: int | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        count: bool | None = None,
    ) -> RowDifference:
        """Show which rows of a stream differ between two versions of the tenant, with each changed cell.

        Rows are in the order of the key. A cursor goes on between the versions that the first page was
        of.
        """
        place = path_of(TENANT + "/streams/{stream}/diff", environment, tenant, stream)
        query = {
            "before": before,
            "after": after,
            "offset": offset,
            "limit": limit,
            "cursor": cursor,
            "count": count,
        }
        return cast("RowDifference", self._connection.json("GET", place, query=query))

    def list_tags(self, environment: str, tenant: str) -> TagList:
        """List a tenant's tags, and the versions that they keep."""
        place = path_of(TENANT + "/tags", environment, tenant)
        return cast("TagList", self._connection.json("GET", place))

    def set_tag(self, environment: str, tenant: str, tag: str, body: NewTag) -> Tag:
        """Name a version of the tenant, which is then kept whatever the policy says."""
        place = path_of(TENANT + "/tags/{tag}", environment, tenant, tag)
        return cast("Tag", self._connection.json("PUT", place, body=body))

    def remove_tag(self, environment: str, tenant: str, tag: str) -> dict[str, str]:
        """Take a tag off; the version is then kept as long as the policy says."""
        place = path_of(TENANT + "/tags/{tag}", environment, tenant, tag)
        return self._connection.headers("DELETE", place)
