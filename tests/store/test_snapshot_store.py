"""A store: tenants by id in folders of their own, made once, paged, cloned and deleted for good."""

import os
import shutil
import threading
import time
import unicodedata
from contextlib import suppress

import pandas as pd
import pyarrow as pa
import pytest
from tests import given
from tests.given import settings_with, table

from freezeframe.errors import (
    CorruptData,
    FileNotFound,
    InvalidName,
    InvalidOption,
    SealingUnavailable,
    TenantNotFound,
)
from freezeframe.identifiers import TenantId
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage, PrefixStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.blobs.sealing import read_master_key, rewrap
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenants import RegistryEntry, RegistryState

CANARY = b"canary-of-another-tenant-91c4"


def store_on(storage, environment="default", settings=None):
    return Store(storage, None, settings or settings_with(), environment)


def test_a_tenant_is_found_by_its_id(memory):
    """It is made when asked for, found by any process, and unknown ids are refused."""
    with pytest.raises(TenantNotFound):
        store_on(memory).tenant("acme")
    assert list(memory.list_below("")) == []
    store_on(memory).tenant("acme", create=True).files.write("a", b"1")
    assert store_on(memory).tenant("acme").files.read("a") == b"1"
    store_on(memory).tenant("acme", create=True).files.write("b", b"2")
    assert store_on(memory).tenants() == ("acme",)
    assert [item.name for item in memory.list_below("") if "acme" in item.name] == []


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\0", "a\u2028b", "a\u202eb", "a\u200bb", "_freezeframe", 7, None]
)
def test_forged_ids_are_refused(memory, name):
    """What cannot be an id is refused by every call, before anything is written."""
    store = store_on(memory)
    calls = (
        store.tenant,
        lambda item: store.tenant(item, create=True),
        store.delete_tenant,
        lambda item: store.clone_tenant(item, "x"),
        lambda item: store.clone_tenant("x", item),
        lambda item: store_on(memory, item),
    )
    for call in calls:
        with pytest.raises((InvalidName, TenantNotFound)):
            call(name)
    assert list(memory.list_below("")) == []


ODD = ["50 %", "#1", "{x}", "[y]", "caf\u00e9", "\U0001f600", "a@b", "a=b,c;d"]  # codespell:ignore caf


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_kept(memory, name):
    """Kept under its own name, in whichever Unicode form it comes; a twin by case is refused."""
    tenant = store_on(memory).tenant(name, create=True)
    tenant.stream(unicodedata.normalize("NFD", name)).update(pa.table({"Id": ["1"]}), key="Id")
    tenant.files.write(name, b"1")
    assert (name,) == tenant.streams()
    assert [name] == [item.path for item in tenant.files.list()]
    if name.upper() != name:
        with pytest.raises(InvalidName):
            tenant.stream(name.upper()).update(pa.table({"Id": ["1"]}), key="Id")


def test_tenants_and_environments_do_not_meet(memory):
    """The same id in two environments is two tenants; no file of one can be named from another."""
    one, other = (
        store_on(memory).tenant("acme", create=True),
        store_on(memory, "staging").tenant("acme", create=True),
    )
    other.files.write("secret", CANARY)
    assert one.files.list() == ()
    folder = store_on(memory, "staging")._registry.current_state().folder("staging", "acme")
    for path in (
        "secret",
        f"../{folder}/secret",
        f"tenants/{folder}/secret",
        f"../../tenants/{folder}/secret",
    ):
        with pytest.raises((InvalidName, FileNotFound)):
            one.files.read(path)
    store_on(memory, "staging").tenant("theirs", create=True)
    told = set()
    for name in (folder, "theirs", "nobody"):  # another environment's tenant is as one that never was
        with pytest.raises(TenantNotFound) as caught:
            store_on(memory).tenant(name)
        told.add(str(caught.value).replace(name, "?"))
    assert len(told) == 1


def test_of_two_that_make_a_tenant_one_folder_stays(local):
    """Eight processes' worth of threads make the same tenants at once: all see the same ones."""
    found = {name: set() for name in "abc"}
    start = threading.Barrier(8)

    def make():
        store = store_on(local)
        start.wait()
        for name, folders in found.items():
            folders.add(repr(store.tenant(name, create=True)))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(folders) for folders in found.values()] == [1, 1, 1]
    folders = {item.name.split("/")[0] for item in local.list_below("tenants")}
    assert len(folders) == 3


def test_pages_are_in_order(memory):
    """Pages follow each other without gap or repetition; a prefix narrows them."""
    store = store_on(memory)
    for name in ("b2", "a", "b10", "c", "b1", "é"):
        store.tenant(name, create=True)
    assert store.tenants() == ("a", "b1", "b10", "b2", "c", "é")
    assert store.tenants(prefix="b") == ("b1", "b10", "b2")
    assert store.tenants(prefix="b", after="b1", limit=1) == ("b10",)
    assert store.tenants(after="é") == ()
    with pytest.raises(InvalidOption):
        store.tenants(limit=0)
    assert list(store.tenant_pages(4)) == [("a", "b1", "b10", "b2"), ("c", "é")]
    assert list(store.tenant_pages()) == [store.tenants()]


def test_a_page_of_ten_thousand_comes_from_a_checkpoint_and_one_entry(memory):
    """A store just opened lists a page of them without the entries that the checkpoint holds."""
    tenants = {f"tenant-{number:05d}": f"{number:032x}" for number in range(10_000)}
    state = RegistryState(version=10_000, timestamp_ms=1, tenants={"default": tenants})
    folder = "_freezeframe/registry"
    memory.put_if_absent(
        f"{folder}/{10_000:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", state.to_checkpoint()
    )
    entry = RegistryEntry("create", "default", "tenant-09999", f"{9_999:032x}", "w", 1)
    memory.put_if_absent(f"{folder}/{10_000:020d}.json", entry.to_bytes())
    store_on(memory).tenant("first", create=True)  # the entry after the checkpoint
    page = store_on(memory).tenants(after="tenant-04999", limit=100)
    assert (page[0], len(page)) == ("tenant-05000", 100)


def test_the_registry_keeps_checkpoints_and_does_without(memory):
    """Each hundredth entry is a checkpoint, of which two are kept; a damaged one is passed over."""
    store = store_on(memory)
    for number in range(302):
        store._registry.create("default", f"t{number}", f"{number:032x}")
    checkpoints = [
        item.name for item in memory.list_from("_freezeframe/registry") if "checkpoint." in item.name
    ]
    assert [int(name[:20]) for name in checkpoints] == [200, 300]
    assert len(store_on(memory).tenants(limit=1000)) == 302
    memory.replace(f"_freezeframe/registry/{checkpoints[1]}", b"{}")
    assert len(store_on(memory).tenants(limit=1000)) == 302


class Names(MemoryStorage):
    """Counts the names that listings gave."""

    listed = 0

    def list_from(self, folder, start=""):
        """See ``MemoryStorage``."""
        found = list(super().list_from(folder, start))
        self.listed = max(self.listed, len(found))
        return iter(found)


def test_a_long_registry_is_not_listed_whole():
    """The hundredth entry after a checkpoint lists the last few hundred names, not those of all entries."""
    storage, folder, newest = Names(), "_freezeframe/registry", 2_099
    entry = RegistryEntry("create", "default", "known", f"{1:032x}", "w", 1).to_bytes()
    for version in range(newest + 1):
        storage.put_if_absent(f"{folder}/{version:020d}.json", entry)
    state = RegistryState(newest, 1, {"default": {"known": f"{1:032x}"}})
    name = f"{folder}/{newest:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    storage.put_if_absent(name, state.to_checkpoint())
    registry = store_on(storage)._registry
    storage.listed = 0
    registry.create("default", "new", f"{2:032x}")
    assert any(f"{newest + 1:020d}.checkpoint" in item.name for item in storage.list_below(folder))
    assert 600 > storage.listed


def filled(storage, settings, name="acme"):
    store = store_on(storage, settings=settings)
    tenant = store.tenant(name, create=True)
    with tenant.job() as job:
        job.stream("Account").update(
            pd.DataFrame({"Id": ["1", "2"], "Name": ["x", CANARY.decode()]}), key="Id"
        )
        job.files.write("folder/a", CANARY)
        job.files.write("secret", b"sealed" + CANARY, sealed=True)
    return store


def test_a_deleted_tenant_leaves_nothing(keyed, local, tmp_path):
    """Every byte and folder of it is gone, the answer says what it was, and others are untouched."""
    store = filled(local, keyed)
    store.tenant("other", create=True).files.write("a", b"1")
    folder = store._registry.current_state().folder("default", "acme")
    place = tmp_path / "snapshots" / "tenants" / folder
    (place / "planted").symlink_to(tmp_path)
    before = [path for path in place.rglob("*") if path.is_symlink() or path.is_file()]
    size = sum(path.lstat().st_size for path in before)
    removed = store.delete_tenant("acme")
    assert (removed.versions, removed.streams, removed.files, removed.keys) == (1, 1, 2, 1)
    assert (len(before), size) == (removed.objects, removed.size_bytes)
    assert tmp_path.is_dir()
    assert not place.exists()
    assert [
        path for path in (tmp_path / "snapshots").rglob("*") if path.is_file() and CANARY in path.read_bytes()
    ] == []
    with pytest.raises(TenantNotFound):
        store.tenant("acme")
    with pytest.raises(TenantNotFound):
        store.delete_tenant("acme")
    assert store.tenant("other").files.read("a") == b"1"
    assert store.tenant("acme", create=True).files.list() == ()


@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER])
def test_a_deletion_is_finished_after_a_crash(memory, way):
    """Wherever it dies, the tenant is whole, or is gone and the same call or a sweep removes the rest."""
    store_on(memory).tenant("acme", create=True).files.write("a", CANARY)
    for number in range(200):
        storage = memory.copy()
        try:
            store_on(FaultyStorage(storage, [Fault(number, way)])).delete_tenant("acme")
        except Crash:
            pass
        else:
            break
        store = store_on(storage)
        if store.tenants():
            assert store.tenant("acme").files.read("a") == CANARY
            continue
        if number % 2:
            store.sweep()
        else:
            with suppress(TenantNotFound):  # it had been finished but for the answer
                store.delete_tenant("acme")
        assert list(storage.list_below("tenants")) == []
        assert dict(store._registry.current_state().leaving) == {}
    assert 15 < number < 199


class DeletingStorage(MemoryStorage):
    """At one write of the tenant's, somebody else deletes the tenant, just before it or just after."""

    def __init__(self):
        super().__init__()
        self.countdown = None
        self.is_before = True

    def put_if_absent(self, name, content):
        self._struck(name, is_before=True)
        super().put_if_absent(name, content)
        self._struck(name, is_before=False)

    def _struck(self, name, *, is_before):
        if self.countdown is None or is_before != self.is_before or not name.startswith("tenants/"):
            return
        self.countdown -= 1
        if self.countdown < 0:
            self.countdown = None
            store_on(self).delete_tenant("acme")


@pytest.mark.parametrize("is_before", [True, False])
def test_a_job_ends_with_its_tenant(is_before):
    """Whenever the tenant is deleted, the job under way fails and leaves nothing behind."""
    rows = pa.table({"Id": ["1"], "v": [1]})
    for number in range(50):
        storage = DeletingStorage()
        tenant = store_on(storage).tenant("acme", create=True)
        tenant.stream("Lead").update(rows, key="Id")
        storage.countdown, storage.is_before = number, is_before
        try:
            with tenant.job("one") as job:
                job.stream("Account").update(rows, key="Id")
                job.files.write("a", CANARY)
        except TenantNotFound:
            assert [item.name for item in storage.list_below("tenants")] == [], number
            continue
        assert storage.countdown is not None, number
        break
    assert 3 <= number < 49


def test_a_job_without_changes_does_not_outlive_its_tenant(memory):
    """It is told as well: a tenant that is gone has no job that succeeded."""
    store = store_on(memory)
    tenant = store.tenant("acme", create=True)

    with pytest.raises(TenantNotFound), tenant.job("one"):
        store_on(memory).delete_tenant("acme")

    assert list(memory.list_below("tenants")) == []


def test_a_sweep_spares_what_is_young(memory):
    """A folder that the registry does not know goes only when nobody has written into it for long."""
    memory.put_if_absent(f"tenants/{'a' * 32}/half", b"1")
    store_on(memory).sweep()
    assert len(list(memory.list_below("tenants"))) == 1
    time.sleep(0.002)
    store_on(memory, settings=Settings(lease_dead_seconds=0, gc_grace_seconds=0)).sweep()
    assert list(memory.list_below("tenants")) == []


def test_a_sweep_removes_what_tenants_folders_are_named_and_says_it(memory):
    """A folder of another name is somebody else's, and is left alone."""
    for name in ("a" * 32, "beta", "A" * 32):
        memory.put_if_absent(f"tenants/{name}/half", b"12")
    time.sleep(0.002)
    done = store_on(memory, settings=Settings(lease_dead_seconds=0, gc_grace_seconds=0)).sweep()

    assert [("", "a" * 32, 1, 2)] == [
        (item.environment, item.tenant, item.objects, item.size_bytes) for item in done
    ]
    assert {f"tenants/{name}/half" for name in ("beta", "A" * 32)} == {
        item.name if item.name.startswith("tenants/") else f"tenants/{item.name}"
        for item in memory.list_below("tenants")
    }


@pytest.mark.parametrize(
    ("folder", "is_store"),
    [
        ("st/tenants/beta", False),
        ("st/tenants", True),
        ("st/tenants/deep/er", True),
        ("st/_freezeframe/x", False),
        ("one/A.snapshot", False),
        ("one/A.snapshot/inner", True),
        ("one/_freezeframe", False),
        ("link/beta", False),
    ],
)
def test_nothing_begins_inside_of_another_tenants_or_stores_folders(tmp_path, folder, is_store):
    """It would be swept as what belongs to no tenant, or as data that no version names."""
    store_on(LocalStorage(tmp_path / "st")).tenant("acme", create=True)
    given.tenant(LocalStorage(tmp_path / "one")).stream("A").update(table(1), override=True, key="Id")
    (tmp_path / "link").symlink_to(tmp_path / "st" / "tenants")
    place = LocalStorage(tmp_path / folder)
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(InvalidOption, match="is inside of"):
        store_on(place).tenant("beta", create=True) if is_store else given.tenant(place, files={"f": b"1"})
    assert before == sorted(tmp_path.rglob("*"))


def test_a_clone_has_all_and_shares_nothing(keyed, local):
    """Rows, files and secrets are the source's at that moment; what happens to one leaves the other alone."""
    store = filled(local, keyed)
    clone = store.clone_tenant("acme", "copy")
    assert clone.version == 0
    assert ["x", CANARY.decode()] == store.tenant("copy").stream("Account").read()["Name"].to_list()
    assert clone.files.read("secret") == b"sealed" + CANARY
    assert clone.files.list()[0].sealed
    known = store._registry.current_state().tenants["default"]
    one, other = (PrefixStorage(local, f"tenants/{known[name]}") for name in ("acme", "copy"))
    inodes = [
        {place.local_path(f.name).stat().st_ino for f in place.list_below("")} for place in (one, other)
    ]
    assert inodes[0] & inodes[1] == set()
    tables = [place.read("Account.snapshot/_delta_log/00000000000000000000.json") for place in (one, other)]
    assert tables[0] != tables[1]
    store.delete_tenant("acme")
    assert clone.files.read("folder/a") == CANARY
    assert len(clone.stream("Account").read()) == 2
    assert clone.stream("Account").version == 0


def test_a_clone_that_cannot_be_is_no_tenant(keyed, local):
    """A missing source, a taken target, a lost key or a damaged file: there is no half tenant afterwards."""
    store = filled(local, keyed)
    with pytest.raises(TenantNotFound):
        store.clone_tenant("nobody", "copy")
    with pytest.raises(InvalidOption):
        store.clone_tenant("acme", "acme")
    with pytest.raises(SealingUnavailable):
        store_on(local).clone_tenant("acme", "copy")
    (data,) = [
        item.name
        for item in local.list_below("tenants")
        if item.name.endswith(".parquet") and "_delta_log" not in item.name
    ]
    path = local.local_path(f"tenants/{data}")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptData):
        store.clone_tenant("acme", "copy")
    assert store.tenants() == ("acme",)
    assert len({item.name.split("/")[0] for item in local.list_below("tenants")}) == 1


def test_rotating_the_master_key_needs_no_file_anew(keyed, memory, tmp_path):
    """All tenants' secrets open under the new key, none under the old one, and no blob is touched."""
    filled(memory, keyed)
    filled(memory, keyed, "second")
    blobs = {item.name: item.modified_ms for item in memory.list_below("tenants") if "/blobs/" in item.name}
    new_file = tmp_path / "new.key"
    new_file.write_bytes(os.urandom(32))
    new_file.chmod(0o600)
    rotated = store_on(memory).rotate_master_key(
        read_master_key(keyed.master_key_file), read_master_key(new_file)
    )
    assert rotated == 2
    after = store_on(memory, settings=Settings(master_key_file=new_file))
    assert after.tenant("second").files.read("secret") == b"sealed" + CANARY
    with pytest.raises(SealingUnavailable):
        store_on(memory, settings=keyed).tenant("acme").files.read("secret")
    assert blobs == {
        item.name: item.modified_ms for item in memory.list_below("tenants") if "/blobs/" in item.name
    }


def test_readers_go_on_while_the_master_key_is_rotated(keyed, memory, tmp_path):
    """Who has been told both keys reads before, during and after; nothing else is needed."""
    filled(memory, keyed)
    filled(memory, keyed, "second")
    new_file = tmp_path / "new.key"
    new_file.write_bytes(os.urandom(32))
    new_file.chmod(0o600)
    both = Settings(master_key_file=new_file, master_key_file_other=keyed.master_key_file)
    store = store_on(memory, settings=both)

    assert store.tenant("acme").files.read("secret") == b"sealed" + CANARY
    rewrap(
        store.tenant("acme").context.storage,
        read_master_key(keyed.master_key_file),
        read_master_key(new_file),
    )
    assert [store.tenant(item).files.read("secret") for item in ("acme", "second")] == [
        b"sealed" + CANARY
    ] * 2


def test_a_planted_link_leads_nowhere(local, tmp_path):
    """A link in one tenant's folder to another's is neither read nor written through."""
    store = store_on(LocalStorage(tmp_path / "snapshots"))
    for name in "ab":
        store.tenant(name, create=True).files.write("f", CANARY if name == "b" else b"own")
    known = store._registry.current_state().tenants["default"]
    mine, theirs = (tmp_path / "snapshots" / "tenants" / known[name] for name in "ab")
    blobs = mine / "_freezeframe" / "blobs"
    for folder in blobs.iterdir():
        for file in folder.iterdir():
            file.unlink()
            file.symlink_to(next((theirs / "_freezeframe" / "blobs").rglob("*/*")))
    with pytest.raises(Exception, match="symbolic link") as caught:
        store.tenant("a").files.read("f")
    assert caught.value.error_code == "UNSAFE_PATH"


def test_a_deleted_tenant_is_deleted_for_those_who_opened_it_by_its_path(tmp_path, open_finding):
    """By any spelling, before or after: nothing is committed, and what lies there is not removed by that."""
    root, link = tmp_path / "store", tmp_path / "link"
    store = store_on(LocalStorage(root))
    store.tenant("acme", create=True).files.write("a", b"1")
    folder = root / "tenants" / store.folder(TenantId("acme"))
    link.symlink_to(folder)
    early = [open_finding(LocalStorage(place)) for place in (folder, link)]
    for number, tenant in enumerate(early):
        tenant.files.write("a", bytes([number]))
    assert store.tenant("acme").files.read("a") == bytes([1])
    shutil.copytree(folder, tmp_path / "copy")
    store.delete_tenant("acme")
    for tenant in early:
        with pytest.raises(TenantNotFound):
            tenant.files.write("a", b"2")
    shutil.copytree(tmp_path / "copy", folder, dirs_exist_ok=True)
    put_back = open_finding(LocalStorage(folder))
    with pytest.raises(TenantNotFound):
        put_back.files.write("a", b"2")

    assert put_back.files.read("a") == bytes([1])
