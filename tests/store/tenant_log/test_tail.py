"""A log that has not grown is known by two looks, and every other one is listed."""

import shutil

import pytest

from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.model.directory import TENANT_LOG_FOLDER
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant_log.log import LogTail


class Counted(LocalStorage):
    """A local disk that counts how often a folder is listed."""

    listings = 0

    def list_from(self, folder, start=""):
        self.listings += 1
        return super().list_from(folder, start)


def _tenant(storage):
    return Tenant(storage, ArrowEngine(storage), Settings())


@pytest.fixture
def storage(tmp_path):
    return Counted(tmp_path / "tenant")


def test_a_log_that_stands_still_is_not_listed(storage):
    """Looking at a tenant again and again lists nothing; what another process adds is seen at once."""
    tenant, other = _tenant(storage), _tenant(LocalStorage(storage.root))
    tenant.files.write("a.csv", b"1")
    assert tenant.version == 0
    before = storage.listings
    assert [tenant.version for _ in range(20)] == [0] * 20
    assert before == storage.listings
    other.files.write("a.csv", b"2")
    assert tenant.files.read("a.csv") == b"2"


def test_what_this_process_adds_is_not_listed_but_now_and_then(storage):
    """Its own entries are the state at once; a listing every ten versions finds the newer checkpoint."""
    tenant, other = _tenant(storage), _tenant(LocalStorage(storage.root))
    tenant.files.write("a.csv", b"0")
    before = storage.listings
    for number in range(1, 10):
        tenant.files.write("a.csv", b"%d" % number)
    assert before == storage.listings
    other.files.write("b.csv", b"theirs")
    for number in range(11, 22):
        tenant.files.write("a.csv", b"%d" % number)
    assert before < storage.listings
    segment = tenant.place.log.current_snapshot.segment
    assert (segment.version, segment.checkpoint_version) == (21, 20)
    afresh = _tenant(LocalStorage(storage.root)).place.log.current_state()
    assert afresh == tenant.place.log.current_state()
    assert (tenant.files.read("b.csv"), tenant.files.read("a.csv")) == (b"theirs", b"21")


def test_a_log_that_was_put_back_from_a_backup_is_read_anew(storage, tmp_path):
    """A log of the same length with other entries is not taken for the one that was seen.

    Its entry has another size: two of one size may have been written in one tick of a file system's clock.
    """
    three = b"three" * 20
    tenant = _tenant(storage)
    tenant.files.write("a.csv", b"1")
    shutil.copytree(storage.root, tmp_path / "backup")
    tenant.files.write("a.csv", b"two")
    other = _tenant(LocalStorage(tmp_path / "backup"))
    other.files.write("a.csv", three)
    shutil.rmtree(storage.root)
    (tmp_path / "backup").rename(storage.root)
    assert tenant.version == 1
    assert three == tenant.files.read("a.csv")


def test_a_log_whose_past_was_erased_is_listed(storage):
    """Whoever has seen an entry that is gone, with those that followed it, finds the newest one."""
    tenant, other = _tenant(storage), _tenant(LocalStorage(storage.root))
    for number in range(3):
        tenant.files.write("a.csv", b"%d" % number)
    assert tenant.version == 2
    other.files.write("a.csv", b"3")
    other.files.write("a.csv", b"4")
    other.place.log.write_checkpoint(other.place.log.current_state())
    for version in range(4):
        other.place.storage.delete(f"{TENANT_LOG_FOLDER}/{version:020d}.json")
    assert (tenant.version, tenant.files.read("a.csv")) == (4, b"4")


def test_pages_of_tenants_follow_each_change(tmp_path):
    """A tenant that somebody else makes or deletes is in, or out of, the next page."""
    storage = LocalStorage(tmp_path)
    here, there = (Store(storage, ArrowEngine(storage), Settings()) for _ in range(2))
    here.tenant("b", create=True)
    assert here.tenants() == ("b",)
    there.tenant("a", create=True)
    assert here.tenants() == ("a", "b")
    here.delete_tenant("a")
    assert there.tenants() == ("b",)


class ForgottenMeanwhile(LogTail):
    """A tail that another thread forgets whenever the disk is looked at."""

    def _identity(self, version):
        self.forget()
        return super()._identity(version)


def test_a_checkpoint_of_another_thread_comes_between_two_looks(storage):
    """Each method goes by what was seen when it was called; after it the log is listed."""
    _tenant(storage).files.write("a.csv", b"1")
    tail = ForgottenMeanwhile(storage, TENANT_LOG_FOLDER)
    tail.note(0)
    assert (tail.is_at(0), tail.is_at(0)) == (True, False)
    tail.note(0)
    assert tail.note_added(1) is None
