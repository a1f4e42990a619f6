"""Run the tests of `make test` (all) or `make fast` (fast) in processes side by side.

The tests that need Spark wait for its server most of the time, and those in a browser for pages; the
others, in two processes, use the cores meanwhile. With options of pytest one process runs all the others: a
named path belongs to one of the two only.

SIGINT and SIGTERM end the run within five seconds, with every process that a test has started.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / ".cache"
# The environment of each process of a run names the run, also of servers that left their session. Without the
# prefix of settings: freezeframe warns of an unknown variable that has it.
RUN = "TESTS_OF_RUN"
MEMORY = Path("/dev/shm")  # noqa: S108 - mkdtemp makes the folder
FREE_BYTES_MIN = 6 * 1024**3
INTERRUPT_SECONDS, TERMINATE_SECONDS = 1.5, 1.0
NO_TESTS = 5  # pytest's exit code where no test was selected
SIGNALLED = 128  # a shell adds the number of the signal
# The part that ends first leaves the cores to those that end last.
NICENESS = {"store": "10"}
# Two parts of about the same length in `make fast`.
STORE = ("tests/store", "tests/log", "tests/storage", "tests/script", "tests/gluestick", "tests/singer")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


ANYWHERE = r"\b"
IN_ALL_TESTS = r"^pytestmark = .*(?:\n +.*)*?\b"


def files_with(*marks: str, where: str = ANYWHERE) -> list[str]:
    """Return the test files that use one of the marks; importing all the others takes half a minute."""
    used = re.compile(rf"{where}mark\.(?:{'|'.join(marks)})\b", re.MULTILINE)
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(file.relative_to(ROOT)) for file in files if used.search(file.read_text("utf-8"))]


def parts(which: str, options: list[str]) -> dict[str, list[str]]:
    """Return pytest's arguments for each process, by name."""
    left_out = ["spark", "browser", "stateful", "nightly"]
    found = {}
    if which == "fast":
        left_out.append("long")
    else:
        found["spark"] = ["-m", "spark and not nightly", *(options or files_with("spark"))]
        marks = "(browser or stateful) and not spark and not nightly"
        found["browser"] = ["-m", marks, *(options or files_with("browser", "stateful"))]
    others = ["-m", " and ".join(f"not {mark}" for mark in left_out)]
    if options:
        return {**found, "other": [*others, *options]}
    others += [f"--ignore={file}" for file in files_with(*left_out, where=IN_ALL_TESTS)]
    ignored = [f"--ignore={folder}" for folder in STORE]
    return {**found, "store": [*others, *STORE], "other": [*others, "tests", *ignored]}


class Part:
    """One process of pytest, whose output goes to a file."""

    def __init__(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
        self.name = name
        self.status: int | None = None
        self.seconds = self.cpu_seconds = 0.0
        self._begun = time.monotonic()
        self._log = LOGS / f"{name}-tests.log"
        self._shown = 0
        cache = LOGS / "pytest" / name
        shutil.rmtree(cache, ignore_errors=True)
        options = ["-o", "tmp_path_retention_policy=failed", "-o", f"cache_dir={cache}"]
        options += ["--durations=15", "--durations-min=3"]
        niceness = NICENESS.get(name, "0")
        with self._log.open("wb") as output:
            # A session of its own: the terminal's Ctrl-C reaches the tests through this process only.
            self.process = subprocess.Popen(  # noqa: S603
                ["nice", "-n", niceness, "pytest", *options, *arguments],  # noqa: S607 - of the environment
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # Linux may weigh sessions against each other by a niceness of their own.
        with suppress(OSError):
            Path(f"/proc/{self.process.pid}/autogroup").write_text(niceness)

    def poll(self) -> bool:
        """Return whether the process has ended, and keep its status and times if so."""
        if self.status is None:
            with suppress(ChildProcessError):
                process, status, usage = os.wait4(self.process.pid, os.WNOHANG)
                if process:
                    self.status = self.process.returncode = os.waitstatus_to_exitcode(status)
                    self.seconds = time.monotonic() - self._begun
                    self.cpu_seconds = usage.ru_utime + usage.ru_stime
        return self.status is not None

    def show(self) -> None:
        """Print what the process has written since the last call."""
        with self._log.open("rb") as log:
            log.seek(self._shown)
            text = log.read()
        self._shown += len(text)
        sys.stdout.buffer.write(text)
        sys.stdout.flush()


def processes_of(run: str) -> list[psutil.Process]:
    """Return the processes that belong to the run, apart from this one."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and run in process.environ().get(RUN, "").split():
                found.append(process)
    return found


def end(running: list[Part], run: str) -> None:
    """Let the tests' fixtures end what they started, and kill what is left of the run."""
    for part in running:
        if not part.poll():
            part.process.send_signal(signal.SIGINT)
    until = time.monotonic() + INTERRUPT_SECONDS
    while time.monotonic() < until and not all(part.poll() for part in running):
        time.sleep(0.05)
    left = processes_of(run)
    for process in left:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs(left, timeout=TERMINATE_SECONDS)
    for _ in range(3):  # a process may have started another one meanwhile
        for process in processes_of(run):
            with suppress(psutil.Error):
                process.kill()


class Stopped(BaseException):
    """A signal asks for the end of the run."""


def stop(number: int, _: object) -> None:
    """Raise for the first signal and ignore the following ones, which often come twice."""
    for item in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(item, signal.SIG_IGN)
    raise Stopped(number)


def follow(running: list[Part]) -> None:
    """Print the output of one part after the other while all run, and then their times."""
    for part in running:
        say(f"--- the {part.name} tests:")
        while not part.poll():
            part.show()
            for other in running:
                other.poll()
            time.sleep(0.2)
        part.show()
    say("\n--- seconds, and seconds of CPU without servers that outlive their test:")
    for part in running:
        say(f"{part.name:8} {part.seconds:7.0f} {part.cpu_seconds:7.0f}")


def outcome(statuses: list[int]) -> int:
    """Return the first failure, or whether any test was selected."""
    failures = [status for status in statuses if status not in (0, NO_TESTS)]
    return failures[0] if failures else min(statuses)


def main(arguments: list[str]) -> int:
    """Run the tests; the exit code is pytest's, or 128 and the number of the signal."""
    if not arguments or arguments[0] not in ("all", "fast"):
        sys.stderr.write("tools/run_tests.py takes all or fast first, and then pytest's options.\n")
        return 2
    LOGS.mkdir(exist_ok=True)
    run = f"{os.getpid()}-{time.time_ns()}"
    environment = {**os.environ, RUN: f"{os.environ.get(RUN, '')} {run}".strip()}
    # A commit waits for the disk a few times, which thousands of tests need not do: their folders are in
    # memory where there is room for them. The folder of a test that failed is kept.
    folder = None
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > FREE_BYTES_MIN:
        folder = tempfile.mkdtemp(prefix="freezeframe-tests.", dir=MEMORY)
        environment["PYTEST_DEBUG_TEMPROOT"] = folder
    running: list[Part] = []
    for item in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(item, stop)
    try:
        for name, options in parts(arguments[0], arguments[1:]).items():
            running.append(Part(name, options, environment))
        follow(running)
        status = outcome([part.status or 0 for part in running])
    except Stopped as stopped:
        end(running, run)
        [number] = stopped.args
        say(f"\nStopped by {signal.Signals(number).name}.")
        status = SIGNALLED + number
    if folder and (status in (0, NO_TESTS) or status > SIGNALLED):
        shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
