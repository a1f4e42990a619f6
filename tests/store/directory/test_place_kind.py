"""A store cannot become a tenant, nor a tenant a store; nothing is written where it is tried."""

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.snapshot_store import Store


def _store(storage):
    return Store(storage, ArrowEngine(storage), Settings())


def _tenant(storage):
    return Tenant(storage, ArrowEngine(storage), Settings())


def _names(storage):
    return [item.name for item in storage.list_below("")]


@pytest.fixture(params=["memory", "local"])
def storage(request, tmp_path):
    """A storage in memory and one on the disk."""
    return MemoryStorage() if request.param == "memory" else LocalStorage(tmp_path / "place")


def test_a_store_is_not_opened_as_a_tenant(storage):
    """The remedy names the options of a store's tenant."""
    _store(storage).tenant("acme", create=True)
    before = _names(storage)

    with pytest.raises(InvalidOption, match=r"--root and the tenant by --tenant"):
        _tenant(storage)
    assert before == _names(storage)


def test_a_tenant_is_not_opened_as_a_store(storage):
    """The remedy names --dir."""
    _tenant(storage).files.write("a", b"1")

    with pytest.raises(InvalidOption, match="--dir"):
        _store(storage)


def test_a_directory_that_became_a_store_takes_no_first_change(storage):
    """A tenant that was opened on an empty directory looks once more before its first entry."""
    tenant = _tenant(storage)
    _store(storage).tenant("acme", create=True)
    before = _names(storage)

    for change in (lambda: tenant.files.write("a", b"1"), lambda: tenant.set_retention(3)):
        with pytest.raises(InvalidOption, match="store of many tenants"):
            change()
    assert before == _names(storage)
    assert _store(storage).tenants() == ("acme",)


def test_a_directory_that_became_a_tenant_takes_no_tenants(storage):
    """A store that was opened on an empty directory looks once more before its first tenant."""
    store = _store(storage)
    _tenant(storage).files.write("a", b"1")
    before = _names(storage)

    with pytest.raises(InvalidOption, match="one tenant's directory"):
        store.tenant("acme", create=True)
    assert before == _names(storage)


def test_the_folder_of_a_stores_tenant_is_no_store(storage):
    """Not even before its first version, when no log is in it."""
    store = _store(storage)
    store.tenant("acme", create=True)
    folder = LocalStorage(f"{storage.root}/tenants/{store.folder('acme')}")

    with pytest.raises(InvalidOption, match="one tenant's directory"):
        _store(folder)
