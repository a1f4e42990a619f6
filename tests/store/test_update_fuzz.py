"""Random updates with extreme values, by each engine: rows, counts, changes and versions follow the rules."""

import math
import random
from dataclasses import replace

import pytest
from tests.store.update_fuzz import Chances, prove
from tests.store.updates.test_merge import BY_FILE, RUNS, TINY, Tasks, limit

from freezeframe.engine.plans.python_tasks import spark_ddl
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine

pytestmark = pytest.mark.long

UPDATES = 8
"""In each history."""


def fuzzed(tenant, seed, updates_min, chances):
    """Histories of one stream each, until there were so many updates; how many there were."""
    numbers = range(math.ceil(updates_min / UPDATES))
    for number in numbers:
        prove(tenant.stream(f"s{number}"), random.Random(f"{seed}/{number}"), UPDATES, chances)
    return len(numbers) * UPDATES


def in_process(seed, updates_min):
    storage = MemoryStorage()
    engine, limits = [(ArrowEngine(), {}), (Tasks(), TINY), (ArrowEngine(), RUNS)][seed // 2 % 3]
    named = "spark" if limits is TINY else "auto"
    tenant = Tenant(storage, engine, Settings(engine=named, vectors_from_bytes=seed % 2 * 2**20))
    with pytest.MonkeyPatch.context() as patch:
        limit(patch, limits)
        return fuzzed(tenant, seed, updates_min, Chances())


def by_spark(engine, folder, seed, updates_min):
    settings = Settings(vectors_from_bytes=seed % 2 * 2**20, engine="spark")
    tenant = Tenant(LocalStorage(folder), engine, settings)
    with pytest.MonkeyPatch.context() as patch:
        limit(patch, {} if seed % 2 else BY_FILE)
        return fuzzed(tenant, seed, updates_min, Chances())


def of_spark_frames(engine, session, folder, seed, updates_min):
    """The same histories by each engine, their rows in Spark frames of one or several partitions."""

    def frame(step):
        stored = {name: replace(kind, came=kind.stored) for name, kind in step.kinds.items()}
        table = replace(step, kinds=stored).frame()
        rows = session.createDataFrame(table, spark_ddl(table.schema))
        return rows.repartition(len(step.rows)) if len(step.rows) in {2, 3} else rows

    chances = Chances(frame=frame, is_unordered=True)
    counts = []
    for name in ("spark", "auto"):
        settings = Settings(vectors_from_bytes=seed % 2 * 2**20, engine=name)
        tenant = Tenant(LocalStorage(folder / name), engine, settings)
        counts.append(fuzzed(tenant, seed, updates_min, chances))
    return min(counts)


@pytest.mark.parametrize("seed", range(6))
def test_updates_in_this_process_follow_the_rules(seed):
    """Updates of every type and size, far dates, signed zeros and broken text among the values."""
    assert 16 <= in_process(seed, 16)


@pytest.mark.spark
@pytest.mark.parametrize("seed", [0, 1])
def test_updates_by_spark_follow_the_rules(spark_engine, tmp_path, seed):
    """The same where Spark looks for keys, and merges: each file is a task or several, or as it is chosen."""
    assert 8 <= by_spark(spark_engine, tmp_path, seed, 8)


@pytest.mark.spark
def test_spark_frames_of_nested_values_follow_the_rules(spark_engine, spark_session, tmp_path):
    """By Spark and in this process alike, with lists and maps that no row has an entry in, at any depth."""
    assert 8 <= of_spark_frames(spark_engine, spark_session, tmp_path, 0, 8)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(10, 20))
def test_updates_in_this_process_follow_the_rules_for_long(seed):
    """The same, ten thousand times."""
    assert 1000 <= in_process(seed, 1000)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(10, 20))
def test_updates_by_spark_follow_the_rules_for_long(spark_engine, tmp_path, seed):
    """The same, ten thousand times."""
    assert 1000 <= by_spark(spark_engine, tmp_path, seed, 1000)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(10, 20))
def test_spark_frames_of_nested_values_follow_the_rules_for_long(spark_engine, spark_session, tmp_path, seed):
    """The same, five thousand times."""
    assert 500 <= of_spark_frames(spark_engine, spark_session, tmp_path, seed, 500)
