"""Erasing on demand: every version and every byte, and the deletion of a tenant is certified."""

import pyarrow as pa
import pytest

from freezeframe.errors import TenantNotFound
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store.snapshot_store import Store

CANARY = "person-7d1f20b9"


def test_an_erasure_leaves_no_byte():
    """No byte names the person after the erasure, and none of the tenant is there after its deletion."""
    storage = MemoryStorage()
    store = Store(storage, None, Settings(gc_grace_seconds=0, lease_dead_seconds=0))
    tenant = store.tenant("acme", create=True)
    tenant.stream("Lead").update(pa.table({"Id": [CANARY, "other"], "v": [1, 2]}), key="Id")
    assert any(CANARY.encode() in storage.read(item.name) for item in storage.list_below(""))

    erasure = tenant.erase("Lead", [CANARY])

    assert erasure.left.is_clean
    assert [item.name for item in storage.list_below("") if CANARY.encode() in storage.read(item.name)] == []
    assert tenant.stream("Lead").read(as_="arrow").to_pydict() == {"Id": ["other"], "v": [2]}
    store.delete_tenant("acme")
    assert list(storage.list_below("tenants")) == []
    with pytest.raises(TenantNotFound):
        store.tenant("acme")
