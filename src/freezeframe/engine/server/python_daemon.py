"""Start the Python workers of a server by PySpark's own daemon, which has imported what tasks of ours import.

Spark puts the jar of its core on the module path. It holds no module, and each task reads the directories of
all archives of the path again, which takes 60 ms: it is left out.

A worker is a fork of the daemon. What is imported before is imported once, shares its memory, and is left out
of the collection of garbage that PySpark has each worker do after each task.

Each session that runs Python has daemons of its own, which Spark keeps for as long as it runs itself
(SPARK-54055): on a warm server one or more for each job. That of a job's session ends with the job.
"""

import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from freezeframe.engine.daemon import try_lock
from freezeframe.engine.server.watcher import DATABASES_VARIABLE

_JAR = "spark-core_"
_WORKER = "pyspark.worker"
_OF_TASKS = (
    _WORKER,
    "freezeframe.engine.plans.python_tasks",
    "freezeframe.store.table.keys",
    "freezeframe.store.updates.file_merge",
)
# Arrow imports it with the first array that a worker makes. Functions of a script may do without.
_OF_MERGES = "pandas"


def _leave_out_jar() -> None:
    sys.path[:] = [path for path in sys.path if _JAR not in path]
    for path in [path for path in sys.path_importer_cache if _JAR in path]:
        del sys.path_importer_cache[path]


_LOOK_SECONDS = 2.0


def _ends_with_job() -> bool:
    """Return whether this daemon serves the session of a job; then it ends with the job, as Spark ends it."""
    folder, session = os.environ.get(DATABASES_VARIABLE), os.environ.get("SPARK_JOB_ARTIFACT_UUID")
    job = _held_file(Path(folder), session) if folder and session else None
    if job is None:
        return False

    def look(*_: object) -> None:
        if try_lock(job):
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
    # A worker has no such timer, and what it does with that signal is its own. It would have the lock, too,
    # as long as it or a process that it starts lives.
    os.register_at_fork(after_in_child=lambda: (job.close(), signal.signal(signal.SIGALRM, signal.SIG_DFL)))
    return True


def _held_file(folder: Path, session: str) -> IO[str] | None:
    """Return the file of the job that the session belongs to, which its processes hold a lock of."""
    for file in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            opened = file.open()
            if session in opened.read():
                return opened
            opened.close()
    return None


def _import_ahead(names: Iterable[str]) -> None:
    """Import the modules of tasks, without a thread: none survives a fork."""
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    for name in names:
        with contextlib.suppress(ImportError):  # the task that needs it says so
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _leave_out_jar()
    is_jobs = _ends_with_job()
    # Spark starts daemons for the workers of its data sources, too: each asks few questions.
    if sys.argv[1:] == [_WORKER]:
        _import_ahead(_OF_TASKS if is_jobs else (*_OF_TASKS, _OF_MERGES))
    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call,unused-ignore]  # typed from 4.3 on
