"""Many processes update one stream: each acknowledged update is there once, in the order of versions."""

import multiprocessing

import pyarrow as pa
import pytest

from freezeframe.errors import ConflictError
from freezeframe.script.tenants import shared_engine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("asked_spark")]

SHARED = ["all", "also all"]


def rows_of(writer, number):
    """An update's rows: one key of its own, and two that every update changes."""
    name = f"{writer}-{number}"
    return {"Id": [name, *SHARED], "by": [name] * 3, f"of {writer}": [number] * 3}


def write(folder, vectors_from_bytes, writer, updates, start, results):
    """One process: its updates one after the other, each until it is taken; tells what was acknowledged."""
    acknowledged = []
    try:
        tenant = Tenant(
            LocalStorage(folder), shared_engine(), Settings(vectors_from_bytes=vectors_from_bytes)
        )
        stream = tenant.stream("Account")
        stream.update(pa.table(rows_of("first", 0)), key="Id")  # whoever is first: the same for all
        start.wait()
        for number in range(updates):
            rows = pa.table(rows_of(writer, number))
            while True:
                try:
                    receipt = stream.update(rows)
                except ConflictError:
                    continue
                break
            acknowledged.append((receipt.stream_version, writer, number))
    finally:
        results.put(acknowledged)  # whatever happened, so that nobody waits for it


def race(folder, vectors_from_bytes, writers, updates):
    """What the processes together had acknowledged: (version, writer, number)."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(writers), context.Queue()
    processes = [
        context.Process(target=write, args=(str(folder), vectors_from_bytes, writer, updates, start, results))
        for writer in range(writers)
    ]
    for process in processes:
        process.start()
    found = [item for _ in processes for item in results.get(timeout=500)]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * writers
    return sorted(found)


def prove(folder, vectors_from_bytes, writers, updates, every):
    acknowledged = race(folder, vectors_from_bytes, writers, updates)
    stream = Tenant(LocalStorage(folder), shared_engine(), Settings()).stream("Account")
    newest = stream.stream_version
    # A version has one owner, and the versions are those of the updates, without a gap.
    versions = [version for version, _, _ in acknowledged]
    assert list(range(newest - len(versions) + 1, newest + 1)) == versions
    assert writers * updates == len(versions)

    expected = {}
    history = [(versions[0] - 1, "first", 0), *acknowledged]
    for version, writer, number in history:
        rows = rows_of(writer, number)
        for place, key in enumerate(rows["Id"]):
            cells = {name: column[place] for name, column in rows.items()}
            expected[key] = expected.get(key, {}) | cells
        if version in (newest, versions[0]) or version % every == 0:
            found = stream.read(as_="arrow", stream_version=version).to_pylist()
            assert {
                row["Id"]: {name: cell for name, cell in row.items() if cell is not None} for row in found
            } == expected


def test_two_processes_update_one_stream(spark_engine, tmp_path):
    """3 updates each, all of the same two keys: each version is the fold of those before it."""
    prove(tmp_path, vectors_from_bytes=0, writers=2, updates=3, every=1)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("vectors_from_bytes", [0, 2**21], ids=["marked", "anew"])
def test_four_processes_update_one_stream_for_long(spark_engine, tmp_path, vectors_from_bytes):
    """The same by four with 100 updates each, over checkpoints and compactions."""
    prove(tmp_path, vectors_from_bytes, writers=4, updates=100, every=10)
