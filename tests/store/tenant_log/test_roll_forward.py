"""What follows a commit: a job of many streams writes some of the checkpoints that are due."""

import hashlib
from contextlib import suppress

import pyarrow as pa
import pytest

from freezeframe.errors import CorruptLog, StorageUnavailable
from freezeframe.identifiers import StreamName
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Fault, FaultyStorage, Way
from freezeframe.store.model.directory import long_commit_file
from freezeframe.store.model.receipt import Counts
from freezeframe.store.tenant_log import roll_forward
from freezeframe.store.tenant_log.entry import StreamChange


def checkpoints(storage):
    names = (item.name for item in storage.list_below("") if item.name.endswith(".checkpoint.parquet"))
    found = {}
    for name in names:
        found.setdefault(name.partition("/")[0], []).append(int(name.rpartition("/")[2].partition(".")[0]))
    return found


def test_checkpoints_of_many_streams_are_spread_over_jobs(open_finding, memory, monkeypatch):
    """No job writes more than its share, and no stream waits much longer than the interval for its own."""
    monkeypatch.setattr(roll_forward, "_CHECKPOINTS_AT_ONCE", 3)
    tenant = open_finding(memory, checkpoint_interval=4)
    written = []
    for number in range(16):
        before = sum(map(len, checkpoints(memory).values()))
        with tenant.job() as job:
            for name in "ABCDEFGHIJ":
                job.stream(name).update(pa.table({"Id": [number], "v": [number]}), key="Id")
        written.append(sum(map(len, checkpoints(memory).values())) - before)

    assert (max(written), sum(written[:4])) == (3, 0)
    for versions in checkpoints(memory).values():
        gaps = [after - before for before, after in zip([0, *versions], [*versions, 15], strict=True)]
        assert max(gaps) <= 8


def test_checkpoints_of_few_streams_come_at_multiples_of_the_interval(open_finding, memory):
    """As in any Delta table."""
    tenant = open_finding(memory, checkpoint_interval=4)
    for number in range(10):
        with tenant.job() as job:
            for name in "AB":
                job.stream(name).update(pa.table({"Id": [number], "v": [number]}), key="Id")

    assert checkpoints(memory) == {"A.snapshot": [4, 8], "B.snapshot": [4, 8]}


def test_what_fails_after_the_commit_fails_no_update(open_finding):
    """Checkpoints that are due look at the logs again: it is committed all the same."""
    tried = 0
    for number in range(30):
        storage = MemoryStorage()
        tenant = open_finding(storage, checkpoint_interval=2)
        for value in range(2):
            tenant.stream("A").update(pa.table({"Id": [value], "v": [value]}), key="Id")
        faulty = FaultyStorage(storage, [Fault(number, Way.FAIL_BEFORE, "list_from")])
        with suppress(StorageUnavailable):
            other = open_finding(faulty, checkpoint_interval=2)
            before = len(faulty.calls)
            try:
                other.stream("A").update(pa.table({"Id": [9], "v": [9]}), key="Id")
            except StorageUnavailable:
                tried += len(faulty.calls) > before
                assert sorted(tenant.stream("A").read(as_="arrow")["v"].to_pylist()) == [0, 1]
            else:
                assert sorted(tenant.stream("A").read(as_="arrow")["v"].to_pylist()) == [0, 1, 9]
    assert tried


def test_a_staged_commit_is_the_one_that_its_entry_names(memory):
    """Other bytes under its name, and none at all, are damage."""
    content = b'{"commitInfo":{}}\n'
    digest = hashlib.sha256(content).hexdigest()
    change = StreamChange(StreamName("A"), 1, "", Counts(), sha256=digest)
    for damage in (None, b'{"commitInfo":[]}\n'):
        if damage is not None:
            memory.put_if_absent(long_commit_file(digest), damage)
        with pytest.raises(CorruptLog, match="gone or damaged"):
            roll_forward.change_content(memory, change)
    memory.replace(long_commit_file(digest), content)
    assert content.decode() == roll_forward.change_content(memory, change)
