"""Columns without any value: whatever type a frame gives them, the stream's own type stays."""

import pandas as pd
import pyarrow as pa
import pytest
from tests import given

from freezeframe.script.tenants import shared_engine
from freezeframe.storage import LocalStorage

STORED = pa.table(
    {
        "Id": ["1", "2"],
        "n": [1, 2],
        "when": pa.array([0, 1], pa.timestamp("us", "UTC")),
        "part": [{"a": 1}, {"a": 2}],
        "tags": [["x"], []],
    }
)
NAMES = ("n", "when", "part", "tags")
IDLE = {
    "text": {name: pa.nulls(2, pa.string()) for name in NAMES},
    "numbers": {name: pa.nulls(2, pa.float64()) for name in NAMES},
    "structs": {name: pa.nulls(2, pa.struct([("z", pa.bool_())])) for name in NAMES},
}


@pytest.mark.parametrize("kind", IDLE)
def test_an_upsert_takes_them_in_the_stored_type(open_finding, local, kind):
    """New rows have nulls, old values stay or go as ``nulls`` says, and no type changes."""
    stream = open_finding(local, streams={"Account": STORED}).stream("Account")
    types = stream.schema
    stream.update(pa.table({"Id": ["2", "3"], **IDLE[kind]}))

    kept, changed, new = stream.read(as_="arrow").to_pylist()
    assert (STORED.to_pylist()[:2], dict.fromkeys(NAMES)) == (
        [kept, changed],
        {name: new[name] for name in NAMES},
    )
    receipt = stream.update(pa.table({"Id": ["2"], "n": pa.nulls(1, pa.string())}), nulls="overwrite")
    assert (stream.read(as_="arrow")["n"].to_pylist(), receipt.updated) == ([1, None, None], 1)
    assert types.equals(stream.schema)


def test_a_frozen_schema_and_an_empty_frame_take_them(open_finding, local):
    """Objects of None from pandas as well, and keys of a frame without rows."""
    stream = open_finding(local, streams={"Account": STORED.select(["Id", "n"])}).stream("Account")

    stream.update(pd.DataFrame({"Id": ["3"], "n": pd.Series([None], dtype="string")}), schema="frozen")
    receipt = stream.update(pa.table({"Id": pa.array([], pa.int64()), "n": pa.array([], pa.string())}))
    assert (receipt.committed, stream.read(as_="arrow")["n"].to_pylist()) == (False, [1, 2, None])


@pytest.mark.spark
@pytest.mark.parametrize("mode", [{}, {"mode": "full"}, {"replace_where": "Id > '1'"}])
def test_spark_frames_too(spark_engine, spark_session, tmp_path, mode):
    """A landed column is looked at until a value is found; a value in it is still refused."""
    stream = given.tenant(LocalStorage(tmp_path), spark_engine, streams={"Account": STORED}).stream("Account")
    types = stream.schema
    frame = spark_session.createDataFrame(
        [("2", None, None, None, None), ("3", None, None, None, None)],
        "Id string, n string, when boolean, part int, tags struct<z int>",
    )
    receipt = stream.update(frame, **mode)

    assert (1, types) == (receipt.inserted, stream.schema)
    assert list(stream.read(as_="arrow").to_pylist()[-1].values())[1:] == [None] * 4
    with pytest.raises(Exception, match="is stored as int64, but the batch has string"):
        stream.update(spark_session.createDataFrame([("4", "x")], "Id string, n string"), **mode)


@pytest.mark.parametrize(
    "mode", [{"mode": "full"}, pytest.param({"replace_where": "Id > '1'"}, marks=pytest.mark.spark)]
)
def test_frames_in_memory_that_are_merged(tmp_path, mode):
    """Full extracts and windows take them as upserts do."""
    stream = given.tenant(LocalStorage(tmp_path), shared_engine(), streams={"Account": STORED}).stream(
        "Account"
    )
    stream.update(pa.table({"Id": ["2", "3"], **IDLE["structs"]}), **mode)

    assert STORED.schema.equals(stream.schema)
    assert list(stream.read(as_="arrow").to_pylist()[-1].values())[1:] == [None] * 4
