"""Many tenants update at once through one warm server: each gets its turn, and memory is bounded."""

import multiprocessing
import threading
import time

import pyarrow as pa
import pytest

from freezeframe.engine.standing import standings
from freezeframe.script.tenants import shared_engine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

ROWS, UPDATES = 2_000, 4
HEAP_BYTES = 1024**3
BESIDE_HEAP_BYTES = HEAP_BYTES  # classes, compiled code, threads, buffers of the network


def rows(update):
    """Every row anew, each time with another value."""
    return pa.table({"Id": [f"A{n:05d}" for n in range(ROWS)], "by": [update] * ROWS})


def work(folder, tenants, start, results):
    """One process: a thread for each of its tenants; tells when each update was acknowledged."""
    done = []

    def keep_updating(tenant, stream):
        for number in range(1, UPDATES + 1):
            assert ROWS == stream.update(rows(number), key="Id").updated
            done.append((time.time(), tenant, number))

    try:
        streams = {}
        for tenant in tenants:
            place = Tenant(LocalStorage(f"{folder}/{tenant}"), shared_engine(), Settings())
            streams[tenant] = place.stream("Account")
            streams[tenant].update(rows(0), key="Id")
        threads = [threading.Thread(target=keep_updating, args=one) for one in streams.items()]
        start.wait()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        results.put(done)  # whatever happened, so that nobody waits for it


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("processes", "each"), [(8, 2), (16, 4)], ids=["16", "64"])
def test_each_tenant_gets_its_turn(processes, each, tmp_path, monkeypatch):
    """Nobody has done all its updates before everybody has done one; all of them are there at the end."""
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("FREEZEFRAME_SPARK", "auto")
    monkeypatch.setenv("FREEZEFRAME_SPARK_MEMORY", "1g")
    monkeypatch.setenv("FREEZEFRAME_SPARK_IDLE_SECONDS", "5")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(processes + 1), context.Queue()
    names = [[f"tenant-{number}-{one}" for one in range(each)] for number in range(processes)]
    children = [
        context.Process(target=work, args=(str(tmp_path / "tenants"), mine, start, results)) for mine in names
    ]
    for child in children:
        child.start()
    start.wait(1800)
    memory = []
    (server,) = standings(Settings())
    done = []
    while len(done) < processes:
        memory += [one.memory_bytes for one in standings(Settings()) if one.process == server.process]
        if not results.empty():
            done.append(results.get())
        time.sleep(0.2)
    for child in children:
        child.join(60)
    assert [0] * processes == [child.exitcode for child in children]

    events = sorted(event for one in done for event in one)
    assert processes * each * UPDATES == len(events)
    first_to_end = next(moment for moment, _, number in events if number == UPDATES)
    begun = {tenant for moment, tenant, _ in events if moment <= first_to_end}
    assert {tenant for mine in names for tenant in mine} == begun
    assert max(memory) < HEAP_BYTES + BESIDE_HEAP_BYTES
    for mine in names:
        for tenant in mine:
            place = Tenant(LocalStorage(tmp_path / "tenants" / tenant), None, Settings())
            assert [UPDATES] * ROWS == place.stream("Account").read(as_="arrow")["by"].to_pylist()
