"""An engine that is made when it is first needed."""

import subprocess
import sys
import threading
import time

import pytest

from freezeframe.engine.protocol import DeferredEngine, FindTask, MergeTask, WriteTask
from freezeframe.errors import EngineUnavailable

NOTHING = {"type": "struct", "fields": []}
KEY = {"type": "struct", "fields": [{"name": "Id", "type": "string", "nullable": True, "metadata": {}}]}
TASK = MergeTask((), NOTHING, (), NOTHING, NOTHING, (), "overwrite", write=False)


class Recorder:
    """An engine that remembers what it was asked."""

    def __init__(self, asked):
        self.asked = asked

    def __getattr__(self, name):
        return lambda *arguments, **named: self.asked.append((name, *arguments, *named.values()))


def test_nothing_is_made_before_the_first_use():
    """Making and closing a deferred engine needs no engine."""
    made = []
    engine = DeferredEngine(lambda: made.append(1))
    engine.close()
    assert made == []


def test_every_call_reaches_the_one_engine():
    """Each method hands its arguments on; the engine is made once."""
    asked, made = [], []

    def make():
        made.append(1)
        return Recorder(asked)

    engine, landing = DeferredEngine(make), WriteTask("/out")
    search = FindTask((), KEY, KEY, ())
    engine.merge(TASK)
    engine.write_batch("frame", landing)
    engine.find(search)
    engine.count_found(search)
    engine.read(("/a.parquet",), NOTHING, {"/a.parquet": [1]}, like="frame")
    engine.require_shared("/folder")
    assert [
        ("merge", TASK),
        ("write_batch", "frame", landing),
        ("find", search),
        ("count_found", search),
        ("read", ("/a.parquet",), NOTHING, {"/a.parquet": [1]}, "frame"),
        ("require_shared", "/folder"),
    ] == asked
    assert made == [1]


def test_after_close_the_next_call_makes_another():
    """A closed engine is closed once and not used again."""
    asked = []
    engine = DeferredEngine(lambda: Recorder(asked))
    engine.require_shared("/a")
    engine.close()
    engine.close()
    engine.require_shared("/b")
    assert asked == [("require_shared", "/a"), ("close",), ("require_shared", "/b")]


def test_a_failed_start_is_tried_again():
    """An engine that could not be made is not an engine: the next call makes it."""
    asked, failures = [], [EngineUnavailable("not yet")]

    def make():
        if failures:
            raise failures.pop()
        return Recorder(asked)

    engine = DeferredEngine(make)
    with pytest.raises(EngineUnavailable, match="not yet"):
        engine.require_shared("/a")
    engine.require_shared("/a")
    assert asked == [("require_shared", "/a")]


def test_threads_share_the_one_that_is_made():
    """Threads that need the engine at the same moment get the same one."""
    made = []

    def make():
        made.append(1)
        time.sleep(0.05)
        return Recorder([])

    engine = DeferredEngine(make)
    threads = [threading.Thread(target=engine.require_shared, args=("/a",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_to_import_it_loads_no_spark():
    """Reading a snapshot pays nothing for the engine."""
    code = "import sys, freezeframe, freezeframe.engine.protocol; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"
