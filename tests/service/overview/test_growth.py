"""Rows and bytes over a tenant's versions are those that each version has when it is looked at by itself."""

import pyarrow as pa
import pytest

from freezeframe.service.overview.growth import growth
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.arrow_engine import ArrowEngine

pytestmark = pytest.mark.long


def test_every_point_is_what_the_version_holds(tmp_path):
    """Over inserts, marked rows, overrides, files, a drop, its restoration and a stream of another name."""
    storage = LocalStorage(tmp_path)
    tenant = Tenant(storage, ArrowEngine(storage), Settings(vectors_from_bytes=0))
    account = tenant.stream("Account")
    account.update(pa.table({"Id": list(range(500)), "V": ["a"] * 500}), "Id")
    account.update(pa.table({"Id": [1, 2, 900], "V": ["b", "c", "d"]}), "Id")
    tenant.files.write("a.txt", b"12345")
    account.update(pa.table({"Id": [1], "V": ["z"]}), "Id", override=True)
    tenant.files.write("a.txt", b"1")
    tenant.drop_stream("Account")
    with tenant.job("both") as job:
        job.stream("Other").update(pa.table({"Id": [1, 2]}), "Id")
        job.files.delete("a.txt")
    tenant.restore(1, streams=["Account"])
    told = growth(tenant, 100)

    assert list(range(8)) == [point.version for point in told]
    for point in told:
        view = tenant.at(point.version)
        streams = [view.stream(name) for name in view.streams()]
        assert (
            sum(stream.row_count() for stream in streams),
            sum(stream.byte_count() for stream in streams),
            sum(file.size for file in view.files.list()),
        ) == (point.rows, point.stream_bytes, point.file_bytes), point
    assert told[-3:] == growth(tenant, 3)


def test_a_tenant_without_versions_has_no_points(tmp_path):
    """Nothing is told, and nothing fails."""
    storage = LocalStorage(tmp_path)
    assert growth(Tenant(storage, ArrowEngine(storage), Settings()), 10) == ()
