"""An update larger than Spark's memory: it goes over the disk, and ends."""

import pytest
from tests.spark_events import events, logging_events

from freezeframe.engine.spark import SparkEngine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

ROWS = 2_500_000
HEAP, HEAP_BYTES = "600m", 600 * 2**20
TEXT_BYTES = 512


def frame(session, update):
    """Rows of half a kilobyte that do not compress to nothing, each with another value than before."""
    digest = f"sha2(concat(id, ' {update}'), 512)"
    return session.range(ROWS).selectExpr("id AS Id", f"repeat({digest}, {TEXT_BYTES // 128}) AS Text")


@pytest.mark.timeout(3000)
def test_an_update_larger_than_sparks_memory_goes_over_the_disk(tmp_path, monkeypatch):
    """1.3 GB <- as many, by a server of 600 MB: all rows are changed, and tasks have spilled."""
    assert ROWS * TEXT_BYTES > 2 * HEAP_BYTES
    monkeypatch.setenv("SPARK_CONF_DIR", str(logging_events(tmp_path)))
    settings = Settings(spark="local", spark_memory=HEAP, state_dir=tmp_path / "state")
    engine = SparkEngine(settings)
    try:
        stream = Tenant(LocalStorage(tmp_path / "data"), engine, settings).stream("Account")
        assert stream.update(frame(engine._work.connection().session, 0), key="Id").inserted == ROWS
        assert stream.update(frame(engine._work.connection().session, 1)).updated == ROWS
    finally:
        engine.close()
    # One log: no server died and was started again.
    metrics = [event["Task Metrics"] for event in events(tmp_path, "TaskEnd") if event.get("Task Metrics")]
    spilled_bytes = sum(metric["Disk Bytes Spilled"] for metric in metrics)
    assert spilled_bytes > 0
    assert stream.read(columns=["Id"], as_="arrow").num_rows == ROWS
