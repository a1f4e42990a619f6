"""A kill anywhere: the state before or the one after, and what was left over is swept."""

import pytest

from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Crash, Fault, FaultyStorage, Way
from freezeframe.store import Tenant


@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER])
def test_a_cut_write_leaves_the_old_file_or_the_new(way):
    """Cut at each storage call of a write: old or new; it works again, and gc leaves no orphan."""
    settings = Settings(gc_grace_seconds=0, lease_dead_seconds=0)
    call = 0
    while True:
        storage = MemoryStorage()
        Tenant(storage, None, settings).files.write("f", b"old")
        try:
            Tenant(FaultyStorage(storage, [Fault(call, way)]), None, settings).files.write("f", b"new")
        except Crash:
            call += 1
        else:
            break
        after = Tenant(storage, None, settings)
        assert after.files.read("f") in (b"old", b"new")
        after.files.write("f", b"newest")
        assert after.files.read("f") == b"newest"
        after.gc()
        after.gc()
        assert [item.name for item in storage.list_below("_freezeframe/staging")] == []
    assert call > 3
