"""tools/run_tests.py: its exit code, what it prints, and its end at a signal."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture
def command(tmp_path, monkeypatch):
    """The command in a repository of its own, which has no test yet and needs no plugin."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for folder in (
        "tools",
        "tests/store",
        "tests/log",
        "tests/storage",
        "tests/script",
        "tests/gluestick",
        "tests/singer",
    ):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = spark\n")
    shutil.copy(REPOSITORY / "tools" / "run_tests.py", tmp_path / "tools")
    return [sys.executable, tmp_path / "tools" / "run_tests.py"]


def write_test(folder, name, body, mark=""):
    """Write a test file of one test."""
    (folder / f"test_{name}.py").write_text(f"import pytest\n{mark}\ndef test_it():\n    {body}\n")


def call(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_that_nobody_knows_is_a_usage_error(command):
    """It names the runs that there are, and starts none."""
    done = call(*command, "tests/log")

    assert done.returncode == 2
    assert "all or fast" in done.stderr


def test_the_output_of_each_part_is_shown_with_its_seconds(command, tmp_path):
    """One after the other, although they run side by side."""
    write_test(tmp_path / "tests" / "log", "log", "pass")
    write_test(tmp_path / "tests", "other", "pass")
    done = call(*command, "fast")

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(
        r"--- the store tests:\n.*1 passed.*--- the other tests:\n.*1 passed.*\n--- seconds, .*"
        r"\nstore +\d+ +\d+\nother +\d+ +\d+\n",
        done.stdout,
        re.DOTALL,
    )


@pytest.mark.long
def test_a_failed_test_fails_the_run_and_is_not_tried_again(command, tmp_path):
    """A second run would hide a test that fails beside others. No selected test at all is pytest's 5."""
    assert call(*command, "fast").returncode == 5
    runs = tmp_path / "runs"
    write_test(tmp_path / "tests", "other", f"open({str(runs)!r}, 'a').write('x'); assert False")
    write_test(tmp_path / "tests" / "log", "log", "pass")
    done = call(*command, "fast")

    assert (done.returncode, runs.read_text()) == (1, "x")


STUBBORN = """import signal, subprocess, sys, time
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"
    subprocess.Popen([sys.executable, "-c", server], start_new_session=True)
    open({started!r}, "w").close()
    time.sleep(300)"""


@pytest.mark.long
@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGTERM])
def test_a_signal_ends_the_run_with_all_its_processes(command, tmp_path, number):
    """Also a test that ignores Ctrl-C and a server in a session of its own."""
    started = tmp_path / "started"
    write_test(tmp_path / "tests", "spark", STUBBORN.format(started=str(started)), "@pytest.mark.spark")
    write_test(tmp_path / "tests" / "log", "log", "import time; time.sleep(300)")
    process = subprocess.Popen([*command, "all"], stdout=subprocess.PIPE, text=True)
    _wait_until(started.exists, 60)
    mine = _processes_of(process.pid)
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)  # a tenth of what the test would take

    assert process.returncode == 128 + number
    assert f"Stopped by {number.name}." in output
    assert len(mine) >= 3  # two parts and the server; a part without tests may have ended before
    _wait_until(lambda: _processes_of(process.pid) == [], 30)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_of_a_real_spark_test(number):
    """With Spark's server, which is not a child of any test's process by then."""
    process = subprocess.Popen(
        [sys.executable, REPOSITORY / "tools" / "run_tests.py", "all", "tests/script/test_views.py"],
        stdout=subprocess.PIPE,
        text=True,
    )
    _wait_until(lambda: any("java" in name for name in _processes_of(process.pid)), 120)
    begun = time.monotonic()
    process.send_signal(number)
    process.communicate(timeout=60)

    assert time.monotonic() - begun < 6
    _wait_until(lambda: _processes_of(process.pid) == [], 1)


def _processes_of(pid):
    """The names of the processes whose environment has the run with this process id."""
    found = []
    for process in psutil.process_iter():
        try:
            runs = process.environ().get("TESTS_OF_RUN", "").split()
        except (psutil.Error, OSError):
            continue
        if process.pid != os.getpid() and any(run.startswith(f"{pid}-") for run in runs):
            found.append(process.name())
    return found


def _wait_until(condition, seconds):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "It did not happen in time."
        time.sleep(0.05)
