"""The process behind a server: whatever dies, nothing is left over. The server here is a shell script."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from freezeframe.engine import watcher
from freezeframe.engine.configuration import STARTED_PATTERN

STARTED = "echo 'Spark Connect server started at: 0:0:0:0:4711 '"
RUNS = f"{STARTED}; exec sleep 600"


def until(holds, seconds=20):
    """Wait for what must become true."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_alive(process):
    """Whether a process id still runs something; a zombie does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


class Watched:
    """A server's folder and its watcher."""

    def __init__(self, folder, script, idle_seconds):
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
            "work": str(self.work),
            "archive": str(self.archive),
            "archive_draft": str(folder / "classes.draft"),
        }
        (folder / "launch.json").write_text(json.dumps(launch))
        command = [sys.executable, "-I", "-S", watcher.__file__, str(folder)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def address(self):
        path = self.folder / "address.json"
        until(path.exists)
        return json.loads(path.read_text())

    def ended(self):
        """What the watcher said when it was done."""
        return self.process.communicate(timeout=20)[1]


@pytest.fixture
def watched(tmp_path):
    """Start a watcher for a script; it does not outlive the test."""
    started = []

    def start(script, idle_seconds=600):
        started.append(Watched(tmp_path, script, idle_seconds))
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
    assert {"port": 4711, "token": "the token", "start": "the start"} == address
    assert is_alive(process)
    assert 0o600 == (tmp_path / "address.json").stat().st_mode & 0o777
    assert not (tmp_path / "launch.json").exists()


def test_an_idle_server_stops_and_leaves_nothing(tmp_path, watched):
    """Without a client for the idle time, server, address and work folder go."""
    with used(tmp_path):
        each = watched(f"touch draft-of-work; {RUNS}", idle_seconds=0.5)
        process = each.address()["process"]
        time.sleep(1)
        assert is_alive(process)
    assert "" == each.ended()
    assert not is_alive(process)
    assert not each.work.exists()
    assert not (tmp_path / "address.json").exists()


def test_a_killed_watcher_takes_the_server_along(tmp_path, watched):
    """After kill -9 of the watcher nobody could stop the server, so it does not live on."""
    with used(tmp_path):
        each = watched(RUNS)
        process = each.address()["process"]
        each.process.kill()
        until(lambda: not is_alive(process))


def test_a_killed_server_takes_the_watcher_along(tmp_path, watched):
    """After kill -9 of the server the watcher leaves and takes the address away, client or not."""
    with used(tmp_path):
        each = watched(RUNS)
        os.kill(each.address()["process"], signal.SIGKILL)
        assert "" == each.ended()
    assert 0 == each.process.returncode
    assert not (tmp_path / "address.json").exists()


def test_a_server_that_never_starts_ends_the_watcher(tmp_path, watched):
    """No address is written for it."""
    with used(tmp_path):
        each = watched("echo 'no such class'; exit 1")
        assert "" == each.ended()
    assert "no such class\n" == (tmp_path / "server.log").read_text()
    assert not (tmp_path / "address.json").exists()


def test_a_retired_server_stops_when_its_last_client_leaves(tmp_path, watched):
    """Another server has taken over: the idle time is not waited for, the clients are."""
    with used(tmp_path):
        each = watched(RUNS)
        process = each.address()["process"]
        (tmp_path / "retire").touch()
        time.sleep(0.5)
        assert is_alive(process)
    assert "" == each.ended()
    assert not is_alive(process)


def test_the_time_it_may_be_idle_can_be_changed_while_it_runs(tmp_path, watched):
    """A file in the folder says otherwise than the order to start; when the last client left is noted."""
    with used(tmp_path):
        each = watched(RUNS, idle_seconds=0.2)
        process = each.address()["process"]
        (tmp_path / watcher.IDLE_SECONDS).write_text("600")
        started = (tmp_path / watcher.LAST_USED).stat().st_mtime_ns
        time.sleep(0.3)
    until(lambda: (tmp_path / watcher.LAST_USED).stat().st_mtime_ns > started)
    time.sleep(0.5)
    assert is_alive(process)
    (tmp_path / watcher.IDLE_SECONDS).write_text("0.1")
    assert "" == each.ended()
    assert not is_alive(process)


def test_a_terminated_watcher_stops_the_server_first(tmp_path, watched):
    """SIGTERM, as at a shutdown of the machine, is an orderly stop."""
    with used(tmp_path):
        each = watched(RUNS)
        process = each.address()["process"]
        each.process.terminate()
        assert "" == each.ended()
    assert not is_alive(process)
    assert not (tmp_path / "address.json").exists()


@pytest.mark.parametrize(
    ("last_words", "is_kept"), [("echo whole > $D", True), ("echo half > $D; kill -9 $$", False)]
)
def test_a_class_archive_is_kept_only_when_it_is_whole(tmp_path, watched, last_words, is_kept):
    """What the server writes on its way out replaces the archive, unless it died while writing."""
    draft = tmp_path / "classes.draft"
    with used(tmp_path):
        # A child would keep the shell from hearing the signal; wait is interrupted by it.
        script = f"D={draft}; trap 'kill $!; {last_words}; exit 0' TERM; sleep 600 & {STARTED}; wait"
        each = watched(script, idle_seconds=0)
        process = each.address()["process"]
    each.ended()
    assert not is_alive(process)
    assert (is_kept, False) == (each.archive.exists(), draft.exists())


def test_the_server_has_the_environment_it_was_given(tmp_path, watched):
    """The token travels in the environment and is on no command line."""
    with used(tmp_path):
        each = watched(f"echo $SECRET > told; {RUNS}")
        each.address()
        assert "from the environment\n" == (each.work / "told").read_text()
