"""Secrets at rest: no byte of them is on the disk, and their place is part of the seal."""

import os

import pytest

from freezeframe.errors import CorruptData, SealingUnavailable
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store.snapshot_store import Store

SECRET = b"secret-2f9c1a77"


def test_no_byte_of_a_secret_is_on_the_disk(tmp_path):
    """Neither names nor bytes tell the secret; it opens with the key and in its own tenant only."""
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    storage = MemoryStorage()
    store = Store(storage, None, Settings(master_key_file=key))
    for name in "ab":
        store.tenant(name, create=True).files.write("config.json", SECRET + name.encode(), sealed=True)
    files = [item.name for item in storage.list_below("")]

    assert [name for name in files if SECRET in storage.read(name)] == []
    with pytest.raises(SealingUnavailable):
        Store(storage, None, Settings()).tenant("a").files.read("config.json")
    blobs = [name for name in files if "/blobs/" in name]
    first, second = (storage.read(name) for name in blobs)
    storage.replace(blobs[0], second)
    storage.replace(blobs[1], first)
    for name in "ab":
        with pytest.raises(CorruptData):
            store.tenant(name).files.read("config.json")
