"""The child's side of a fork: turns a copy of the runner into `python -m MODULE`.

Whatever the runner has that a fresh process has not is put right here: streams, folder, variables,
signals, limits, the state of random numbers. After that the module runs as ``__main__``.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import random
import resource
import runpy
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NoReturn

from freezeframe.runs.warm.messages import ConnectionLost, receive, send

_STDERR = 2
_LIMITS = tuple(name for name in dir(resource) if name.startswith("RLIMIT_"))


@dataclass(frozen=True, slots=True)
class Work:
    """A request to the runner: a module with its arguments and the state of the process.

    Bound to its client, the process is killed with all of its group when the client is no more.
    """

    module: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    umask: int
    limits: Mapping[str, Sequence[int]]
    is_bound: bool = False

    def to_json(self) -> dict[str, Any]:
        """The work as a message."""
        return {
            "module": self.module,
            "arguments": list(self.arguments),
            "environment": dict(self.environment),
            "umask": self.umask,
            "limits": {name: list(pair) for name, pair in self.limits.items()},
            "is_bound": self.is_bound,
        }


def parse_work(message: Mapping[str, Any]) -> Work:
    """The work that a message describes."""
    try:
        return Work(
            module=str(message["module"]),
            arguments=tuple(map(str, message["arguments"])),
            environment={str(name): str(value) for name, value in message["environment"].items()},
            umask=int(message["umask"]),
            limits={str(name): (int(pair[0]), int(pair[1])) for name, pair in message["limits"].items()},
            is_bound=bool(message["is_bound"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ConnectionLost("a message that asks for nothing known") from error


def current_limits() -> dict[str, tuple[int, int]]:
    """The resource limits of this process, which a child of it would have."""
    return {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS}


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

        Nothing is run before the client says that it knows of this process: one that got no answer
        will have run the job elsewhere.
        """
        os.setsid()
        self._take_over()
        try:
            self.connection.settimeout(None)
            receive(self.connection)
        except OSError:
            os._exit(0)
        if self.work.is_bound:
            threading.Thread(target=self._end_with_client, daemon=True).start()
        code = self._run_module()
        _end_threads()
        with contextlib.suppress(OSError):
            send(self.connection, {"exit": code})
        os._exit(code)

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
            stream = _stream(number, getattr(sys, name), is_unbuffered=is_unbuffered)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        time.tzset()
        _reseed()
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
            return _exit_code(end)
        except BaseException as error:  # noqa: BLE001 - the last one to see it, as the interpreter is
            trace = _of_module(error.__traceback__)
            sys.excepthook(type(error), error.with_traceback(trace), trace)
            return 1
        return 0


def _stream(number: int, before: io.TextIOWrapper, *, is_unbuffered: bool) -> io.TextIOWrapper:
    """A standard stream as the interpreter makes it; the one before knows where the runner's file is."""
    raw = os.fdopen(number, "wb", closefd=False)
    is_by_line = number == _STDERR or raw.isatty()
    return io.TextIOWrapper(raw, before.encoding, before.errors, None, is_by_line, is_unbuffered)


def _of_module(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of the runner, as in a process that was started directly."""
    while trace and trace.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
        trace = trace.tb_next
    return trace


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    sys.stderr.write(f"{end.code}\n")
    return 1


def _reseed() -> None:
    """Python reseeds its own generator after a fork; numpy's would be the same in all children."""
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


def _end_threads() -> None:
    """What the interpreter does at its end, but for taking down every module: that would cost time only."""
    with contextlib.suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing ends a child
        atexit._run_exitfuncs()  # noqa: SLF001 - the same
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
