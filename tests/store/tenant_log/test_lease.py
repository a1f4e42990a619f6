"""The heartbeat of a lease."""

import json
import time

from freezeframe.storage import MemoryStorage
from freezeframe.store.tenant_log.lease import Lease, live_leases


def test_a_lease_is_renewed_until_it_ends():
    """What ends in time is written once; what takes longer is renewed, and gone when it is released."""
    storage = MemoryStorage()
    short, long = (Lease(storage, name, None, seconds) for name, seconds in (("short", 0.2), ("long", 0.05)))
    short.hold()
    first = storage.read("_freezeframe/staging/short.json")
    short.stop()
    long.hold()
    begun = storage.read("_freezeframe/staging/long.json")
    ends = time.monotonic() + 30
    while storage.read("_freezeframe/staging/long.json") == begun:
        assert time.monotonic() < ends
        time.sleep(0.01)
    time.sleep(0.3)
    long.release()

    assert first == storage.read("_freezeframe/staging/short.json")
    assert json.loads(begun)["writeId"] == "long"
    assert [lease.write_id for lease in live_leases(storage)] == ["short"]
