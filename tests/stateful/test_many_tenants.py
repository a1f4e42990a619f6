"""Many tenants update at once through one warm server: each gets its turn, and memory is bounded."""

import multiprocessing
import threading
import time
from pathlib import Path
from queue import Empty

import pyarrow as pa
import pytest
from tests import given

from freezeframe.engine.server.server import running_servers
from freezeframe.script.tenants import shared_engine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("asked_spark")]

ROWS, UPDATES = 2_000, 5
GIB = 1024**3
BESIDE_HEAP_BYTES = GIB  # classes, compiled code, threads, buffers of the network
CLIENT_BYTES_MAX = GIB // 2
POLL_SECONDS = 0.5


def rows(update):
    """Every row anew, each time with another value."""
    return pa.table({"Id": [f"A{n:05d}" for n in range(ROWS)], "by": [update] * ROWS})


def work(folder, tenants, start, results):
    """One process: a thread for each of its tenants; tells when each update was acknowledged."""
    done = []

    def keep_updating(tenant, stream):
        for number in range(1, UPDATES + 1):
            assert stream.update(rows(number), key="Id").updated == ROWS
            done.append((time.time(), tenant, number))

    try:
        streams = {}
        for tenant in tenants:
            place = Tenant(LocalStorage(f"{folder}/{tenant}"), shared_engine(), Settings())
            streams[tenant] = place.stream("Account")
            streams[tenant].update(rows(-1), key="Id")
            # The first rows need no Spark, the second ones do: all that starts has started when all begin.
            streams[tenant].update(rows(0), key="Id")
        threads = [threading.Thread(target=keep_updating, args=item) for item in streams.items()]
        start.wait()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        results.put((done, peak_bytes()))  # whatever happened, so that nobody waits for it


def peak_bytes():
    """The most memory that this process has had; ``getrusage`` would count its parent's before the exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def race(processes, each, folder):
    """Let the tenants update; (events in order, the server's peak memory, that of the largest client)."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(processes + 1), context.Queue()
    children = [
        context.Process(
            target=work, args=(str(folder), [name(number, item) for item in range(each)], start, results)
        )
        for number in range(processes)
    ]
    try:
        for child in children:
            child.start()
        start.wait(1800)
        (server,) = running_servers(Settings())
        told, memory = [], [server.memory_bytes]
        while len(told) < processes:
            memory += [
                standing.memory_bytes
                for standing in running_servers(Settings())
                if standing.process == server.process
            ]
            try:
                told.append(results.get(timeout=POLL_SECONDS))
            except Empty:
                assert any(child.is_alive() for child in children)
        for child in children:
            child.join(120)
        assert [0] * processes == [child.exitcode for child in children]
    finally:
        for child in children:
            child.kill()
    events = sorted(event for done, _ in told for event in done)
    return events, max(memory), max(peak for _, peak in told)


def name(process, number):
    return f"tenant-{process}-{number}"


def prove(processes, each, folder, heap_bytes):
    """Nobody has done all its updates before everybody has done one; all of them are there at the end."""
    events, server_bytes, client_bytes = race(processes, each, folder)
    tenants = {name(process, number) for process in range(processes) for number in range(each)}
    assert len(tenants) * UPDATES == len(events)
    first_to_end = next(moment for moment, _, number in events if number == UPDATES)
    assert tenants == {tenant for moment, tenant, _ in events if moment <= first_to_end}
    assert server_bytes < heap_bytes + BESIDE_HEAP_BYTES
    assert client_bytes < CLIENT_BYTES_MAX
    for tenant in tenants:
        stream = given.tenant(LocalStorage(folder / tenant)).stream("Account")
        assert stream.read(as_="arrow")["by"].to_pylist() == [UPDATES] * ROWS


@pytest.mark.nightly
def test_six_tenants_each_get_their_turn(spark_settings, tmp_path):
    """Two processes with three tenants each, on the run's server."""
    prove(2, 3, tmp_path, 3 * GIB)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("processes", "each"), [(8, 2), (16, 4)], ids=["16", "64"])
def test_each_tenant_gets_its_turn(processes, each, tmp_path, monkeypatch):
    """On a server of their own with a small heap, which the first of them starts."""
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("FREEZEFRAME_SPARK", "auto")
    monkeypatch.setenv("FREEZEFRAME_SPARK_MEMORY", "1g")
    monkeypatch.setenv("FREEZEFRAME_SPARK_IDLE_SECONDS", "5")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    prove(processes, each, tmp_path / "tenants", GIB)
