"""A job as a dry run: it makes all checks of a commit, works out what would change, and leaves nothing."""

import re
import time

import pyarrow as pa
import pytest
from tests.given import files_of

import freezeframe
from freezeframe.errors import ConflictError, InvalidOption, SealingUnavailable, TenantNotFound
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant import Tenant, with_check
from freezeframe.store.transaction.dry_run import parse_dry_run


def table(*ids, **columns):
    return pa.table({"Id": list(ids), **columns})


@pytest.fixture
def tenant(open_finding, memory):
    """A tenant with a stream and a file, in memory."""
    found = open_finding(memory)
    with found.job("first") as job:
        job.stream("Account").update(table(1, 2, Name=["a", "b"]), key="Id")
        job.files.write("note", b"1")
    return found


def change(job):
    job.stream("Account").update(table(2, 3, Name=["B", "c"]), key="Id")
    job.stream("Lead").update(table(9), key="Id")
    job.files.write("note", b"22")
    job.files.write("new", b"3")


def test_a_dry_run_has_what_would_change_and_leaves_nothing(tenant, memory):
    """Inside the block its changes are read; afterwards each byte is as before, and its id is free."""
    before = files_of(memory)

    with tenant.job("second", dry_run=True) as job:
        change(job)
        assert job.stream("Account").count() == 3

    found = job.dry_run
    assert files_of(memory) == before
    assert {name: (item.fate, item.counts.changed) for name, item in found.streams.items()} == {
        "Account": ("changed", 2),
        "Lead": ("added", 1),
    }
    assert {path: (item.fate, item.size_bytes) for path, item in found.files.items()} == {
        "note": ("changed", 2),
        "new": ("added", 1),
    }
    assert (found.tenant_version, job.receipt.committed, job.receipt.tenant_version) == (0, False, 0)
    assert parse_dry_run(found.to_json()) == found
    assert re.findall(r">(changed|added)<", found._repr_html_()) == ["changed", "added", "added", "changed"]
    with tenant.job("second") as job:
        change(job)
    assert (job.receipt.tenant_version, job.dry_run) == (1, None)


def test_an_id_that_is_committed_is_answered(tenant):
    """As by a real run: the receipt of then, and nothing that would change."""
    with tenant.job("first", dry_run=True) as job:
        job.stream("Account").update(table(7, Name=["x"]), key="Id")

    assert (job.receipt.repeated, job.dry_run, tenant.version) == (True, None, 0)


def test_a_dry_run_is_compared_with_the_newest_version(tenant, open_finding, memory):
    """What others commit meanwhile counts, also to the same stream."""
    with tenant.job(dry_run=True) as job:
        job.stream("Account").update(table(2, 3, Name=["B", "c"]), key="Id")
        open_finding(memory).stream("Account").update(table(3, Name=["c"]), key="Id")

    counts = job.dry_run.streams["Account"].counts
    assert (job.dry_run.tenant_version, counts.updated, counts.unchanged, counts.inserted) == (1, 1, 1, 0)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_is_refused_what_a_commit_is(tenant, open_finding, memory, dry_run):
    """A conflict about rows that were read, and a check of the commit; nothing is left of either."""

    def refuse(*_):
        raise InvalidOption("no")

    def rest_on_rows(job):
        rows = job.stream("Account").read(as_="arrow")
        job.stream("Account").update(rows.slice(0, 1), override=True)
        open_finding(memory).stream("Account").update(table(9, Name=["x"]), key="Id")

    with pytest.raises(ConflictError), tenant.job(dry_run=dry_run) as job:
        rest_on_rows(job)
    before = files_of(memory)
    with pytest.raises(InvalidOption, match="no"), with_check(tenant, refuse).job(dry_run=dry_run) as job:
        change(job)

    assert (files_of(memory), tenant.version) == (before, 1)


def test_the_first_sealed_file_leaves_no_key(keyed, memory):
    """It is read within the job; the tenant's first real one makes the key. Without a master key it fails."""
    tenant = Tenant(memory, ArrowEngine(), keyed)
    tenant.files.write("note", b"1")
    before = files_of(memory)
    with tenant.job(dry_run=True) as job:
        job.files.write("token", b"secret", sealed=True)
        assert job.files.read("token") == b"secret"

    assert (files_of(memory), job.dry_run.files["token"].sealed) == (before, True)
    tenant.files.write("token", b"other", sealed=True)
    assert tenant.files.read("token") == b"other"
    poor = Tenant(memory, ArrowEngine(), keyed.model_copy(update={"master_key_file": None}))
    with pytest.raises(SealingUnavailable), poor.job(dry_run=True) as job:
        job.files.write("more", b"secret", sealed=True)


def test_a_directory_that_is_no_tenants_stays_empty(tmp_path):
    """No format, folder or file comes to be by a dry run."""
    with freezeframe.open_tenant(tmp_path).job(dry_run=True) as job:
        change(job)

    assert (job.dry_run.tenant_version, list(tmp_path.iterdir())) == (-1, [])


def test_an_unlisted_tenant_is_in_no_store(tmp_path):
    """Only its token finds it; it goes by a call, after a crash by a sweep; a known tenant is the tenant."""
    settings = Settings(lease_dead_seconds=0, gc_grace_seconds=0)
    storage = LocalStorage(tmp_path)
    store = Store(storage, ArrowEngine(), settings)
    store.unlisted_tenant("acme", "run-1").files.write("note", b"1")
    again = Store(storage, ArrowEngine(), settings).unlisted_tenant("acme", "run-1")
    assert (again.files.read("note"), store.tenants(), store.environments()) == (b"1", (), ())
    assert store.unlisted_tenant("acme", "run-2").version == -1
    with pytest.raises(TenantNotFound):
        store.tenant("acme")

    store.remove_unlisted("run-1")
    store.remove_unlisted("run-2")

    assert list(tmp_path.iterdir()) == []
    store.unlisted_tenant("acme", "killed")
    time.sleep(0.01)  # a file of this millisecond counts as being written
    store.sweep()
    assert [status.name for status in storage.list_below("")] == []
    known = store.tenant("acme", create=True)
    known.files.write("note", b"2")
    assert store.unlisted_tenant("acme", "run-3").files.read("note") == b"2"


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_tenant_that_is_deleted_meanwhile_is_not_found(tmp_path, dry_run):
    """A dry run ends as a real one does, and leaves nothing in the folder."""
    storage = LocalStorage(tmp_path)
    store = Store(storage, ArrowEngine(), Settings())
    tenant = store.tenant("acme", create=True)

    def change_and_delete(job):
        change(job)
        store.delete_tenant("acme")

    with pytest.raises(TenantNotFound), tenant.job(dry_run=dry_run) as job:
        change_and_delete(job)

    assert not (tmp_path / "tenants").exists()
