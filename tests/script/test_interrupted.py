"""The night a job dies half-way: killed, out of disk, or two at once. Old or new, whole, and it goes on."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from freezeframe.errors import StorageFull
from freezeframe.script import get_snapshot, open_tenant, update_snapshot

CHILD = """
import sys
import pandas as pd
from freezeframe.script import update_snapshot

directory, first = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
for number in range(first, first + 1000):
    rows = pd.DataFrame({"Id": [f"{number:04}-{row}" for row in range(50)], "v": [number] * 50})
    update_snapshot(directory, "Account", "Id", rows)
    print(number, flush=True)
"""


def _child(directory, first):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(directory), str(first)], stdout=subprocess.PIPE, text=True
    )


def _batches(directory):
    """How many rows of each batch are there: all of one batch, or none."""
    found = get_snapshot(directory, "Account")
    return {} if found is None else found.groupby("v").size().to_dict()


@pytest.mark.long
@pytest.mark.parametrize("kills", [2, pytest.param(5, marks=pytest.mark.nightly)])
def test_a_killed_update_leaves_old_or_new(tmp_path, kills):
    """`kill -9` at odd moments: what was acknowledged is there, nothing is torn, the next job goes on."""
    acknowledged = []
    for kill in range(kills):
        child = _child(tmp_path, 100 * kill)
        assert child.stdout.readline() == "ready\n"
        if kill % 2:
            acknowledged.append(int(child.stdout.readline()))
        time.sleep(0.13 * (kill + 1))
        child.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in child.stdout.read().split()]
        child.stdout.close()
        child.wait()

        assert {50} >= set(_batches(tmp_path).values())

    assert acknowledged
    assert set(acknowledged) <= set(_batches(tmp_path))
    update_snapshot(tmp_path, "Account", "Id", pd.DataFrame({"Id": ["after"], "v": [-1]}))
    assert _batches(tmp_path)[-1] == 1


def _write(directory, writer, begun=None):
    if begun:
        begun.set()
    for number in range(4):
        rows = pd.DataFrame({"Id": [f"{writer}-{number}-{row}" for row in range(20)], "v": [number] * 20})
        update_snapshot(directory, "Account", "Id", rows)


@pytest.mark.long
def test_two_jobs_at_once_lose_nothing(tmp_path):
    """Both write the same stream; the later one is planned again on the first one's result."""
    begun = multiprocessing.get_context("spawn").Event()
    other = multiprocessing.get_context("spawn").Process(target=_write, args=(tmp_path, 1, begun))
    other.start()
    begun.wait(60)
    _write(tmp_path, 0)
    other.join()
    assert other.exitcode == 0
    assert len(get_snapshot(tmp_path, "Account")) == 2 * 4 * 20
    assert open_tenant(tmp_path).version == 7


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MiB; only root may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.spark
@pytest.mark.parametrize("where", ["in the batch", "in the merge"])
def test_a_full_disk_changes_nothing(small_disk, spark_engine, asked_spark, where):
    """The typed error says what to do; the snapshot is as before, and works again once there is room."""
    directory = Path(small_disk) / "snapshots"
    rows = pd.DataFrame({"Id": ["1", "2"], "v": ["a", "b"]})
    update_snapshot(directory, "Account", "Id", rows)
    room = 64 * 1024 if where == "in the batch" else 450 * 1024
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    (small_disk / "ballast").write_bytes(b"\0" * (free - room))
    large = pd.DataFrame(
        {"Id": [str(n) for n in range(25_000)], "v": [os.urandom(16).hex() for _ in range(25_000)]}
    )

    with pytest.raises(StorageFull) as caught:
        update_snapshot(directory, "Account", "Id", large)

    assert caught.value.remedy
    pd.testing.assert_frame_equal(rows, get_snapshot(directory, "Account"))
    (small_disk / "ballast").unlink()
    assert len(update_snapshot(directory, "Account", "Id", pd.DataFrame({"Id": ["3"], "v": ["c"]}))) == 3
