"""The hash of a job's input: of values and options, by the way in which it was first made."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from freezeframe.engine.protocol.table_engine import NOTHING
from freezeframe.errors import IdempotencyConflict
from freezeframe.identifiers import StreamName
from freezeframe.storage import LocalStorage
from freezeframe.store.model.update_options import Update
from freezeframe.store.tenant import Tenant
from freezeframe.store.transaction.input_hash import InputHash
from freezeframe.store.updates.source import Incoming

ROWS = pa.table(
    {
        "Id": ["1", "2"],
        "n": [1, None],
        "f": [0.5, None],
        "at": [None, dt.datetime(2026, 11, 22, tzinfo=dt.UTC)],
        "d": [decimal.Decimal("1.50"), None],
    }
)
FIRST_FORMAT = "33d65b4288c09569aca167282f30e177896ed3e1f210356619e7f18db16ab5e8"
SECOND_FORMAT = "2:769ae4a130bb8f2a5e46ee71d5ac7e62517d291aa931eaf3e45d43a7e2b1bb92"


def hashed(memory, recorded=None, rows=ROWS):
    found = InputHash(memory, NOTHING, recorded)
    update = Update(("Id",), nulls="overwrite")
    found.add_update(StreamName("Lead"), update, Incoming(rows, len(rows), 0))
    found.add_file(
        "config.json", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", sealed=False
    )
    return found.digest


def test_a_hash_of_the_first_format_is_made_again(memory):
    """A job that was committed with it is recognised, whatever options there are by now."""
    assert hashed(memory, FIRST_FORMAT) == FIRST_FORMAT


def test_the_hash_stays_as_it_is(memory):
    """A job committed today is recognised by later releases: this literal may not change."""
    assert hashed(memory) == hashed(memory, SECOND_FORMAT) == SECOND_FORMAT


def test_widths_of_numbers_do_not_count(memory):
    """An integer column that is narrower elsewhere holds the same rows."""
    narrow = ROWS.set_column(1, "n", ROWS["n"].cast(pa.int16()))

    assert hashed(memory, rows=narrow) == hashed(memory)
    assert hashed(memory, rows=narrow.set_column(1, "n", pa.array([2, None], pa.int16()))) != hashed(memory)


FRAME = pd.DataFrame(
    {
        "Id": ["3", "1", "2"],
        "n": pd.array([1, None, 3], "Int64"),
        "f": [0.5, -0.0, np.nan],
        "at": pd.to_datetime(["2026-11-22T12:00Z", None, "1969-12-31T23:59:59.999999Z"], format="ISO8601"),
        "t": ["ü", None, ""],
    }
)


@pytest.mark.spark
def test_a_job_is_the_same_whatever_frame_brings_its_rows(
    tmp_path, spark_engine, spark_session, spark_settings
):
    """pandas first, then Arrow and Spark, in another order; other rows are refused for each."""
    tenant = Tenant(LocalStorage(tmp_path), spark_engine, spark_settings)
    arrow = pa.Table.from_pandas(FRAME, preserve_index=False)
    with tenant.job("j") as job:
        job.stream("Lead").update(FRAME, key="Id")
    frame = spark_session.createDataFrame(arrow)

    for same in (arrow.take([2, 0, 1]), frame, frame.repartition(2)):
        with tenant.job("j") as job:
            job.stream("Lead").update(same, key="Id")
        assert job.receipt.repeated

    with pytest.raises(IdempotencyConflict), tenant.job("j") as job:
        job.stream("Lead").update(frame.where("Id <> '3'"), key="Id")
