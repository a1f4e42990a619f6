"""Updates of several streams in one call: as one after the other, but Spark is asked once."""

import logging
from functools import partial
from types import SimpleNamespace

import pandas as pd
import pytest
from pyspark.sql.connect.logging import logger
from tests import given

from freezeframe.errors import InvalidOption, NullKeyError
from freezeframe.storage import LocalStorage
from freezeframe.store.transaction.staged import TOGETHER_MAX, run_together

NAMES = [f"Stream{number}" for number in range(10)]


def test_works_are_done_in_groups_and_answered_in_order():
    """More than may be done at once: each group asks once, and an error is an answer among others."""
    asked = []

    def run(calls):
        asked.append(len(calls))
        return [call() for call in calls]

    def work(number):
        def done(engine):
            if number == 1:
                raise InvalidOption("no")
            return engine.run([partial(int, number)])[0]

        return done

    count = TOGETHER_MAX + 3
    engine = SimpleNamespace(run=run)
    outcomes = run_together(engine, [work(number) for number in range(count)])
    assert isinstance(outcomes.pop(1), InvalidOption)
    assert [0, *range(2, count)] == outcomes
    assert asked == [TOGETHER_MAX - 1, 3]


def frames(value, names=NAMES[:4]):
    """For each stream twenty rows, of which the last is new at each value."""
    ids = [*range(19), 100 + value]
    return {name: pd.DataFrame({"Id": ids, "Value": f"{name} {value}"}) for name in names}


@pytest.fixture
def queries(monkeypatch):
    """What Spark's own client notes of each query that it sends."""
    noted = []

    class Notes(logging.Handler):
        def emit(self, record):
            if record.getMessage().startswith("Executing plan"):
                noted.append(record)

    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logger, "handlers", [Notes()])
    monkeypatch.setattr(logger, "propagate", False)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield noted
    logger.setLevel(level)


@pytest.mark.spark
def test_a_job_updates_streams_together_as_it_does_one_by_one(spark_engine, asked_spark, tmp_path, queries):
    """The same receipts and rows, and one commit; the searches of all are one query."""
    tenant, other = (given.tenant(LocalStorage(tmp_path / name), spark_engine) for name in "ab")
    receipts = {}
    for value in range(3):  # the second time Spark is also asked whether it sees the folder
        with other.job() as job:
            for name, frame in frames(value).items():
                receipts[name] = job.stream(name).update(frame, key="Id")
        with tenant.job() as job:
            queries.clear()
            together = job.update(frames(value), key="Id" if not value else None)
            asked = len(queries)
        assert [(r.inserted, r.updated, r.version) for r in receipts.values()] == [
            (r.inserted, r.updated, r.version) for r in together.values()
        ]
    assert asked == 1
    assert NAMES[:4] == list(together)
    assert (tenant.version, len(job.receipt.streams)) == (2, 4)
    assert [together["Stream3"].inserted, together["Stream3"].updated] == [1, 19]
    for name in together:
        assert (
            other.stream(name).read(as_="arrow").to_pylist()
            == tenant.stream(name).read(as_="arrow").to_pylist()
        )


def test_a_job_that_comes_again_is_answered_again():
    """The streams' order is part of what was passed; the same call is told the same receipts."""
    tenant = given.tenant()
    for value in range(2):
        told = []
        for _ in range(2):
            with tenant.job(f"job {value}") as job:
                told.append(job.update(frames(value), key="Id"))
        assert [item.inserted for item in told[0].values()] == [item.inserted for item in told[1].values()]
        assert value == tenant.version


def test_keys_can_differ_and_one_mistake_ends_the_job():
    """A key for each stream by its name; rows that cannot be taken leave nothing of the call."""
    tenant = given.tenant()
    good, bad = pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"a": [None], "b": [2]})
    with pytest.raises(NullKeyError), tenant.job() as job:
        job.update({"One": good, "Two": bad}, key="a")
    assert tenant.streams() == ()
    with tenant.job() as job:
        told = job.update({"One": good, "Two": bad}, key={"One": ["a"], "Two": ["b"]})
    assert [receipt.inserted for receipt in told.values()] == [1, 1]
    assert tenant.streams() == ("One", "Two")
