"""Updates that are killed at any moment: the stream is whole, old or new, and the next update works.

Children come from a process that has loaded all modules but made no connection, so that a kill costs
a connection and an update; faults between single calls of the storage are ``tests/store/test_crashes.py``.
"""

import multiprocessing
import random
import signal
import time

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from freezeframe.script.tenants import shared_engine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant

pytestmark = pytest.mark.spark

KEYS = 200
PLANS = {"anew": 2**21, "marked": 0, "plain": 0}
SEARCHED_BY_SPARK = ("marked",)


def open_stream(folder, plan):
    options = {"compatibility": "plain"} if plan == "plain" else {}
    if plan in SEARCHED_BY_SPARK:
        options["engine"] = "spark"
    settings = Settings(vectors_from_bytes=PLANS[plan], **options)
    return Tenant(LocalStorage(folder), shared_engine(), settings).stream("Account")


def rows_of(number):
    """Update ``number``: it changes a sixth of the first rows, each to its number, and adds a row."""
    changed = range(number % 6, KEYS, 6)
    ids = [*(f"{key:04}" for key in changed), f"new {number:04}"]
    return pa.table({"Id": ids, "by": pa.array([number] * len(ids), pa.int64())})


def expected_after(number):
    """The content after the first write and ``number`` updates."""
    found = {f"{key:04}": 0 for key in range(KEYS)}
    for item in range(1, number + 1):
        found |= dict.fromkeys(rows_of(item)["Id"].to_pylist(), item)
    return found


def keep_updating(folder, plan, said):
    """One child: updates without end; each is announced, and told when it is acknowledged."""
    stream = open_stream(folder, plan)
    number = stream.stream_version
    while True:
        number += 1
        receipt = stream.update(rows_of(number))
        assert receipt.stream_version == number
        said.send(number)


def read(folder, plan):
    """The version and the content, as another process finds them."""
    stream = open_stream(folder, plan)
    rows = stream.read(as_="arrow").to_pylist()
    assert len(rows) == len({row["Id"] for row in rows})
    return stream.stream_version, {row["Id"]: row["by"] for row in rows}


def kill_one(context, folder, plan, chance):
    """Let a child update, kill it at some moment after its first one; the last acknowledged version."""
    heard, said = context.Pipe(duplex=False)
    child = context.Process(target=keep_updating, args=(str(folder), plan, said))
    child.start()
    said.close()
    started = time.monotonic()
    assert heard.poll(120), "the update after a kill never came"
    acknowledged = heard.recv()
    # Somewhere in the next two updates, as long as an update takes here and now.
    seconds = chance.uniform(0, 0.8 * (time.monotonic() - started))
    if heard.poll(seconds / 2):
        acknowledged = heard.recv()
    time.sleep(seconds / 2)
    child.kill()
    child.join(60)
    assert -signal.SIGKILL == child.exitcode
    while heard.poll():
        try:
            acknowledged = heard.recv()
        except EOFError:
            break
    return acknowledged


def prove(folders, kills, seed):
    """Kill children in turn; after each, the stream is at the acknowledged version or the one in flight."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["freezeframe.engine.spark", "freezeframe.script.tenants", __name__])
    chance = random.Random(seed)
    in_flight = 0
    for plan, folder in folders.items():
        first = pa.table({"Id": [f"{key:04}" for key in range(KEYS)], "by": pa.array([0] * KEYS, pa.int64())})
        open_stream(folder, plan).update(first, key="Id")
    for kill in range(kills):
        plan, folder = list(folders.items())[kill % len(folders)]
        acknowledged = kill_one(context, folder, plan, chance)
        version, content = read(folder, plan)
        assert version in (acknowledged, acknowledged + 1)
        assert expected_after(version) == content
        in_flight += version > acknowledged
    for plan, folder in folders.items():
        version, content = read(folder, plan)
        receipt = open_stream(folder, plan).update(rows_of(version + 1))
        assert (version + 1, 1) == (receipt.stream_version, receipt.inserted)
        # A reader that knows nothing of us sees the same, and no stream that nobody made.
        tenant = Tenant(LocalStorage(folder), shared_engine(), Settings())
        assert tenant.streams() == ("Account",)
        if plan != "marked":
            table = DeltaTable(str(folder / "Account.snapshot")).to_pyarrow_table()
            found = dict(zip(table["Id"].to_pylist(), table["by"].to_pylist(), strict=True))
            assert expected_after(version + 1) == found
    return in_flight


@pytest.mark.timeout(600)
def test_kills_leave_old_or_new(spark_engine, tmp_path):
    """6 kills at random moments: never a mixture, never a lost acknowledgement, and nobody repairs."""
    prove({"anew": tmp_path / "a", "marked": tmp_path / "b"}, kills=6, seed=20)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_many_kills_leave_old_or_new(spark_engine, tmp_path):
    """600 kills, over all plans: some hit the moment between the commit and its acknowledgement."""
    folders = {plan: tmp_path / plan for plan in PLANS}
    assert 0 < prove(folders, kills=600, seed=time.time_ns())
