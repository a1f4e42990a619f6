"""Many processes commit to one table: a checker finds every commit that was lost, doubled or torn.

The checker is believed only because it finds losses where they must be: in the same storage with
``rename`` in the place of ``link``.
"""

import json
import time
from collections import Counter
from contextlib import suppress

import pytest
from tests.buckets import made_bucket, seaweed_bucket
from tests.log.tables import commit_at_last

from freezeframe.errors import FreezeframeError, OutcomeUnknown
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import Add, CommitInfo, Metadata, Protocol, Txn, parse_line
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import Upkeep
from freezeframe.proof.task import race, wait_for_start
from freezeframe.script.tenants import storage_at
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage

pytestmark = pytest.mark.stateful

SCHEMA = {"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}]}


class RenamingStorage(LocalStorage):
    """The positive control: looks whether the name is free, then renames. As stock local writers do."""

    def put_if_absent(self, name, content):
        if self.local_path(name).exists():
            raise FileExistsError(name)
        time.sleep(0.005)  # so that another writer comes in between, however quick the disk is
        self.replace(name, content)


def in_bucket(root):
    """The storage of a bucket, as a user has it."""
    return storage_at(root, Settings())


def write(connection, kind, root, writer, commits):
    """One process: ``commits`` appends, each with a transaction of its own; tells what was acknowledged."""
    acknowledged = []
    log = DeltaLog(kind(root), "t")
    wait_for_start(connection)
    # Where commits are lost, a writer may also find a log that it cannot read; that is no loss by itself.
    with suppress(FreezeframeError if kind is RenamingStorage else ()):
        for number in range(commits):
            name = f"{writer}-{number}"
            actions = [Add(f"{name}.parquet", 1), Txn(name, 1)]
            with suppress(OutcomeUnknown):
                version, _ = commit_at_last(log, actions, Upkeep(checkpoint_interval=50))
                acknowledged.append((version, name))
    connection.send(acknowledged)


def race_commits(kind, root, writers, commits):
    """The commits that all writers together had acknowledged: (version, name)."""
    metadata = Metadata("id", json.dumps(SCHEMA))
    Transaction(DeltaLog(kind(root), "t")).commit([Protocol(1, 2), metadata], "CREATE TABLE")
    # A server of processes keeps its variables, and those of a bucket are newer.
    method = "spawn" if kind is in_bucket else "forkserver"
    arguments = [(kind, str(root), number, commits) for number in range(writers)]
    return [item for answer in race(write, arguments, 3_000, method) for item in answer]


def violations(storage, acknowledged):
    """What is wrong between the acknowledgements and the log: lost, doubled, torn, or two for one version."""
    wrong = []
    landed = {}
    for entry in sorted(item.name for item in storage.list_from("t/_delta_log") if item.name[-5:] == ".json"):
        actions = [parse_line(line) for line in storage.read(f"t/_delta_log/{entry}").splitlines()]
        names = [action.path.removesuffix(".parquet") for action in actions if isinstance(action, Add)]
        if not any(isinstance(action, CommitInfo) for action in actions):
            wrong.append(f"torn: {entry}")
        landed[int(entry[:-5])] = names
    for version, name in acknowledged:
        if name not in landed.get(version, []):
            wrong.append(f"lost: {name} was acknowledged as version {version}")
    counts = Counter(name for names in landed.values() for name in names)
    wrong += [f"doubled: {name} is there {times} times" for name, times in counts.items() if times > 1]
    versions = Counter(version for version, _ in acknowledged)
    wrong += [f"shared: version {version} was given {n} times" for version, n in versions.items() if n > 1]
    if sorted(landed) != list(range(len(landed))):
        wrong.append("gap: the versions are not contiguous")
    return wrong


def prove(root, writers, commits, kind=LocalStorage):
    acknowledged = race_commits(kind, root, writers, commits)
    assert violations(kind(root), acknowledged) == []
    assert writers * commits == len(acknowledged)
    snapshot = DeltaLog(kind(root), "t").update()
    assert (writers * commits, writers * commits) == (snapshot.version, snapshot.count)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("writers", "commits"), [(4, 12), pytest.param(8, 50, marks=pytest.mark.nightly)])
def test_processes_lose_nothing(tmp_path, writers, commits):
    """Each acknowledged commit is there once, under its own version."""
    prove(tmp_path, writers, commits)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_eight_processes_lose_nothing_for_long(tmp_path):
    """8 processes x 5,000 commits: the same over a log with many checkpoints."""
    prove(tmp_path, writers=8, commits=5_000)


@pytest.mark.parametrize(
    ("writers", "commits"),
    [(2, 6), pytest.param(8, 50, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])],
)
def test_processes_lose_nothing_in_a_bucket(writers, commits):
    """Their commits, conditional puts all of them, follow each other without a gap."""
    with made_bucket() as bucket:
        prove(f"s3://{bucket}/race", writers, commits, in_bucket)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_four_processes_lose_nothing_in_seaweedfs(tmp_path, monkeypatch):
    """A store that is probed at first contact, as a user's is, and then takes 4 x 100 commits in a race."""
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "weed").mkdir()
    with seaweed_bucket(tmp_path / "weed") as bucket:
        prove(f"s3://{bucket}/race", 4, 100, in_bucket)


@pytest.mark.timeout(600)
def test_the_checker_finds_what_rename_loses(tmp_path):
    """With ``rename`` in the place of ``link`` commits are lost, and the checker says so."""
    acknowledged = race_commits(RenamingStorage, tmp_path, writers=4, commits=10)
    found = violations(LocalStorage(tmp_path), acknowledged)
    assert any(item.startswith("lost") for item in found), found


def test_the_checker_finds_each_kind_of_damage(tmp_path):
    """A lost, a doubled, a torn and a shared commit, and a gap, each are found by hand-made histories."""
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    lines = {0: '{"commitInfo":{}}\n{"add":{"path":"a.parquet"}}\n', 2: '{"add":{"path":"a.parquet"}}\n'}
    for version, text in lines.items():
        (log / f"{version:020d}.json").write_text(text)
    found = violations(LocalStorage(tmp_path), [(0, "a"), (0, "b"), (2, "a")])
    assert sorted(item.split(":")[0] for item in found) == ["doubled", "gap", "lost", "shared", "torn"]
