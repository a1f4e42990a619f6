"""Python calls as tasks of Spark: answers, rows and errors come back as they are."""

import functools
import gc
import importlib
import operator
import os
import sys

import pyarrow as pa
import pytest

import freezeframe
from freezeframe.engine.plans.python_tasks import answers, frame_of, workers_of
from freezeframe.errors import SetupError, StorageNotShared
from freezeframe.script.formats.input_parts import InputPart

pytestmark = pytest.mark.spark


def test_each_call_is_a_task_and_answers_in_its_place(spark_session):
    """However many there are; none needs no task."""
    calls = [functools.partial(operator.mul, number, 10) for number in range(5)]
    assert answers(spark_session, calls) == [0, 10, 20, 30, 40]
    assert answers(spark_session, []) == []
    assert frame_of(spark_session, [], pa.schema([("a", pa.int64())])).count() == 0


def test_calls_are_one_request(spark_session, monkeypatch):
    """Nothing is asked before: what a small update asks Spark for is the answer."""
    asked = []
    monkeypatch.setattr(spark_session.client, "_analyze", lambda *method, **_: asked.append(method))

    assert [answers(spark_session, [functools.partial(int, 7)]), asked] == [[7], []]


def test_workers_tell_their_version_and_user(spark_session):
    """Those of our server are as this process is."""
    assert (freezeframe.__version__, os.getuid()) == workers_of(spark_session)


def test_few_tasks_share_many_calls(spark_session):
    """Answers are in the order of the calls, whichever task gave them."""
    calls = [functools.partial(int, number) for number in range(7)]
    assert answers(spark_session, calls, 2) == [*range(7)]
    assert len(set(answers(spark_session, [os.getpid] * 4, 1))) == 1


def test_workers_of_our_server_read_no_jar(spark_session):
    """It would cost each task of a Python function, a script's too, 60 ms."""
    assert "spark-core" not in str(answers(spark_session, [functools.partial(getattr, sys, "path")]))


def test_workers_of_our_server_are_forked_with_their_imports(spark_session):
    """They import nothing of ours themselves, and do not look through it for garbage after each task."""
    assert answers(spark_session, [gc.get_freeze_count])[0] > 10_000


def test_an_error_of_a_call_is_raised_as_it_was(spark_session, tmp_path):
    """Its class and details cross the processes."""
    part = InputPart(tmp_path / "absent.csv", 0, 1, 1, 1, 1)
    with pytest.raises(StorageNotShared, match="no file") as caught:
        answers(spark_session, [part.require_unchanged])
    assert str(part.file) == caught.value.details["file"]


def test_workers_without_freezeframe_are_told(spark_session, tmp_path, monkeypatch):
    """A module of the product that a worker does not find is a matter of its set-up."""
    (tmp_path / "freezeframe_elsewhere.py").write_text("def call():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    call = importlib.import_module("freezeframe_elsewhere").call
    with pytest.raises(SetupError, match="workers cannot run"):
        answers(spark_session, [call])


def test_the_engine_runs_calls_on_its_own_server(spark_engine):
    """Its workers have this process's Python and see its files."""
    assert spark_engine.run([functools.partial(operator.add, 1, 2)]) == [3]
