"""The second control of the checker: Delta's own log store on a local disk loses acknowledged commits.

Four Java processes race for the same versions through the ``HDFSLogStore`` that Delta uses for
``file:`` paths. Its mutual exclusion holds inside one process only, so the checker must find losses.
"""

import importlib.util
import multiprocessing
import os
import sys
from pathlib import Path

import pytest

JARS = Path(__file__).parent.parent.parent / ".cache" / "jars"
CHECKER = Path(__file__).with_name("test_concurrent_commits.py")
WRITERS, VERSIONS = 4, 3_000
COMMIT_INFO = '{"commitInfo":{"timestamp":1}}'


def _write(folder, writer, start, results):
    """One process with a Java of its own: for each version in turn, try to be the one who creates it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.java_gateway import launch_gateway

    jars = os.pathsep.join(str(jar) for jar in JARS.glob("*.jar"))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory 512m --driver-class-path {jars} pyspark-shell"
    acknowledged = []
    try:
        java = launch_gateway().jvm
        configuration = java.org.apache.hadoop.conf.Configuration()
        store = java.io.delta.storage.HDFSLogStore(configuration)
        start.wait()
        for version in range(VERSIONS):
            name = f"{writer}-{version}"
            lines = java.java.util.ArrayList()
            lines.add(COMMIT_INFO)
            lines.add(f'{{"add":{{"path":"{name}.parquet","size":1,"partitionValues":{{}}}}}}')
            path = java.org.apache.hadoop.fs.Path(f"file:{folder}/{version:020d}.json")
            try:
                store.write(path, lines.iterator(), False, configuration)
            except Py4JJavaError:
                continue  # somebody was first
            acknowledged.append((version, name))
    finally:
        results.put(acknowledged)


def _checker():
    spec = importlib.util.spec_from_file_location("concurrent_commits", CHECKER)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_the_checker_finds_what_stock_delta_loses(tmp_path):
    """4 Java processes x 3,000 versions: acknowledged commits are gone, and the checker says which."""
    folder = tmp_path / "t" / "_delta_log"
    folder.mkdir(parents=True)
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(WRITERS), context.Queue()
    processes = [
        context.Process(target=_write, args=(str(folder), number, start, results))
        for number in range(WRITERS)
    ]
    for process in processes:
        process.start()
    acknowledged = [item for _ in processes for item in results.get(timeout=1500)]
    for process in processes:
        process.join(60)

    wrong = _checker().violations(tmp_path, acknowledged)

    assert len(list(folder.glob("*.json"))) == VERSIONS
    assert any(found.startswith("lost") for found in wrong), "the checker found nothing, so it is at fault"
