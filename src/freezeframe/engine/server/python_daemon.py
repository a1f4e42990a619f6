"""Start the Python workers of a server by PySpark's own daemon, without a jar on its module path.

Spark puts the jar of its core there. It holds no module, and each task reads the directories of all archives
of the path again, which takes 60 ms.
"""

import sys

_JAR = "spark-core_"


def _leave_out_jar() -> None:
    sys.path[:] = [path for path in sys.path if _JAR not in path]
    for path in [path for path in sys.path_importer_cache if _JAR in path]:
        del sys.path_importer_cache[path]


if __name__ == "__main__":
    _leave_out_jar()
    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call,unused-ignore]  # typed from 4.3 on
