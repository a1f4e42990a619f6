"""The backup drill of docs/how-to/deploy.md: copies of a store whose writers stand still for a moment."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pyarrow as pa
import pytest

import freezeframe

pytestmark = pytest.mark.long

# Commits as quickly as it can, and says so after each commit; it submits a job with every one of them.
WRITER = """
import sys
import pyarrow as pa
import freezeframe
from freezeframe.control.control_file import control_file
from freezeframe.control.database import ControlDatabase
from freezeframe.control.queue import JobQueue
from freezeframe.control.submission import Submission
root, name = sys.argv[1:]
tenant = freezeframe.open(root).tenant(name, create=True)
queue = JobQueue(ControlDatabase.open(f"sqlite:///{control_file(root)}"))
for number in range(1, 1_000_000):
    rows = pa.table({"Id": ["all", str(number)], "n": [number, number]})
    with tenant.job() as job:
        job.stream("Account").update(rows, key="Id")
        job.stream("Contact").update(rows, key="Id")
        job.files.write("state.json", str(number).encode())
    queue.submit(Submission("{}", "default", name, str(number)))
    print(number, flush=True)
"""
TENANTS = ("acme", "globex")


@pytest.fixture
def writers(tmp_path):
    """A process for each tenant, which writes until it is killed."""
    root = tmp_path / "store"
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, root, name], stdout=subprocess.PIPE, text=True)
        for name in TENANTS
    ]
    yield root, started
    for process in started:
        process.kill()
        process.communicate()


def test_a_copy_of_a_store_whose_writers_stand_still_is_a_backup(writers, tmp_path):
    """Stopped wherever they are: the copy verifies, has what was committed, and is written to further."""
    root, processes = writers
    for drill in range(2):
        committed = [_commits(process, 3 + drill) for process in processes]
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        for process in processes:
            assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        copy = shutil.copytree(root, tmp_path / f"restored-{drill}")
        for process in processes:
            process.send_signal(signal.SIGCONT)

        for name, number in zip(TENANTS, committed, strict=True):
            _require_whole(copy, name, number)


def _commits(process, count):
    """The number of the newest commit that the writer told of, ``count`` commits later."""
    return [int(process.stdout.readline()) for _ in range(count)][-1]


def _require_whole(copy, name, number):
    tenant = freezeframe.open(copy).tenant(name)
    assert tenant.verify().is_sound
    found = int(tenant.files.read("state.json"))
    assert found >= number
    for stream in ("Account", "Contact"):
        rows = dict(zip(*tenant.stream(stream).read(as_="arrow").to_pydict().values(), strict=True))
        assert {"all": found, **{str(item): item for item in range(1, found + 1)}} == rows

    tenant.stream("Account").update(pa.table({"Id": ["new"], "n": [0]}), key="Id")
    assert tenant.verify().is_sound
    assert number <= _jobs(copy, name) <= found


def _jobs(copy, name):
    [file] = copy.rglob("control.db")
    with closing(sqlite3.connect(file)) as database:
        assert [("ok",)] == database.execute("PRAGMA integrity_check").fetchall()
        return database.execute("SELECT count(*) FROM jobs WHERE tenant = ?", [name]).fetchone()[0]
