"""A tenant's data key: made once, wrapped, rotated, and no other tenant's."""

import os
import threading

import pytest

from freezeframe.errors import CorruptLog, SealingUnavailable
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage, PrefixStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store.blobs.sealing import MasterKey, data_key, read_master_key, rewrap


@pytest.fixture
def keyed(tmp_path):
    """A function that gives settings with a new master key."""

    def make(name="master.key"):
        file = tmp_path / name
        file.write_bytes(os.urandom(32))
        file.chmod(0o600)
        return Settings(master_key_file=file)

    return make


def test_a_data_key_is_made_once(keyed):
    """Of many that make a tenant's first key at once, all have the same one afterwards."""
    settings, memory, found = keyed(), MemoryStorage(), []
    start = threading.Barrier(6)

    def make():
        start.wait()
        found.append(data_key(memory, settings, create=True).secret)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert {data_key(memory, settings).secret} == set(found)
    assert (
        b"".join(
            memory.read(f"_freezeframe/keys/{item.name}") for item in memory.list_below("_freezeframe/keys")
        ).find(found[0])
        < 0
    )


def test_a_tenant_without_a_key_has_none(keyed):
    """Reading makes no key."""
    with pytest.raises(SealingUnavailable):
        data_key(MemoryStorage(), keyed())


@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER])
def test_rotation_survives_a_crash_anywhere(keyed, way):
    """Wherever it dies, the key can be had under one of the master keys, and doing it again finishes."""
    old_settings, new_settings = keyed("old"), keyed("new")
    old, new = (read_master_key(item.master_key_file) for item in (old_settings, new_settings))
    for number in range(100):
        memory = MemoryStorage()
        secret = data_key(memory, old_settings, create=True).secret
        try:
            rewrap(FaultyStorage(memory, [Fault(number, way)]), old, new)
        except Crash:
            assert rewrap(memory, old, new)
        else:
            break
        assert secret == data_key(memory, new_settings).secret
        with pytest.raises(SealingUnavailable):
            data_key(memory, old_settings)
    assert number > 4


class RotatedMeanwhile(MemoryStorage):
    """A storage on which ``rotate`` runs once, between the listing of the records and their reading."""

    def __init__(self):
        super().__init__()
        self.rotate = None

    def list_from(self, folder, start=""):
        listed = list(super().list_from(folder, start))
        if self.rotate is not None:
            rotate, self.rotate = self.rotate, None
            rotate()
        return iter(listed)


@pytest.mark.parametrize("knows_both", [True, False])
def test_a_rotation_during_a_read_makes_no_second_key(keyed, knows_both):
    """Who reads meanwhile gets the tenant's key, or is refused: a new data key would lose what is sealed."""
    old, new, storage = keyed("old"), keyed("new"), RotatedMeanwhile()
    secret = data_key(storage, old, create=True).secret
    masters = read_master_key(old.master_key_file), read_master_key(new.master_key_file)
    storage.rotate = lambda: rewrap(storage, *masters)
    other = Settings(
        master_key_file=old.master_key_file, master_key_file_other=new.master_key_file if knows_both else None
    )

    if knows_both:
        assert data_key(storage, other, create=True).secret == secret
    else:
        with pytest.raises(SealingUnavailable, match="cannot be unwrapped"):
            data_key(storage, other, create=True)
    assert data_key(storage, new).secret == secret


def test_rotation_needs_the_old_key(keyed):
    """With a wrong old key nothing is changed; a tenant without a key has nothing to rotate."""
    settings, memory = keyed(), MemoryStorage()
    secret = data_key(memory, settings, create=True).secret
    with pytest.raises(SealingUnavailable):
        rewrap(memory, MasterKey(os.urandom(32)), MasterKey(os.urandom(32)))
    assert secret == data_key(memory, settings).secret
    assert not rewrap(MemoryStorage(), MasterKey(os.urandom(32)), MasterKey(os.urandom(32)))


def test_another_tenants_key_is_refused(keyed):
    """A key record that was copied into another tenant's folder of the store opens nothing there."""
    settings, memory = keyed(), MemoryStorage()
    one, other = (PrefixStorage(memory, f"tenants/{name * 32}") for name in "ab")
    data_key(one, settings, create=True)
    other.put_if_absent(
        "_freezeframe/keys/00000000000000000000.json", one.read("_freezeframe/keys/00000000000000000000.json")
    )
    with pytest.raises(SealingUnavailable):
        data_key(other, settings)


def test_a_damaged_record_is_told(keyed):
    """A record that is not a record is damage, not a missing key."""
    memory = MemoryStorage()
    memory.put_if_absent("_freezeframe/keys/00000000000000000000.json", b"{}")
    with pytest.raises(CorruptLog):
        data_key(memory, keyed())
