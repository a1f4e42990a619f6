"""The heartbeat of a lease, and what others read of it."""

import json
import time

import pytest

from freezeframe.errors import StorageUnavailable
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Fault, FaultyStorage, Way
from freezeframe.store.tenant_log.entry import Entry, FileChange
from freezeframe.store.tenant_log.lease import HeldCommit, Lease, LiveLease, live_leases, parse_held_commit

STAGING = "_freezeframe/staging"
HELD = HeldCommit(
    Entry("w", 5, (FileChange("a.txt", "w/a", "5a" * 32, 3),), job_id="j"),
    until_ms=2_000_000_000_000,
    streams={"Account": "id"},
    files={"a.txt": ""},
    effects={"files": 1},
    erased=2,
    token="t",
)


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


def test_a_held_job_is_in_its_lease():
    """The commit replaces the heartbeat, and is read as it was written; no renewal comes after it."""
    storage = MemoryStorage()
    lease = Lease(storage, "w", "j", 0.01)
    lease.hold()
    lease.keep(HELD)
    time.sleep(0.05)

    assert live_leases(storage) == (LiveLease("w", HELD.until_ms, "j", HELD),)
    with pytest.raises(ValueError, match="SHA-256"):
        parse_held_commit(HELD.to_text().replace("a.txt", "b.txt"))


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b'{"heartbeat": 7, "jobId": "j"}', (7, "j")),
        (b'{"heartbeat": 7}', (7, None)),
        (b'{"jobId": "j"}', None),
        (b'{"heartbeat": 7, "commit": "{}"}', None),
        (b"[]", None),
        (b"{", None),
    ],
)
def test_an_unreadable_lease_is_as_old_as_its_file(content, read):
    """It still protects the files of its transaction; other staged files are no leases."""
    storage = MemoryStorage()
    for name in ("w.json", "w.commit"):
        storage.replace(f"{STAGING}/{name}", content)
    (status,) = (item for item in storage.list_from(STAGING) if item.name == "w.json")

    assert (LiveLease("w", *(read or (status.modified_ms,))),) == live_leases(storage)


def test_a_renewal_that_fails_is_told_and_tried_again(caplog):
    """The storage was away for a while: the lease goes on, and the log has the reason."""
    storage = FaultyStorage(MemoryStorage(), [Fault(1, Way.FAIL_BEFORE, "replace")])
    lease = Lease(storage, "w", None, 0.01)
    lease.hold()
    ends = time.monotonic() + 30
    while len(storage.calls) < 3:
        assert time.monotonic() < ends
        time.sleep(0.01)
    lease.stop()

    (record,) = caplog.records
    assert record.getMessage() == f"The lease {STAGING}/w.json was not renewed"
    assert record.exc_info[0] is StorageUnavailable
