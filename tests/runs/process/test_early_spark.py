"""The warm server is started while a script begins, where the job's updates will need it."""

import threading

import pyarrow as pa
import pytest
from tests import given

from freezeframe.runs.process.environment import script_spark, start_beside_runner
from freezeframe.settings import Settings


@pytest.fixture
def tenant():
    return given.tenant()


def hurried(tmp_path, **settings):
    """Settings with which a start has no time to succeed."""
    asked = Settings(**{"engine": "spark", "state_dir": tmp_path / "state", **settings})
    return asked.model_copy(update={"spark_start_seconds": 0})


def begun(tmp_path, tenant, environment=None, **settings):
    """Whether a start was begun."""
    script = tmp_path / "etl.py"
    script.write_text("")
    with script_spark(script, hurried(tmp_path, **settings), environment or {}, lambda _: None, tenant):
        pass
    return is_ordered(tmp_path)


def is_ordered(tmp_path):
    """Whether a server was ordered in a thread, which is waited for."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon and "_start" in thread.name:
            thread.join()
    return any((tmp_path / "state").glob("spark-*/launch.json"))


def test_a_tenant_with_rows_has_spark_started(tmp_path, tenant):
    """Its updates meet stored rows; that the start fails is no business of the thread's."""
    tenant.stream("Lead").update(pa.table({"Id": [1]}), "Id")

    assert begun(tmp_path, tenant)


def test_nothing_is_started_that_no_update_asks_for(tmp_path, tenant):
    """A first load needs no Spark, nor does ``auto``; a server that is named elsewhere is not ours."""
    assert not begun(tmp_path, tenant)
    tenant.stream("Lead").update(pa.table({"Id": [1]}), "Id")
    assert not begun(tmp_path, tenant, engine="auto")
    assert not begun(tmp_path, tenant, spark="local")
    assert not begun(tmp_path, tenant, environment={"SPARK_REMOTE": "sc://elsewhere"})


def test_spark_is_started_beside_the_runner_for_a_script_that_speaks_to_it(tmp_path, monkeypatch):
    """Not for another script, nor where its server may need another Python, nor for one elsewhere."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    script = tmp_path / "etl.py"
    start_beside_runner(script, hurried(tmp_path), lambda _: None)
    script.write_text("import pandas")
    start_beside_runner(script, hurried(tmp_path), lambda _: None)
    script.write_text("import pyspark")
    start_beside_runner(script, hurried(tmp_path, spark="sc://elsewhere"), lambda _: None)
    (tmp_path / "requirements.txt").touch()
    start_beside_runner(script, hurried(tmp_path), lambda _: None)
    assert not is_ordered(tmp_path)

    (tmp_path / "requirements.txt").unlink()
    start_beside_runner(script, hurried(tmp_path), lambda _: None)
    assert is_ordered(tmp_path)
