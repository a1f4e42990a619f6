"""Many processes commit to one table in a bucket: each acknowledged commit is there once."""

import json
import multiprocessing
from collections import Counter

import pytest
from tests.buckets import made_bucket, seaweed_bucket
from tests.log.committing import commit_at_last

from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import Add, Metadata, Protocol, Txn, parse_line
from freezeframe.log.segments.commit import Committed, commit_name
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import Upkeep
from freezeframe.script.tenants import storage_at
from freezeframe.settings import Settings

pytestmark = pytest.mark.stateful

SCHEMA = {"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}]}


def write(root, writer, commits, start, results):
    """One process: its appends one after the other; tells what was acknowledged."""
    acknowledged = []
    try:
        log = DeltaLog(storage_at(root, Settings()), "t")
        start.wait()
        for number in range(commits):
            name = f"{writer}-{number}"
            actions = [Add(f"{name}.parquet", 1), Txn(name, 1)]
            found, _ = commit_at_last(log, actions, Upkeep(checkpoint_interval=50))
            if isinstance(found, Committed):
                acknowledged.append((found.version, name))
    finally:
        results.put(acknowledged)  # whatever happened, so that nobody waits for it


def prove(root, writers, commits):
    """Let the processes race, and compare what they were told with what is in the bucket."""
    storage = storage_at(root, Settings())
    Transaction(DeltaLog(storage, "t")).commit(
        [Protocol(1, 2), Metadata("id", json.dumps(SCHEMA))], "CREATE TABLE"
    )
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(writers), context.Queue()
    processes = [
        context.Process(target=write, args=(root, number, commits, start, results))
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    acknowledged = dict(item for _ in processes for item in results.get(timeout=3000))
    for process in processes:
        process.join(60)
    assert [0] * writers == [process.exitcode for process in processes]

    landed = {}
    for version in range(1, writers * commits + 1):
        lines = storage.read(commit_name("t", version)).splitlines()
        landed[version] = [
            item.path.removesuffix(".parquet") for item in map(parse_line, lines) if isinstance(item, Add)
        ]
    assert {version: [name] for version, name in acknowledged.items()} == landed
    assert set(Counter(name for names in landed.values() for name in names).values()) == {1}
    snapshot = DeltaLog(storage, "t").update()
    assert (writers * commits, writers * commits) == (snapshot.version, snapshot.count)


@pytest.mark.parametrize(
    ("writers", "commits"),
    [(3, 5), pytest.param(8, 50, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])],
)
def test_processes_lose_nothing_in_a_bucket(writers, commits):
    """Their commits, conditional puts all of them, follow each other without a gap."""
    with made_bucket() as bucket:
        prove(f"s3://{bucket}/race", writers, commits)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_four_processes_lose_nothing_in_seaweedfs(tmp_path, monkeypatch):
    """A store that is probed at first contact, as a user's is, and then takes 4 x 100 commits in a race."""
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "weed").mkdir()
    with seaweed_bucket(tmp_path / "weed") as bucket:
        prove(f"s3://{bucket}/race", writers=4, commits=100)
