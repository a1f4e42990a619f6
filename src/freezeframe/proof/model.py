"""The expected content of a tenant as dictionaries."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from freezeframe.store import Tenant
from freezeframe.store.job import Job
from freezeframe.store.tenant import TenantView

Rows = Mapping[str, int]
Content = tuple[dict[str, dict[str, int]], dict[str, bytes]]


def frame(rows: Rows) -> pa.Table:
    """Rows of the columns ``Id`` and ``v``."""
    return pa.table({"Id": pa.array(list(rows), pa.string()), "v": pa.array(list(rows.values()), pa.int64())})


def rows_of(table: pa.Table) -> dict[str, int]:
    """The rows by ``Id``; one that is there twice is told apart, so that it equals nothing."""
    found: dict[str, int] = {}
    for key, value in zip(table["Id"].to_pylist(), table["v"].to_pylist(), strict=True):
        found[f"{key} again" if key in found else key] = value
    return found


def content(reader: Tenant | TenantView | Job) -> Content:
    """All rows of all streams and the bytes of all files."""
    streams = {name: rows_of(reader.stream(name).read(as_="arrow")) for name in reader.streams()}
    return streams, {one.path: reader.files.read(one.path) for one in reader.files.list(recursive=True)}
