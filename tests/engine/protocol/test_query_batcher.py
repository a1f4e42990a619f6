"""Several searches that become one question."""

import threading

import pyarrow as pa
import pytest

from freezeframe.engine.protocol import FindTask, QueryBatcher
from freezeframe.errors import CorruptData, EngineUnavailable

KEY = {"type": "struct", "fields": [{"name": "Id", "type": "string", "nullable": True, "metadata": {}}]}


def task(number):
    return FindTask((), KEY, KEY, (), rows=number)


class Numbers:
    """An engine whose answer is the number of rows asked for, and which remembers the questions."""

    def __init__(self, failure=None):
        self.together, self.alone, self.shared = [], [], []
        self._failure = failure

    def find(self, task):
        self.alone.append(task.rows)
        if isinstance(self._failure, CorruptData) and task.rows == 1:
            raise self._failure
        return pa.table({"row": [task.rows]})

    def find_all(self, tasks):
        self.together.append(sorted(task.rows for task in tasks))
        if self._failure:
            raise self._failure
        return tuple(pa.table({"row": [task.rows]}) for task in tasks)

    def require_shared(self, folder):
        self.shared.append(folder)


def meet(engine, *works):
    """What became of each of the works, done at once: its answer, or its error."""
    meeting, told = QueryBatcher(engine, len(works)), {}

    def one(number, work):
        try:
            with meeting.party():
                told[number] = work(meeting)
        except (CorruptData, EngineUnavailable) as error:
            told[number] = type(error)

    threads = [threading.Thread(target=one, args=numbered, daemon=True) for numbered in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [told[number] for number in range(len(works))]


def finds(*numbers):
    """A work that looks for something once or more often."""
    return lambda meeting: [meeting.find(task(number))["row"][0].as_py() for number in numbers]


def test_what_all_look_for_is_asked_at_once():
    """One question for five, and each has its own answer."""
    engine = Numbers()
    assert [[n] for n in range(5)] == meet(engine, *(finds(n) for n in range(5)))
    assert (engine.together, engine.alone) == ([[0, 1, 2, 3, 4]], [])


def test_who_needs_no_search_is_not_waited_for():
    """It leaves, whether it came to an end or failed."""

    def fails(_meeting):
        raise CorruptData("damaged")

    engine = Numbers()
    assert [[1], [], CorruptData, [2]] == meet(engine, finds(1), finds(), fails, finds(2))
    assert engine.together == [[1, 2]]


def test_who_searches_again_is_asked_for_with_those_that_are_left():
    """Rounds of questions, each as soon as everybody who is there waits."""
    engine = Numbers()
    assert meet(engine, finds(1, 2, 3), finds(4), finds(5, 6)) == [[1, 2, 3], [4], [5, 6]]
    assert (engine.together, engine.alone) == ([[1, 4, 5], [2, 6]], [3])


def test_a_meeting_that_is_over_keeps_nobody_waiting():
    """A step that is carried out again, on another's commit, asks for itself."""
    engine = Numbers()
    meeting = QueryBatcher(engine, 1)
    with meeting.party():
        pass
    assert [finds(7)(meeting), finds(8)(meeting)] == [[7], [8]]
    assert (engine.together, engine.alone) == ([], [7, 8])


def test_a_search_that_fails_fails_alone():
    """The common question is spoilt by one damaged file: each asks for itself, and one has the error."""
    engine = Numbers(CorruptData("damaged"))
    assert [[0], CorruptData, [2]] == meet(engine, finds(0), finds(1), finds(2))
    assert sorted(engine.alone) == [0, 1, 2]


def test_a_server_that_is_gone_is_gone_for_all():
    """Nobody asks it once more."""
    engine = Numbers(EngineUnavailable("gone"))
    assert [EngineUnavailable] * 3 == meet(engine, finds(0), finds(1), finds(2))
    assert engine.alone == []


def test_an_unforeseen_error_leaves_nobody_waiting():
    """Who asked for all has it; the others ask for themselves."""
    engine = Numbers(ZeroDivisionError())
    meeting, told = QueryBatcher(engine, 2), []

    def one(number):
        try:
            with meeting.party():
                told.append(finds(number)(meeting))
        except ZeroDivisionError as error:
            told.append(type(error))

    threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert told.count(ZeroDivisionError) == 1
    assert len([answer for answer in told if answer in ([0], [1])]) == 1


@pytest.mark.parametrize("times", [1, 3])
def test_whether_files_are_shared_is_the_engines_to_say(times):
    """One asks after the other: the engine remembers the answer."""
    engine = Numbers()
    meet(engine, *[lambda meeting: meeting.require_shared("/folder")] * times)
    assert ["/folder"] * times == engine.shared


def test_who_has_tasks_run_is_not_waited_for():
    """The others ask together without it, and its answers are those of the engine."""
    engine, asked = Numbers(), threading.Event()
    engine.run = lambda calls: [call() for call in calls]

    def wait_for_the_others():
        return asked.wait(60)

    def find(meeting):
        found = meeting.find(task(7))["row"][0].as_py()
        asked.set()
        return found

    assert meet(engine, lambda meeting: meeting.run([wait_for_the_others]), find) == [[True], 7]
