"""Somebody else's id: answered as if there were none."""

import pytest

from freezeframe.errors import TenantNotFound
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store.snapshot_store import Store


def test_a_foreign_tenant_is_as_none():
    """A tenant of another environment and one that never was give the same error, but for the id."""
    storage = MemoryStorage()
    Store(storage, None, Settings(), environment="theirs").tenant("acme", create=True).files.write("f", b"x")
    ours = Store(storage, None, Settings(), environment="ours")
    told = []
    for name in ("acme", "nobody"):
        for call in (ours.tenant, ours.delete_tenant, lambda item: ours.clone_tenant(item, "copy")):
            with pytest.raises(TenantNotFound) as caught:
                call(name)
            told.append(str(caught.value).replace(name, "?"))
    assert len(set(told)) == 1
    assert ours.tenants() == ()
