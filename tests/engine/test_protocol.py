"""Tasks of an engine, and engines that delegate."""

import functools
import subprocess
import sys
import threading
import time

import pytest

from freezeframe.engine.protocol import (
    DeferredEngine,
    QueryBatcher,
    WindowTask,
    WriteTask,
)
from freezeframe.errors import CorruptData, EngineUnavailable, InvalidOption

NOTHING = {"type": "struct", "fields": []}
KEY = {"type": "struct", "fields": [{"name": "Id", "type": "string", "nullable": True, "metadata": {}}]}


def test_files_that_spark_cannot_tell_apart_are_refused():
    """It names a row's file without its folder."""
    with pytest.raises(InvalidOption, match="same name"):
        WindowTask(("a/x.parquet", "b/x.parquet"), KEY, (), KEY, KEY, "Id > '1'")


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
    window = WindowTask((), KEY, (), KEY, KEY, "Id > '1'")
    engine.write_batch("frame", landing)
    engine.run([len])
    engine.rows_inside(window)
    engine.read(("/a.parquet",), NOTHING, {"/a.parquet": [1]}, like="frame")
    engine.require_shared("/folder")
    assert [
        ("write_batch", "frame", landing),
        ("run", [len]),
        ("rows_inside", window),
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


@pytest.mark.parametrize(
    ("modules", "loaded"),
    [
        ("freezeframe.engine.protocol, freezeframe.store.tenant", b"set()\n"),
        ("freezeframe.engine.plans.python_tasks, freezeframe.script.formats.csv_rows", b"set()\n"),
        ("freezeframe.engine.data_source, freezeframe.script.spark_format", b"{'pyspark'}\n"),
    ],
    ids=["the store", "Spark's Python workers", "those of the Spark format"],
)
def test_nothing_loads_spark_before_it_is_needed(modules, loaded):
    """Reading a snapshot pays nothing for the engine, a worker nothing for the client of Spark Connect."""
    code = f"import sys, freezeframe, {modules}; print({{'pyspark', 'grpc', 'pandas'}} & set(sys.modules))"
    assert loaded == subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout


class Numbers:
    """An engine that runs calls here, and remembers the answers of each query."""

    def __init__(self, failure=None):
        self.shared, self.ran = [], []
        self._failure = failure

    def run(self, calls):
        self.ran.append(sorted(call() for call in calls))
        if self._failure and (len(calls) > 1 or (isinstance(self._failure, CorruptData) and calls[0]() == 1)):
            raise self._failure
        return [call() for call in calls]

    def require_shared(self, folder):
        self.shared.append(folder)


def meet(engine, *works):
    """What became of each of the works, done at once: its answer, or its error."""
    meeting, told = QueryBatcher(engine, len(works)), {}

    def one(number, work):
        try:
            with meeting.party():
                told[number] = work(meeting)
        except Exception as error:  # noqa: BLE001 - the answer of this one
            told[number] = type(error)

    threads = [threading.Thread(target=one, args=numbered, daemon=True) for numbered in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [told[number] for number in range(len(works))]


def finds(*numbers):
    """A work that has something computed by Spark's workers once or more often."""
    return lambda meeting: [meeting.run([functools.partial(int, number)])[0] for number in numbers]


def test_what_all_ask_for_is_asked_at_once():
    """One query for five, and each has its own answer."""
    engine = Numbers()
    assert [[n] for n in range(5)] == meet(engine, *(finds(n) for n in range(5)))
    assert engine.ran == [[0, 1, 2, 3, 4]]


def test_who_needs_no_query_is_not_waited_for():
    """It leaves, whether it came to an end or failed."""

    def fails(_meeting):
        raise CorruptData("damaged")

    engine = Numbers()
    assert [[1], [], CorruptData, [2]] == meet(engine, finds(1), finds(), fails, finds(2))
    assert engine.ran == [[1, 2]]


def test_who_asks_again_is_asked_for_with_those_that_are_left():
    """Rounds of questions, each as soon as everybody who is there waits."""
    engine = Numbers()
    assert meet(engine, finds(1, 2, 3), finds(4), finds(5, 6)) == [[1, 2, 3], [4], [5, 6]]
    assert engine.ran == [[1, 4, 5], [2, 6], [3]]


def test_a_meeting_that_is_over_keeps_nobody_waiting():
    """A step that is carried out again, on another's commit, asks for itself."""
    engine = Numbers()
    meeting = QueryBatcher(engine, 1)
    with meeting.party():
        pass
    assert [finds(7)(meeting), finds(8)(meeting)] == [[7], [8]]
    assert engine.ran == [[7], [8]]


def test_a_call_that_fails_fails_alone():
    """The common query is spoilt by one damaged file: each asks for itself, and one has the error."""
    engine = Numbers(CorruptData("damaged"))
    assert [[0], CorruptData, [2]] == meet(engine, finds(0), finds(1), finds(2))
    assert sorted(engine.ran[1:]) == [[0], [1], [2]]


def test_a_server_that_is_gone_is_gone_for_all():
    """Nobody asks it once more."""
    engine = Numbers(EngineUnavailable("gone"))
    assert [EngineUnavailable] * 3 == meet(engine, finds(0), finds(1), finds(2))
    assert len(engine.ran) == 1


def test_an_unforeseen_error_leaves_nobody_waiting():
    """Who asked for all has it; the others ask for themselves."""
    told = meet(Numbers(ZeroDivisionError()), finds(0), finds(1))
    assert told.count(ZeroDivisionError) == 1
    assert len([answer for answer in told if answer in ([0], [1])]) == 1


@pytest.mark.parametrize("times", [1, 3])
def test_whether_files_are_shared_is_the_engines_to_say(times):
    """One asks after the other: the engine remembers the answer."""
    engine = Numbers()
    meet(engine, *[lambda meeting: meeting.require_shared("/folder")] * times)
    assert ["/folder"] * times == engine.shared


@pytest.mark.parametrize("works", [1, 2])
def test_where_no_worker_is_known_nothing_is_run(works):
    engine = Numbers()
    engine.run = lambda *_: None
    assert meet(engine, *[lambda meeting: meeting.run([len])] * works) == [None] * works
