"""Start the Python workers of a server of this machine: PySpark's own daemon, with two ways around waits.

Spark puts the jar of its core on the module path. It holds no module, and each task reads the directories of
all archives of the path again: 60 ms. The socket to the workers is in the folder in which the server runs,
whose whole path would be too long for a socket's name.
"""

import os
import sys

_JAR = "spark-core_"
_SOCKETS = "PYTHON_WORKER_FACTORY_SOCK_DIR"  # PySpark's own variable


def _prepare() -> None:
    sys.path[:] = [path for path in sys.path if _JAR not in path]
    for path in [path for path in sys.path_importer_cache if _JAR in path]:
        del sys.path_importer_cache[path]
    if _SOCKETS in os.environ:
        os.environ[_SOCKETS] = f"/proc/{os.getppid()}/cwd"


if __name__ == "__main__":
    _prepare()
    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call]
