"""Cleaning beside readers and rollbacks: what is listed can be restored, whatever gc did."""

from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant


def test_what_gc_leaves_listed_can_be_restored():
    """After gc each listed version restores equal, and one that is not listed is gone, not hollow."""
    tenant = Tenant(MemoryStorage(), None, Settings(gc_grace_seconds=0, lease_dead_seconds=0))
    for number in range(6):
        tenant.files.write("f", b"%d" % number)
    tenant.tag("kept", 1)
    tenant.set_retention(keep_versions=3)
    tenant.gc()
    tenant.gc()
    listed = [entry.version for entry in tenant.history()]

    assert 1 in listed
    assert 0 not in listed
    for version in listed:
        expected = tenant.at(version).files.read("f")
        tenant.restore(version)
        assert tenant.files.read("f") == expected
