"""``snapshot_views``: the streams of a tenant as temporary views for SQL."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from freezeframe.script.adoption.legacy import as_frame, pending_adoption
from freezeframe.script.snapshots import Directory
from freezeframe.script.tenant.current_job import is_working_copy
from freezeframe.script.tenant.tenants import open_tenant
from freezeframe.store.table.reader import moment
from freezeframe.store.tenant import TenantView
from freezeframe.store.tenant_log.history import Point, require_one_version

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def snapshot_views(
    snapshot_dir: Directory,
    version: Point | None = None,
    as_of: datetime | str | None = None,
    *,
    prefix: str = "",
    streams: Collection[str] | None = None,
) -> dict[str, str]:
    """Make each stream a temporary view of the process's Spark session, with the rows of ``get_snapshot``.

    The views show one version of the tenant. Rows that are updated later are seen after the next call,
    which replaces the views.

    Args:
        snapshot_dir: the tenant's directory; one that does not exist holds no streams.
        version: the version of the tenant to read, by its number, a tag or a moment; now without it.
        as_of: a moment (ISO text or a datetime; without a zone it is UTC).
        prefix: what each view's name begins with, before the name of the stream.
        streams: the streams to take; without it, all.

    Returns:
        By stream, the view's name as SQL and ``spark.table`` take it: in backquotes, such as
        ```Account@qbo```, where it is not a plain identifier.

    Raises:
        StreamNotFound: one of ``streams`` is not there.
        VersionNotFound: there is no such version, or none at that moment.
        InvalidOption: both a version and a moment are given.
    """
    require_one_version({"version": version, "as_of": as_of})
    point = version if as_of is None else moment(as_of)
    # All are read before the first view is made: an error replaces none.
    return _named_views(dict(_frames(snapshot_dir, point, streams)), prefix)


def tenant_views(tenant: TenantView, streams: Collection[str]) -> dict[str, str]:
    """Make streams of one version views of the process's Spark session; see ``snapshot_views``."""
    return _named_views({name: tenant.stream(name).read(as_="spark") for name in streams})


def _named_views(frames: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    views = {}
    for name, frame in frames.items():
        views[name] = _sql_name(f"{prefix}{name}")
        frame.createOrReplaceTempView(views[name])
    return views


def _frames(
    snapshot_dir: Directory, point: Point | None, streams: Collection[str] | None
) -> Iterator[tuple[str, Any]]:
    tenant = open_tenant(snapshot_dir)
    at = point
    if point is None and tenant.version >= 0 and not is_working_copy(snapshot_dir):
        at = tenant.version  # one version for all streams, whoever commits meanwhile
    for name in tenant.streams(at) if streams is None else streams:
        stream = tenant.stream(name)
        adoption = pending_adoption(snapshot_dir, stream) if point is None else None
        if adoption is None:
            yield name, stream.read(version=at, as_="spark")
        else:
            yield name, as_frame(adoption.view(), None, None, "spark")


def _sql_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"
