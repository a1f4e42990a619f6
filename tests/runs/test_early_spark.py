"""The warm server is started while a script begins, where the job's updates will need it."""

import threading

import pyarrow as pa
import pytest

from freezeframe.runs.script_spark import script_spark
from freezeframe.service.access.arrow_engine import RowCounter
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant


@pytest.fixture
def tenant():
    storage = MemoryStorage()
    return Tenant(storage, RowCounter(storage), Settings())


def begun(tmp_path, tenant, environment=None, **settings):
    """Whether a start was begun; it has no time to succeed."""
    place = tmp_path / "state"
    asked = Settings(**{"engine": "spark", "state_dir": place, **settings})
    hurried = asked.model_copy(update={"spark_start_seconds": 0})
    script = tmp_path / "etl.py"
    script.write_text("")
    with script_spark(script, hurried, environment or {}, lambda _: None, tenant):
        pass
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon and "_start" in thread.name:
            thread.join()
    return any(place.glob("spark-*/launch.json"))


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
