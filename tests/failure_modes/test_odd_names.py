"""Names of tenants, streams and files: odd ones are kept as they are, dangerous ones are refused."""

import unicodedata

import pyarrow as pa
import pytest

from freezeframe.errors import InvalidName
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store.snapshot_store import Store

DANGEROUS = ["", ".", "..", "a/b", "a\\b", "a\0b", "a\nb", "CON", "nul.txt", "a.", " a", "x" * 256, "\u2028"]
ODD = ["50 %", "#1", "{x}", "[y]", "caf\u00e9", "\U0001f600", "a@b", "a=b,c;d"]  # codespell:ignore caf


@pytest.mark.parametrize("name", DANGEROUS)
def test_dangerous_names_are_refused(name):
    """A typed error before anything is written, for a tenant, a stream and a file."""
    storage = MemoryStorage()
    store = Store(storage, None, Settings())
    for call in (
        lambda: store.tenant(name, create=True),
        lambda: Store(storage, None, Settings(), environment=name),
    ):
        with pytest.raises(InvalidName):
            call()
    assert list(storage.list_below("")) == []
    tenant = store.tenant("a", create=True)
    with pytest.raises(InvalidName):
        tenant.stream(name)
    if "/" not in name:
        with pytest.raises(InvalidName):
            tenant.files.write(name, b"")


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_kept(name):
    """Kept under its own name, in whichever Unicode form it comes; a twin by case is refused."""
    tenant = Store(MemoryStorage(), None, Settings()).tenant(name, create=True)
    tenant.stream(unicodedata.normalize("NFD", name)).update(pa.table({"Id": ["1"]}), key="Id")
    tenant.files.write(name, b"1")
    assert (name,) == tenant.streams()
    assert [name] == [item.path for item in tenant.files.list()]
    if name.upper() != name:
        with pytest.raises(InvalidName):
            tenant.stream(name.upper()).update(pa.table({"Id": ["1"]}), key="Id")
