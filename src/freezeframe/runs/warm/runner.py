"""The runner: a process that has imported what jobs import, and forks one process per job.

It has one thread, and no connection to Spark, because neither survives a fork. It is a daemon
(`engine.daemon`), listens on a socket in its folder, and ends when the processes that it forked have ended.

Started by `spawning`, as `python -m freezeframe.runs.warm.runner FOLDER IDLE_SECONDS`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import os
import random
import resource
import runpy
import select
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from freezeframe.engine.daemon import IdleTime, is_retired, try_lock
from freezeframe.extras import missing_extra
from freezeframe.runs.warm.messages import Work, parse_work, receive, require_own_user, send
from freezeframe.runs.warm.runner_folder import LOCK_NAME, SOCKET_NAME, listen

_STDERR = 2


@dataclass(frozen=True, slots=True)
class Child:
    """A process that was just forked, with what its client sent along.

    ``descriptors`` are standard input, output and error and the working folder.
    """

    work: Work
    connection: socket.socket
    descriptors: Sequence[int]

    def run(self) -> NoReturn:
        """Become the child process, run the module, and end with its exit code.

        Nothing runs before the client confirms that it knows this process: a client without an answer runs
        the job elsewhere. The client learns of this process when it leads its group, so that the group can be
        ended from then on.
        """
        os.setsid()
        self._announce()
        self._take_over()
        try:
            self.connection.settimeout(None)
            receive(self.connection)
        except OSError:
            os._exit(0)
        if self.work.is_bound:
            threading.Thread(target=self._end_with_client, daemon=True).start()
        code = self._run_module()
        # What the interpreter does at its end, but for taking down every module: that would cost time only.
        with contextlib.suppress(Exception):
            threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing ends a child
            atexit._run_exitfuncs()  # noqa: SLF001 - the same
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        with contextlib.suppress(OSError):
            send(self.connection, {"exit": code})
        os._exit(code)

    def _announce(self) -> None:
        # Held by a file, the process cannot be mistaken for a later one of the same number.
        holder = os.pidfd_open(os.getpid())
        try:
            # The client may be gone: then its word does not come, and this process ends.
            with contextlib.suppress(OSError):
                send(self.connection, {"process": os.getpid()}, [holder])
        finally:
            os.close(holder)

    def _take_over(self) -> None:
        for number, descriptor in enumerate(self.descriptors[:3]):
            os.dup2(descriptor, number)
        os.fchdir(self.descriptors[3])
        for descriptor in self.descriptors:
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(self.work.environment)
        os.umask(self.work.umask)
        for name, pair in self.work.limits.items():
            # A limit of the runner that is lower than the client's cannot be raised again.
            with contextlib.suppress(ValueError, OSError, AttributeError):
                resource.setrlimit(getattr(resource, name), (pair[0], pair[1]))
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        is_unbuffered = bool(self.work.environment.get("PYTHONUNBUFFERED"))
        for number, name in ((1, "stdout"), (_STDERR, "stderr")):
            before = getattr(sys, name)
            raw = os.fdopen(number, "wb", closefd=False)
            is_by_line = number == _STDERR or raw.isatty()
            stream = io.TextIOWrapper(raw, before.encoding, before.errors, None, is_by_line, is_unbuffered)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        time.tzset()
        # Python reseeds its own generator after a fork; numpy's would be the same in all children.
        random.seed()
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed()
        gc.enable()

    def _end_with_client(self) -> None:
        # The client sends nothing more: the wait ends with the client.
        with contextlib.suppress(OSError):
            receive(self.connection)
        os.killpg(0, signal.SIGKILL)

    def _run_module(self) -> int:
        sys.argv = [sys.argv[0], *self.work.arguments]
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - Python keeps text there
        # Imported ahead, it would be run a second time with a warning.
        sys.modules.pop(self.work.module, None)
        try:
            runpy.run_module(self.work.module, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            if end.code is None:
                return 0
            if isinstance(end.code, int):
                return end.code & 0xFF
            sys.stderr.write(f"{end.code}\n")
            return 1
        except BaseException as error:  # noqa: BLE001 - the last one to see it, as the interpreter is
            # Without the frames of the runner, as in a process that was started directly.
            trace = error.__traceback__
            while trace and trace.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
                trace = trace.tb_next
            sys.excepthook(type(error), error.with_traceback(trace), trace)
            return 1
        return 0


# Modules that a job loads before its first row moves.
_FOR_JOBS = (
    "pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "freezeframe.script.snapshots",
    "freezeframe.script.tenants",
    "freezeframe.engine.spark",
    "freezeframe.runs.process.script_process",
    "freezeframe.runs.running",
    "freezeframe.cli.commands.run",
    "freezeframe.cli.application",
    # PySpark searches the stack of each call for its own frames.
    "ipykernel",
)
# Loaded while the runner is idle: notebooks and reading commands need them.
_FOR_LATER = (
    "freezeframe.runs.process.notebook",
    "freezeframe.cli.commands.stream",
    "freezeframe.cli.commands.tenant",
    "pyarrow.acero",
)
_REQUEST_SECONDS = 5.0
_WAKE_SECONDS = 1.0
_DESCRIPTORS = 4


class Runner:
    """The state of a runner between two events."""

    def __init__(self, folder: Path, idle_seconds: float) -> None:
        self._folder = folder
        self._wake_seconds = min(_WAKE_SECONDS, idle_seconds)
        self._listener = listen(folder)
        self._children: dict[int, socket.socket] = {}
        self._started = time.time()
        self._idle = IdleTime(folder, idle_seconds)
        self._later = list(_FOR_LATER)
        self._is_retiring = False

    def serve(self) -> Child | None:
        """Wait for work until idle or retired; in a forked process, return what it is to be.

        In the runner itself, None.
        """
        bell, ring = socket.socketpair()
        with bell, ring:
            ring.settimeout(0)
            signal.signal(signal.SIGCHLD, lambda *_: None)
            previous = signal.set_wakeup_fd(ring.fileno(), warn_on_full_buffer=False)
            try:
                return self._serve(bell)
            finally:
                signal.set_wakeup_fd(previous)

    def _serve(self, bell: socket.socket) -> Child | None:
        # The time of the imports before this does not count as idle.
        self._idle.begin()
        while True:
            if is_retired(self._folder):
                # Whoever comes now starts another runner, and need not wait for the children of this one.
                self._is_retiring = True
                self._close_door()
            if self._is_retiring and not self._children:
                return None
            waited_for = [bell] if self._is_retiring else [bell, self._listener]
            ready, _, _ = select.select(waited_for, [], [], self._wake_seconds)
            if bell in ready:
                bell.recv(4096)
            self._reap()
            if self._listener in ready and (child := self._accept()):
                return child
            if ready or self._children:
                continue
            if self._idle.is_over():
                self._close_door()
                return None
            if self._later:
                _import(self._later.pop(0))
                gc.freeze()

    def _reap(self) -> None:
        """Report its process's exit to each client."""
        while self._children:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            self._idle.begin()
            connection = self._children.pop(process, None)
            if connection is None:
                continue
            with connection, contextlib.suppress(OSError):
                send(connection, {"status": os.waitstatus_to_exitcode(status)})

    def _accept(self) -> Child | None:
        connection, _ = self._listener.accept()
        descriptors: list[int] = []
        try:
            connection.settimeout(_REQUEST_SECONDS)
            require_own_user(connection)
            message, descriptors = receive(connection)
            if "about" in message:
                send(
                    connection,
                    {
                        "process": os.getpid(),
                        "started": self._started,
                        "jobs": sorted(self._children),
                        "idle_seconds": 0.0 if self._children else self._idle.seconds,
                    },
                )
            elif len(descriptors) == _DESCRIPTORS:
                return self._fork(connection, parse_work(message), descriptors)
            connection.close()
        except OSError:
            connection.close()
        finally:
            for descriptor in descriptors:
                # In the child they have become its streams and are closed already.
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        return None

    def _fork(self, connection: socket.socket, work: Work, descriptors: list[int]) -> Child | None:
        self._idle.begin()
        process = os.fork()
        if not process:
            self._leave_behind()
            return Child(work, connection, [os.dup(descriptor) for descriptor in descriptors])
        self._children[process] = connection
        return None

    def _leave_behind(self) -> None:
        """In the child: close what belongs to the runner and to its other children."""
        self._listener.close()
        for connection in self._children.values():
            connection.close()
        self._children.clear()

    def _close_door(self) -> None:
        if self._listener.fileno() >= 0:
            (self._folder / SOCKET_NAME).unlink(missing_ok=True)
            self._listener.close()


def main(folder: Path, idle_seconds: float) -> None:
    """Run the runner of this folder, unless another process does."""
    # `python -m` puts the working folder, which is the runner's own, in front.
    sys.path[:] = [entry for entry in sys.path if entry != str(folder)]
    with (folder / LOCK_NAME).open("a") as life:
        if not try_lock(life):
            return
        runner = Runner(folder, idle_seconds)
        for name in _FOR_JOBS:
            _import(name)
        # Collecting garbage would copy the pages that children share with the runner.
        gc.collect()
        gc.freeze()
        with _ignore_thread_warnings():
            child = runner.serve()
        if child is None:
            return
    # The child has closed its copy of the lock: only the runner holds it.
    child.run()


@contextlib.contextmanager
def _ignore_thread_warnings() -> Iterator[None]:
    """Numpy's arithmetic has threads that know of forks; Python warns of any thread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - the importing code meets the same error and reports it
        if not isinstance(error, ModuleNotFoundError) or missing_extra(error) is None:
            traceback.print_exc()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
