"""The line that tells how far a command is: what stands in it, when it comes, and when it does not."""

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pyarrow as pa
import pytest
from tests.cli.test_output import Terminal

import freezeframe
from freezeframe import progress
from freezeframe.cli import progress as shown
from freezeframe.cli.main import main
from freezeframe.cli.progress import Progress


@pytest.fixture
def soon(monkeypatch):
    """Lines come at once."""
    monkeypatch.setattr(shown, "_TERMINAL_SECONDS", (0.0, 0.01))
    monkeypatch.setattr(shown, "_PLAIN_SECONDS", (0.0, 0.01))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def test_the_line_says_what_is_known():
    """Share, amounts and the time left once there is a total; before that the time that has passed."""
    state = Progress("Exporting acme", started=0.0)
    assert state.line(65.0) == "Exporting acme: 1:05"
    state.begin("writing", "bytes", 2_000_000)
    state._part_started = 0.0
    assert state.line(1.0) == "Exporting acme: writing, 0:01"
    state.advance(500_000)
    assert state.line(10.0) == "Exporting acme  25%  writing 500.0 kB of 2.0 MB  0:30 left"
    assert "[#####...............] 25%" in state.line(10.0, has_bar=True)
    state.advance(2_500_000)
    assert "  100%  " in state.line(10.0)
    state.begin("deleting", "files", None)
    state.advance(1234)
    assert state.line(10.0) == "Exporting acme  deleting 1,234 files"
    assert "1:01:01" in Progress("x", started=0.0).line(3661.0)


def test_the_line_tells_what_the_work_waits_for():
    """While another program works its words stand there, with the time; without a label nothing else does."""
    labelled, bare = Progress("Importing acme", started=0.0), Progress("", started=0.0)
    assert bare.line(65.0) == ""
    for state in (labelled, bare):
        state.wait_for("Spark: 1 of 2 tasks\x1b")
        state.wait_for("Spark: 2 of 2 tasks")
        state._wait_started = 60.0
    assert labelled.line(65.0) == "Importing acme: Spark: 2 of 2 tasks, 0:05"
    assert bare.line(65.0) == "Spark: 2 of 2 tasks, 0:05"
    labelled.wait_for("")
    assert labelled.line(65.0) == "Importing acme: 1:05"


def test_a_terminals_line_makes_way_for_other_lines(monkeypatch, soon):
    """It is taken away before something else is written, and comes again only after that."""
    monkeypatch.setattr("sys.stderr", err := Terminal())
    with shown.progress("") as line:
        progress.wait_for("Spark: 1 of 2 tasks")
        time.sleep(0.05)
        with line.away():
            before = err.getvalue()
            time.sleep(0.05)
            assert before == err.getvalue()
        progress.wait_for("")
    assert before.endswith("tasks, 0:00\r\x1b[K")
    assert err.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_gets_one_line_and_a_pipe_gets_lines(monkeypatch, soon, is_terminal):
    """The terminal's line is rewritten, fits its width and is taken away; a pipe has whole lines."""
    err = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", err)
    with shown.progress("Exporting\x1b[2J " + "x" * 100):
        time.sleep(0.05)
    text = err.getvalue()

    assert "\x1b[2J" not in text
    if is_terminal:
        assert text.endswith("\r\x1b[K")
        assert "\n" not in text
        assert all(len(line) <= 79 for line in text.replace("\x1b[K", "").split("\r"))
    else:
        assert "\x1b" not in text
        assert all(line.startswith("Exporting") for line in text.splitlines())


def test_it_is_silent_where_nobody_wants_it(monkeypatch, soon, tmp_path, capsys):
    """With --json and with --quiet nothing is shown; without them it is."""
    freezeframe.open(tmp_path).tenant("acme", create=True).stream("Lead").update(pa.table({"Id": [1]}), "Id")
    monkeypatch.setattr("sys.stderr", err := io.StringIO())
    place = ["--root", str(tmp_path), "--tenant", "acme"]
    assert main(["export", str(tmp_path / "a"), *place, "--json"]) == 0
    assert main(["--quiet", "export", str(tmp_path / "b"), *place]) == 0
    assert err.getvalue() == ""
    assert main(["export", str(tmp_path / "c"), *place]) == 0
    assert "Exporting" in err.getvalue()


@pytest.mark.long
def test_an_interrupted_command_leaves_nothing_half_done(tmp_path):
    """SIGINT in the middle of a write ends with 130, no traceback, and the tenant as it was."""
    tenant = freezeframe.open(tmp_path).tenant("acme", create=True)
    tenant.files.write("a.bin", b"old")
    before = tenant.version
    command = ["file", "write", "a.bin", "--root", str(tmp_path), "--tenant", "acme"]
    command = [sys.executable, "-m", "freezeframe", *command]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        # More than a pipe holds: this returns when the command is reading, within its job.
        for _ in range(100):
            process.stdin.write(os.urandom(10_000))
        process.send_signal(signal.SIGINT)
        # A signal just before a read is seen only after all of it, so there is enough to read until the end.
        with suppress(BrokenPipeError):
            while process.poll() is None:
                process.stdin.write(bytes(1024 * 1024))
                time.sleep(0.05)
        code, err = process.wait(60), process.stderr.read()

    assert (code, err) == (130, b"")
    tenant = freezeframe.open(tmp_path).tenant("acme")
    assert (before, b"old") == (tenant.version, tenant.files.read("a.bin"))
