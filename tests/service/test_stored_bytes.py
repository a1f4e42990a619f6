"""The bytes that tenants hold, and values kept by version."""

import threading
from types import SimpleNamespace

import pytest

from freezeframe.identifiers import EnvironmentName
from freezeframe.service.access.access import Stores
from freezeframe.service.stored_bytes import EnvironmentSize, StoredBytes, StoredSizes, VersionedCache
from freezeframe.settings import Settings
from freezeframe.store.tenant_log.state import TenantState


def test_the_value_of_the_same_state_is_made_once():
    cache, state, made = VersionedCache(2), TenantState(version=1), []
    for _ in range(2):
        assert cache.value("acme", state, lambda before: made.append(before) or "one") == "one"
    assert made == [None]


@pytest.mark.parametrize(
    ("later", "known"),
    [
        (TenantState(version=4), "before"),
        (TenantState(version=2), None),
        (TenantState(version=4, erased=4), None),
    ],
    ids=["commits", "an older backup", "an erasure"],
)
def test_an_earlier_value_is_handed_on_where_commits_alone_lie_between(later, known):
    cache, made = VersionedCache(2), []
    cache.value("acme", TenantState(version=3), lambda _: "before")
    cache.value("acme", later, made.append)
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
