"""What follows a commit: a job of many streams writes some of the checkpoints that are due."""

import pyarrow as pa

from freezeframe.store.tenant_log import roll_forward


def checkpoints(storage):
    names = (one.name for one in storage.list_below("") if one.name.endswith(".checkpoint.parquet"))
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
