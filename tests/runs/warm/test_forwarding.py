"""A command that the warm runner carries out: to the shell it is the command itself."""

import os
import signal
import subprocess
import sys

import pytest
from tests.waiting import is_alive, until

from freezeframe.engine.daemon import retire
from freezeframe.runs.warm.runner_folder import runner_folder
from freezeframe.settings import Settings

pytestmark = pytest.mark.long

AT_ONCE = """
from freezeframe.runs.warm.forwarding import forwarded_at_once
print(forwarded_at_once("command", []))
"""
CLIENT = """
import sys
if sys.argv[1:] == ["at once"]:
    from freezeframe.runs.warm.forwarding import forwarded_at_once
    code = forwarded_at_once("command", ["talk"])
    assert not {"typer", "pydantic", "pyarrow"} & set(sys.modules)
    sys.exit(99 if code is None else code)
from freezeframe.runs.warm.forwarding import forward
from freezeframe.settings import Settings
code = forward("command", sys.argv[1:], Settings())
assert not {"pandas", "pyarrow"} & set(sys.modules)
sys.exit(99 if code is None else code)
"""
COMMAND = """
import os, signal, sys, time
from freezeframe.runs.warm.forwarding import forward
from freezeframe.settings import Settings

def leave(*_):
    os.write(1, b"left in order")
    sys.exit(130)

what = sys.argv[1]
if what == "talk":
    print(sys.stdin.readline().strip(), forward("command", ["talk"], Settings()), os.getcwd())
    print("trouble", file=sys.stderr)
    sys.exit(3)
signal.signal(signal.SIGINT, leave)
print(os.getpid(), flush=True)
if what == "die":
    os.kill(os.getpid(), signal.SIGTERM)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the command in it, and a runner of its own."""
    folder = tmp_path_factory.mktemp("forwarding")
    (folder / "command.py").write_text(COMMAND)
    settings = Settings(state_dir=folder / "state", runner_idle_seconds=60)
    yield folder
    retire(runner_folder(settings, os.environ))


def client(folder, what, **options):
    environment = {"FREEZEFRAME_STATE_DIR": str(folder / "state"), "FREEZEFRAME_RUNNER_IDLE_SECONDS": "60"}
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT, what],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_streams_and_exit_code_are_the_commands(folder):
    """What it reads, prints and ends with; forwarded once, it forwards nothing itself."""
    with client(folder, "talk") as process:
        output, errors = process.communicate("a word\n", timeout=60)
    assert (3, f"a word None {folder}\n", "trouble\n") == (process.returncode, output, errors)


def test_signals_reach_the_command(folder):
    """Ctrl-C is the command's to answer; one that a signal ends is told as a shell tells it."""
    with client(folder, "wait") as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (130, "left in order", "")
    with client(folder, "die") as process:
        process.communicate(timeout=60)
    assert 128 + signal.SIGTERM == process.returncode


def test_a_killed_command_does_not_run_on(folder):
    """kill -9 of what the user started ends what does its work."""
    with client(folder, "wait") as process:
        worker = int(process.stdout.readline())
        process.kill()
    assert until(lambda: not is_alive(worker))


def test_a_runner_that_is_there_is_reached_without_the_library_of_settings(folder):
    """The command is the same, and nothing that takes long is loaded for it."""
    with client(folder, "talk") as process:
        process.communicate("a word\n", timeout=60)
    with client(folder, "at once") as process:
        output, errors = process.communicate("a word\n", timeout=60)
    assert (3, f"a word None {folder}\n", "trouble\n") == (process.returncode, output, errors)


@pytest.mark.parametrize(
    ("name", "value"),
    [("STATE_DIR", "absent"), ("RUNNER_IDLE_SECONDS", "0"), ("RUNNER_IDLE_SECONDS", "soon")],
)
def test_without_a_runner_nothing_is_done_at_once(tmp_path, monkeypatch, name, value):
    """No runner is started and no folder made; settings that are wrong are left to who checks them."""
    monkeypatch.setenv("FREEZEFRAME_STATE_DIR", str(tmp_path))
    monkeypatch.setenv(f"FREEZEFRAME_{name}", value)
    asked = [sys.executable, "-c", AT_ONCE]
    run = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "None\n"
    assert [path for path in tmp_path.rglob("*") if not path.name.startswith("runner-")] == []
