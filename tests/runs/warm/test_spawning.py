"""Processes of jobs: forked or started, they are the same to the job and to who waits for it."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from tests.waiting import is_alive, until

from freezeframe.engine.daemon import private_folder, retire
from freezeframe.runs.process.environment import _NEEDED
from freezeframe.runs.warm.messages import ConnectionLost, receive, require_own_user, send
from freezeframe.runs.warm.runner_folder import (
    ask,
    connect,
    runner_folder,
    runner_variables,
    startup_variables,
)
from freezeframe.runs.warm.spawning import ForkedProcess, spawn, start_runner
from freezeframe.settings import Settings

pytestmark = pytest.mark.long

JOB = """
import json, os, sys
print(json.dumps({
    "arguments": sys.argv[1:], "folder": os.getcwd(), "path": sys.path[0], "name": __name__,
    "variables": {name: os.environ.get(name) for name in ("COLOUR", "HOME")},
    "is_leader": os.getsid(0) == os.getpid() == os.getpgid(0), "input": sys.stdin.read(),
    "umask": os.umask(0), "main": sys.modules["__main__"].__name__,
    "term": str(__import__("signal").getsignal(15)), "warm": os.getppid(),
}))
"""
ENDS = {
    "return": ("pass", 0),
    "code": ("import sys; sys.exit(7)", 7),
    "text": ("import sys; sys.exit('no more')", 1),
    "error": ("raise ValueError('not this')", 1),
    "signal": ("import os; os.kill(os.getpid(), 9)", -9),
    "abrupt": ("import os; os._exit(4)", 4),
    "thread": (
        "import threading, time; threading.Thread(target=lambda: (time.sleep(.1), print('last'))).start()",
        0,
    ),
    "atexit": ("import atexit; atexit.register(print, 'bye')", 0),
}


class Jobs:
    """Modules in a folder, run as processes with their output in a file."""

    def __init__(self, folder, settings):
        self.folder = folder
        self.settings = settings
        self.output = folder / "output"
        self.numbers = itertools.count()

    @property
    def place(self):
        return runner_folder(self.settings, os.environ)

    def about(self):
        """What the runner says of itself; None if there is none."""
        return ask(self.place, {"about": True}, 30)

    def start(self, source, *arguments, variables=None, settings=None):
        # A name of its own: the one before may not have been read yet.
        name = f"etl_{next(self.numbers)}"
        (self.folder / f"{name}.py").write_text(source)
        environment = {
            "HOME": "/nowhere",
            "PATH": os.environ["PATH"],
            "COLOUR": "blue",
            "PYTHONUNBUFFERED": "1",
        }
        environment |= runner_variables(os.environ, self.settings) | (variables or {})
        with self.output.open("wb") as output:
            return spawn(
                [sys.executable, "-m", name, *arguments],
                environment=environment,
                cwd=self.folder,
                stdout=output.fileno(),
                settings=settings or self.settings,
            )

    def done(self, source, *arguments, **options):
        """The kind of process, its exit code and its output."""
        process = self.start(source, *arguments, **options)
        return type(process), process.wait(120), self.output.read_text()


def _without_file(line):
    return re.sub(r"etl_\d+\.py", "etl.py", line)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """Settings of a runner of this module alone."""
    return Settings(state_dir=tmp_path_factory.mktemp("state") / "run", runner_idle_seconds=60)


@pytest.fixture(scope="module")
def jobs(settings, tmp_path_factory):
    """Jobs that the runner forks; it retires at the end."""
    found = Jobs(tmp_path_factory.mktemp("jobs"), settings)
    yield found
    retire(found.place)


@pytest.fixture
def plain(jobs):
    """The same settings without a runner."""
    return jobs.settings.model_copy(update={"runner_idle_seconds": 0})


def test_a_forked_process_finds_what_a_started_one_finds(jobs, plain):
    """Arguments, folder, variables, input, session, umask and signals are the same."""
    told = []
    for settings, kind in ((jobs.settings, ForkedProcess), (plain, subprocess.Popen)):
        found, code, output = jobs.done(JOB, "one", "two words", settings=settings)
        assert (kind, 0) == (found, code), output
        told.append(json.loads(output))
    assert jobs.about()["process"] == told[0].pop("warm")
    assert os.getpid() == told[1].pop("warm")
    assert told[0] == told[1]


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_state_folder_that_cannot_be_used_fails_no_job(jobs, tmp_path, place):
    """The job is a process of its own, and there is no runner."""
    (tmp_path / "file").touch()
    broken = jobs.settings.model_copy(update={"state_dir": tmp_path / place})

    assert (subprocess.Popen, 0, "") == jobs.done("pass", settings=broken)
    assert not start_runner(broken)


@pytest.mark.parametrize("end", ENDS)
def test_a_forked_process_ends_as_a_started_one(jobs, plain, end):
    """Exit code and output are the same: a traceback, last words, an end without any."""
    source, code = ENDS[end]
    kind, forked, output = jobs.done(source)
    assert (ForkedProcess, code) == (kind, forked)
    kind, started, expected = jobs.done(source, settings=plain)
    assert (subprocess.Popen, code) == (kind, started)
    lines = [line for line in expected.splitlines() if "runpy" not in line]
    assert [*map(_without_file, lines)] == [*map(_without_file, output.splitlines())]


def test_the_imports_are_there_already(jobs):
    """What the first update of a script loads is loaded."""
    source = "import sys; print(*({'pandas', 'pyarrow.dataset', 'pyspark.sql.connect'} - set(sys.modules)))"
    assert (ForkedProcess, 0, "\n") == jobs.done(source)


def test_no_two_processes_draw_the_same_numbers(jobs):
    """Neither Python's generator nor numpy's goes on from where the runner stands."""
    source = "import random, numpy; print(random.random(), numpy.random.random())"
    first, second = (jobs.done(source)[2].split() for _ in range(2))
    assert set(first) & set(second) == set()


def test_a_job_that_dies_does_not_hurt_the_runner(jobs):
    """After a kill and a crash the same runner forks the next."""
    before = jobs.about()["process"]
    assert -signal.SIGSEGV == jobs.done("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")[1]
    assert -signal.SIGKILL == jobs.done("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")[1]
    assert (ForkedProcess, 0, "still here\n") == jobs.done("print('still here')")
    assert before == jobs.about()["process"]


def test_a_cancelled_job_takes_its_own_children_along(jobs):
    """A signal to the group reaches what the job has started; waiting has a limit, as with any process."""
    source = "import subprocess; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); p.wait()"
    process = jobs.start(source)
    until(lambda: jobs.output.read_text().strip())
    child = int(jobs.output.read_text())
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    assert -signal.SIGKILL == process.wait(120)
    until(lambda: not is_alive(child))
    process.send_signal(signal.SIGTERM)  # to nobody, and no error


def test_several_jobs_at_once(jobs):
    """Each has its own end."""
    sources = [f"import time, sys; time.sleep(0.3); sys.exit({code})" for code in range(6)]
    processes = [jobs.start(source) for source in sources]
    assert [*range(6)] == [process.wait(120) for process in processes]


def test_a_command_that_is_no_module_is_started(jobs):
    """So is one of another interpreter, and one with variables that count at the start of Python."""
    options = {"environment": dict(os.environ), "cwd": jobs.folder, "stdout": 1, "settings": jobs.settings}
    assert spawn(["/bin/sh", "-c", "exit 3"], **options).wait(120) == 3
    kind, code, output = jobs.done("import sys; print(sys.flags.optimize)", variables={"PYTHONOPTIMIZE": "2"})
    assert (subprocess.Popen, 0, "2\n") == (kind, code, output)


def test_a_runner_has_the_start_up_variables_that_scripts_inherit(settings):
    """Else every job's environment would differ from the runner's, and none would be forked."""
    passed_on = dict.fromkeys(_NEEDED, "same")
    assert startup_variables(passed_on) == runner_variables(passed_on, settings)


def test_a_folder_that_is_not_there_is_the_callers_error(jobs):
    """As of `subprocess.Popen`."""
    with pytest.raises(FileNotFoundError):
        spawn(
            [sys.executable, "-m", "etl"],
            environment={},
            cwd=jobs.folder / "absent",
            stdout=1,
            settings=jobs.settings,
        )


def test_jobs_outlive_a_killed_runner_and_the_next_one_has_another(jobs):
    """The job under way ends by itself and its exit code is heard; one killed then counts as killed."""
    runner = jobs.about()["process"]
    job = jobs.start("import time, sys; time.sleep(0.5); sys.exit(5)")
    other = jobs.start("import time; time.sleep(600)")
    os.kill(runner, signal.SIGKILL)
    assert job.wait(120) == 5
    os.killpg(other.pid, signal.SIGKILL)
    assert -signal.SIGKILL == other.wait(120)
    assert (ForkedProcess, 0, "again\n") == jobs.done("print('again')")
    assert runner != jobs.about()["process"]


def test_a_process_leads_its_group_when_its_number_is_known(jobs):
    """A caller can end the group at once: a job that is cancelled as it starts does not go on."""
    for _ in range(40):
        job = jobs.start("import time; time.sleep(600)")
        assert job.pid == os.getpgid(job.pid)
        os.killpg(job.pid, signal.SIGKILL)
        assert -signal.SIGKILL == job.wait(120)


def test_a_runner_leaves_garbage_unanswered(jobs):
    """Half a message, no message and nonsense cost it nothing; nobody gets a process without asking."""
    before = jobs.about()["process"]
    for words in (b"", b"\x00\x00", b"\x00\x00\x00\x03{}}", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02[]"):
        with contextlib.closing(connect(jobs.place, 10)) as connection:
            connection.sendall(words)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    assert ask(jobs.place, {"module": "etl"}, 10) is None
    about = jobs.about()
    assert (before, []) == (about["process"], about["jobs"])


def test_a_client_that_dies_before_its_word_starts_nothing(jobs, tmp_path):
    """A process is forked, but it runs nothing: its client may have started the job elsewhere."""
    (jobs.folder / "mark.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    work = {
        "module": "mark",
        "arguments": [],
        "environment": {},
        "umask": 18,
        "limits": {},
        "is_bound": False,
    }
    descriptors = [os.open(os.devnull, os.O_RDWR) for _ in range(3)] + [os.open(jobs.folder, os.O_RDONLY)]
    with contextlib.closing(connect(jobs.place, 10)) as connection:
        send(connection, work, descriptors)
        message, (holder,) = receive(connection)
    for descriptor in (*descriptors, holder):
        os.close(descriptor)
    until(lambda: not is_alive(message["process"]))
    assert not (tmp_path / "ran").exists()


def test_somebody_elses_runner_is_not_used(jobs, monkeypatch):
    """Where the state folder belongs to another user the job runs all the same, as a plain process."""
    private_folder(jobs.settings.state_dir)
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    kind, code, output = jobs.done("print('alone')")
    assert (subprocess.Popen, 0, "alone\n") == (kind, code, output)


def test_each_end_asks_the_system_who_the_other_is(monkeypatch):
    """A peer of another user is refused, whatever the folder's mode was."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        require_own_user(ours)
        uid = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
        with pytest.raises(ConnectionLost, match=f"user {uid}"):
            require_own_user(ours)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user_who_reaches_the_socket_gets_no_answer(jobs):
    """With all modes open, the runner closes the door by who is there."""
    jobs.done("pass")
    before = jobs.about()["process"]
    place = jobs.place
    closed = [folder for folder in place.parents if not folder.stat().st_mode & 0o001]
    opened = [place / "socket", place, *closed]
    modes = [path.stat().st_mode & 0o7777 for path in opened]
    for path in opened:
        path.chmod(0o777)
    source = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
        "s.connect(sys.argv[1]); s.sendall(b'\\0\\0\\0\\x0f{\"about\": true}'); print(s.recv(1))"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", source, place / "socket"], capture_output=True, text=True, check=False
        )
    finally:
        for path, mode in zip(opened, modes, strict=True):
            path.chmod(mode)
    # The end of the connection is seen by the one that writes or by the one that reads.
    is_cut_off = re.search("BrokenPipeError|ConnectionResetError", done.stderr) is not None
    assert is_cut_off != ("b''\n" == done.stdout), done.stdout + done.stderr
    assert before == jobs.about()["process"]


def test_a_runner_with_other_settings_takes_the_place(jobs, monkeypatch):
    """One that is no longer asked for retires; it leaves when it is idle for as long as it may be."""
    first = jobs.about()["process"]
    old = jobs.start("import time; time.sleep(0.5)")
    other = Jobs(jobs.folder, jobs.settings.model_copy(update={"runner_idle_seconds": 1}))
    assert (ForkedProcess, 0, "other\n") == other.done("print('other')")
    second = other.about()["process"]
    assert first != second
    assert old.wait(120) == 0
    until(lambda: not is_alive(first))
    until(lambda: not is_alive(second))
    assert other.about() is None
