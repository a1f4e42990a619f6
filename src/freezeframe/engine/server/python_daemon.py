"""Start the Python workers of a server by PySpark's own daemon, which has imported what tasks of ours import.

Spark puts the jar of its core on the module path. It holds no module, and each task reads the directories of
all archives of the path again, which takes 60 ms: it is left out.

A worker is a fork of the daemon. What is imported before is imported once, shares its memory, and is left out
of the collection of garbage that PySpark has each worker do after each task.
"""

import contextlib
import gc
import importlib
import os
import sys

_JAR = "spark-core_"
_WORKER = "pyspark.worker"
_OF_TASKS = (
    _WORKER,
    "freezeframe.engine.plans.python_tasks",
    "freezeframe.store.table.keys",
    "freezeframe.store.updates.file_merge",
)


def _leave_out_jar() -> None:
    sys.path[:] = [path for path in sys.path if _JAR not in path]
    for path in [path for path in sys.path_importer_cache if _JAR in path]:
        del sys.path_importer_cache[path]


def _import_ahead() -> None:
    """Import the modules of tasks, without a thread: none survives a fork."""
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    for name in _OF_TASKS:
        with contextlib.suppress(ImportError):  # the task that needs it says so
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _leave_out_jar()
    # Spark starts daemons for the workers of its data sources, too: each asks few questions.
    if sys.argv[1:] == [_WORKER]:
        _import_ahead()
    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call,unused-ignore]  # typed from 4.3 on
