"""A store in a bucket, over HTTP: what a directory can do, a bucket can."""

import pyarrow as pa
import pytest
from tests.buckets import made_bucket

from freezeframe.errors import InvalidOption, StorageUnavailable, TenantNotFound
from freezeframe.script import tenants
from freezeframe.settings import Settings
from freezeframe.storage.objects import ObjectStorage
from freezeframe.store.snapshot_store import Store

ROWS = pa.table({"Id": ["1", "2"], "v": [1, 2]})


@pytest.fixture(scope="module")
def bucket():
    """The name of a bucket that the usual variables lead to."""
    with made_bucket() as name:
        yield name


@pytest.fixture(scope="module")
def store(bucket):
    """A store below a prefix of the bucket."""
    settings = Settings(gc_grace_seconds=0, lease_dead_seconds=0)
    return Store(ObjectStorage.at(f"s3://{bucket}/a/b"), None, settings)


@pytest.fixture
def acme(store):
    """A tenant of two versions: a stream with a file, then another stream and other bytes."""
    tenant = store.tenant("acme", create=True)
    with tenant.job("one", message="first") as job:
        job.stream("Account").update(ROWS, key="Id")
        job.files.write("maps/a.csv", b"a,b\n")
    with tenant.job() as job:
        job.stream("Owner").update(ROWS, key="Id")
        job.files.write("maps/a.csv", b"c\n")
    yield tenant
    store.delete_tenant("acme")


def test_it_is_opened_by_its_address(bucket):
    """``freezeframe.open`` finds it by the usual variables; what is not a bucket's address is refused."""
    opened = tenants.open(f"s3://{bucket}/by-address")
    opened.tenant("t", create=True).files.write("x", b"1")

    assert tenants.open(f"s3://{bucket}/by-address").tenants() == ("t",)
    assert tenants.open(f"s3://{bucket}/by-address/").tenant("t").files.read("x") == b"1"
    with pytest.raises(InvalidOption):
        tenants.open("s3://")
    with pytest.raises(StorageUnavailable):
        tenants.open("s3://no-such-bucket/x").tenant("t", create=True)


def test_a_job_and_its_past(acme, store):
    """A job is one version; a repeated one is answered; what was comes back."""
    again = store.tenant("acme")
    with again.job("one") as job:
        job.stream("Account").update(ROWS, key="Id")
        job.files.write("maps/a.csv", b"a,b\n")
    assert job.receipt.repeated
    assert [entry.version for entry in again.history()] == [1, 0]
    assert (again.streams(), again.files.read("maps/a.csv")) == (("Account", "Owner"), b"c\n")

    again.restore(0)

    assert acme.stream("Account").read(as_="arrow") == ROWS
    assert (acme.streams(), acme.files.read("maps/a.csv")) == (("Account",), b"a,b\n")
    assert {name: one.fate for name, one in acme.diff(1).streams.items()} == {"Owner": "removed"}


def test_clone_and_deletion(acme, store):
    """A copy holds all; a deleted tenant leaves nothing in the bucket."""
    copy = store.clone_tenant("acme", "copy")
    back = store.clone_tenant("copy", "back")

    for item in (copy, back):
        assert item.stream("Owner").read(as_="arrow") == ROWS
        assert item.files.read("maps/a.csv") == b"c\n"
        assert len(list(item.history())) == 1
    for name in ("copy", "back"):
        assert store.delete_tenant(name).objects
        with pytest.raises(TenantNotFound):
            store.tenant(name)
    assert store.tenants() == ("acme",)
