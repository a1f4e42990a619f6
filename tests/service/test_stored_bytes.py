"""The bytes that tenants hold, and values kept by version."""

import shutil
import threading
import time
from types import SimpleNamespace

import pyarrow as pa
import pytest
from tests import given

from freezeframe.identifiers import EnvironmentName
from freezeframe.service.access.access import Stores
from freezeframe.service.stored_bytes import EnvironmentSize, StoredBytes, StoredSizes, VersionedCache
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage


def tenant_at(folder):
    return given.tenant(LocalStorage(folder))


def write(folder, count):
    """Make so many versions of a tenant's stream."""
    for number in range(count):
        tenant_at(folder).stream("A").update(pa.table({"Id": [number], "v": [time.time()]}), key="Id")


def put_back(folder, more):
    """Bring back the backup of version 1, and let others write on it."""
    shutil.rmtree(folder)
    shutil.copytree(f"{folder}-backup", folder)
    write(folder, more)


def test_the_value_of_the_same_state_is_made_once(tmp_path):
    cache, tenant, made = VersionedCache(2), tenant_at(tmp_path / "t"), []
    for _ in range(2):
        state = tenant.context.log.current_state()
        assert cache.value(tenant.context.log, state, lambda before: made.append(before) or "one") == "one"
    assert made == [None]


@pytest.mark.parametrize(
    ("change", "known"),
    [
        (lambda folder: write(folder, 2), "before"),
        (lambda folder: put_back(folder, 0), None),
        (lambda folder: put_back(folder, 3), None),
        (lambda folder: (shutil.rmtree(folder), write(folder, 5)), None),
        (lambda folder: tenant_at(folder).erase("A", [0]), None),
    ],
    ids=["commits", "an older backup", "a backup that went on", "a folder made anew", "an erasure"],
)
def test_an_earlier_value_is_handed_on_where_commits_alone_lie_between(tmp_path, change, known):
    cache, folder, made = VersionedCache(2), tmp_path / "t", []
    write(folder, 2)
    shutil.copytree(folder, f"{folder}-backup")
    write(folder, 1)
    tenant = tenant_at(folder)
    cache.value(tenant.context.log, tenant.context.log.current_state(), lambda _: "before")
    change(folder)
    cache.value(tenant.context.log, tenant.context.log.current_state(), made.append)
    assert made == [known]


@pytest.fixture
def stores(tmp_path):
    return Stores(str(tmp_path / "store"), Settings())


def sizes_of(stores, tmp_path):
    return StoredSizes(stores, StoredBytes(SimpleNamespace(), 0))


def fill(stores, environment, tenant, size):
    store = stores.environment(EnvironmentName(environment))
    store.tenant(tenant, create=True).files.write("a.bin", bytes(size))


def test_tenants_are_counted_by_environment(stores, tmp_path):
    """Their number, and what they hold now."""
    fill(stores, "prod", "small", 1000)
    fill(stores, "prod", "large", 1 << 20)
    fill(stores, "test", "other", 5)

    counted = sizes_of(stores, tmp_path).count()

    assert counted == [EnvironmentSize("prod", 2, 1000 + (1 << 20)), EnvironmentSize("test", 1, 5)]


def test_a_damaged_tenant_leaves_the_others_counted(stores, tmp_path):
    """What cannot be read has no bytes; the log names it."""
    fill(stores, "prod", "whole", 7)
    fill(stores, "prod", "broken", 8)
    folder = stores.environment(EnvironmentName("prod")).folder("broken")
    entries = [path for path in (tmp_path / "store").rglob("*.json") if folder in path.parts]
    assert entries
    for entry in entries:
        entry.write_bytes(b"{")
    anew = Stores(stores.root, stores.settings)

    assert next((item.tenants, item.bytes) for item in sizes_of(anew, tmp_path).count()) == (1, 7)


def test_a_process_counts_once_in_a_while(stores, tmp_path):
    """Asked twice at once: one count."""
    fill(stores, "prod", "a", 7)
    told, ended = [], threading.Event()

    def tell(found):
        told.append(found)
        ended.set()

    sizes = sizes_of(stores, tmp_path)
    assert [sizes.count_in_background(tell) for _ in range(2)] == [True, False]
    assert ended.wait(10)
    assert [sum(item.bytes for item in found) for found in told] == [7]
