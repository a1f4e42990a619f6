"""The process behind a server: whatever dies, nothing is left over. The server here is a shell script."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.waiting import is_alive, until

from freezeframe.engine import daemon
from freezeframe.engine.configuration import STARTED_PATTERN
from freezeframe.engine.server import watcher

STARTED = "echo 'Spark Connect server started at: 0:0:0:0:4711 '"
RUNS = f"{STARTED}; exec sleep 600"


class Watched:
    """A server's folder and its watcher."""

    def __init__(self, folder, script, idle_seconds, dump="exit 1"):
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.archive = folder / "classes.jsa"
        launch = {
            "command": ["/bin/sh", "-c", script],
            "environment": {"PATH": os.environ["PATH"], "SECRET": "from the environment"},
            "started_pattern": STARTED_PATTERN,
            "idle_seconds": idle_seconds,
            "remains": str(self.work),
            "token": "the token",
            "start": "the start",
            "about": {"master": "local[1]"},
            "working_folder": str(self.work),
            "clear_remains": ["/bin/sh", "-c", f"ls {folder}/databases >> {folder}/cleared"],
            "class_sharing": {
                "after_idle_seconds": 0.2,
                "needed_class": "a/job/Class",
                "classes": str(self.work / "classes.lst"),
                "classes_whole": str(self.work / "whole.lst"),
                "draft": str(self.work / "classes.draft"),
                "archive": str(self.archive),
                "log": str(self.work / "archive.log"),
                "command": ["/bin/sh", "-c", f"cd {self.work}; {dump}"],
            },
        }
        (folder / "launch.json").write_text(json.dumps(launch))
        self.process = subprocess.Popen(watcher.command(folder), stderr=subprocess.PIPE, text=True)

    def address(self):
        path = self.folder / "address.json"
        until(path.exists)
        return json.loads(path.read_text())

    def ended(self):
        """What the watcher said when it was done."""
        return self.process.communicate(timeout=120)[1]


@pytest.fixture
def watched(tmp_path):
    """Start a watcher for a script; it does not outlive the test."""
    started = []

    def start(script, idle_seconds=600, **options):
        started.append(Watched(tmp_path, script, idle_seconds, **options))
        return started[-1]

    yield start
    for each in started:
        each.process.terminate()
        each.ended()


@contextlib.contextmanager
def used(folder):
    """Be a client of the server."""
    with (folder / "clients.lock").open("a") as clients:
        fcntl.flock(clients, fcntl.LOCK_SH)
        yield


def test_the_address_is_written_once_the_server_tells_its_port(tmp_path, watched):
    """Port, token, start and process id, for the owner's eyes; the order to start is gone."""
    with used(tmp_path):
        each = watched(RUNS)
        address = each.address()
    process = address.pop("process")
    assert each.process.pid == address.pop("watcher")
    assert address == {"port": 4711, "token": "the token", "start": "the start"}
    assert is_alive(process)
    assert (tmp_path / "address.json").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "launch.json").exists()


def test_an_idle_server_stops_and_leaves_nothing(tmp_path, watched):
    """Without a client for the idle time, server, address and work folder go."""
    with used(tmp_path):
        each = watched(f"touch draft-of-work; {RUNS}", idle_seconds=0.5)
        process = each.address()["process"]
        time.sleep(1)
        assert is_alive(process)
    assert each.ended() == ""
    assert not is_alive(process)
    assert not each.work.exists()
    assert not (tmp_path / "address.json").exists()


def test_a_killed_watcher_takes_the_server_along(tmp_path, watched):
    """After kill -9 of the watcher nobody could stop the server, so it does not live on."""
    with used(tmp_path):
        each = watched(RUNS)
        process = each.address()["process"]
        each.process.kill()
        assert until(lambda: not is_alive(process))


def test_a_killed_server_takes_the_watcher_along(tmp_path, watched):
    """After kill -9 of the server the watcher leaves and takes the address away, client or not."""
    with used(tmp_path):
        each = watched(RUNS)
        os.kill(each.address()["process"], signal.SIGKILL)
        assert each.ended() == ""
    assert each.process.returncode == 0
    assert not (tmp_path / "address.json").exists()


def test_a_server_that_never_starts_ends_the_watcher(tmp_path, watched):
    """No address is written for it."""
    with used(tmp_path):
        each = watched("echo 'no such class'; exit 1")
        assert each.ended() == ""
    assert (tmp_path / "server.log").read_text() == "no such class\n"
    assert not (tmp_path / "address.json").exists()


def test_a_retired_server_stops_when_its_last_client_leaves(tmp_path, watched):
    """Another server has taken over: the idle time is not waited for, the clients are."""
    with used(tmp_path):
        each = watched(RUNS)
        process = each.address()["process"]
        daemon.retire(tmp_path)
        time.sleep(0.5)
        assert is_alive(process)
    assert each.ended() == ""
    assert not is_alive(process)


def test_the_time_it_may_be_idle_can_be_changed_while_it_runs(tmp_path, watched):
    """A file in the folder says otherwise than the order to start; when the last client left is noted."""
    with used(tmp_path):
        each = watched(RUNS, idle_seconds=0.2)
        process = each.address()["process"]
        (tmp_path / daemon.IDLE_SECONDS).write_text("600")
        started = (tmp_path / watcher.LAST_USED).stat().st_mtime_ns
        time.sleep(0.3)
    until(lambda: (tmp_path / watcher.LAST_USED).stat().st_mtime_ns > started)
    time.sleep(0.5)
    assert is_alive(process)
    (tmp_path / daemon.IDLE_SECONDS).write_text("0.1")
    assert each.ended() == ""
    assert not is_alive(process)


def test_a_terminated_watcher_stops_the_server_first(tmp_path, watched):
    """SIGTERM, as at a shutdown of the machine, is an orderly stop."""
    with used(tmp_path):
        each = watched(RUNS)
        process = each.address()["process"]
        each.process.terminate()
        assert each.ended() == ""
    assert not is_alive(process)
    assert not (tmp_path / "address.json").exists()


LISTS = "printf 'java/lang/Object\\na/job/Class\\nhalf/a/na' > classes.lst"
DUMPS = "cat whole.lst > classes.draft; ps -o nice= -p $$ >> classes.draft"


def test_an_idle_server_has_its_classes_archived(tmp_path, watched):
    """By a process of the lowest priority, from whole lines; once: it is not made again while it is there."""
    with used(tmp_path):
        each = watched(f"{LISTS}; {RUNS}", dump=DUMPS)
        process = each.address()["process"]
        time.sleep(0.5)
        assert not each.archive.exists()
    until(each.archive.exists)
    assert each.archive.read_text().split() == ["java/lang/Object", "a/job/Class", "19"]
    assert is_alive(process)


@pytest.mark.parametrize("end", ["exit 1", "kill -9 $$"])
def test_half_an_archive_is_never_kept(watched, end):
    """What its process leaves when it fails or dies gets no name that is used, and the server lives."""
    each = watched(f"{LISTS}; {RUNS}", dump=f"echo half > classes.draft; {end}")
    process = each.address()["process"]
    until((each.work / "classes.draft").exists)
    time.sleep(0.3)
    assert (each.archive.exists(), is_alive(process)) == (False, True)


def test_the_archive_waits_for_a_job_that_moved_rows(tmp_path, watched):
    """A server that was only started has loaded too little; after a job and another rest it is made."""
    each = watched(f"echo java/lang/Object > classes.lst; {RUNS}", dump=DUMPS)
    each.address()
    time.sleep(0.6)
    assert not (each.work / "whole.lst").exists()
    with used(tmp_path):
        (each.work / "classes.lst").write_text("java/lang/Object\na/job/Class\n")
        time.sleep(0.3)
    until(each.archive.exists)


@pytest.mark.parametrize("end", ["a stop", "a kill"])
def test_what_makes_the_archive_ends_with_the_watcher(watched, end):
    """A watcher that is stopped or killed leaves no process and no archive."""
    each = watched(f"{LISTS}; {RUNS}", dump="echo $$ > dumper.new; mv dumper.new dumper; exec sleep 600")
    each.address()
    until((each.work / "dumper").exists)
    dumper = int((each.work / "dumper").read_text())
    if end == "a stop":
        each.process.terminate()
    else:
        each.process.kill()
    until(lambda: not is_alive(dumper))
    assert not each.archive.exists()


DIES_BEFORE_THE_GUARD = """
import os, subprocess, sys
from freezeframe.engine.server import watcher

start = subprocess.Popen


def dying(command, **options):
    if "guard" in command:
        os._exit(9)
    return start(command, **options)


subprocess.Popen = dying
with open("log", "wb") as log:
    watcher._start_guarded(["/bin/sh", "-c", "echo > begun", sys.argv[1]], log)
"""


def test_what_has_no_guard_yet_never_begins(tmp_path):
    """A watcher that dies after it started a process and before its guard leaves no process that works."""
    command = [sys.executable, "-c", DIES_BEFORE_THE_GUARD, str(tmp_path)]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 9
    children = ["pgrep", "-f", f"guarded /bin/sh -c echo > begun {tmp_path}"]
    until(lambda: subprocess.run(children, stdout=subprocess.DEVNULL, check=False).returncode)
    assert not (tmp_path / "begun").exists()


def test_the_server_has_the_environment_it_was_given(tmp_path, watched):
    """The token travels in the environment and is on no command line."""
    with used(tmp_path):
        each = watched(f"echo $SECRET > told; {RUNS}")
        each.address()
        assert (each.work / "told").read_text() == "from the environment\n"


def test_what_a_killed_job_left_is_cleared_once_nobody_holds_it(tmp_path, watched):
    """A name that a process of the job holds is left alone; one that nobody holds is given to the clearer."""
    (tmp_path / "databases").mkdir()
    file = tmp_path / "databases" / "job_1"
    with used(tmp_path), file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        watched(RUNS).address()
        time.sleep(1.5)
        assert not (tmp_path / "cleared").exists()
        lock.close()
        until((tmp_path / "cleared").exists)
    until(lambda: "job_1\n" == (tmp_path / "cleared").read_text())
