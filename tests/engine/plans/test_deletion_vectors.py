"""Reading files of which rows are deleted: those rows, and only those, are left out."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from freezeframe.engine.plans.parquet_files import are_large
from freezeframe.engine.spark import SparkEngine
from freezeframe.errors import UnsupportedTable
from freezeframe.log.format.schema import arrow_to_delta

pytestmark = pytest.mark.spark


def read(bench, files, schema, deleted):
    frame = bench.engine.read(tuple(files), arrow_to_delta(schema), deleted)
    return sorted(row[0] for row in frame.collect())


def test_deleted_rows_are_left_out_of_each_file(bench):
    """First, last and middle rows, across the borders of the bitmaps' words and chunks."""
    count = 70_000
    table = pa.table({"n": pa.array(range(count), pa.int64()), "of": ["x"] * count})
    other = pa.table({"n": pa.array([-1, -2], pa.int64()), "of": ["x"] * 2})
    files = [bench.file(table), bench.file(other)]
    gone = [0, 1, 63, 64, 65_535, 65_536, 69_999]
    left = read(bench, files, table.schema, {files[0]: np.array(gone, np.int64)})
    assert sorted({*range(count)} - set(gone) | {-1, -2}) == left


def test_a_window_does_not_see_deleted_rows(bench):
    """A row that is deleted is not replaced, and in no file that is written."""
    stored = pa.table({"Id": ["a", "b", "c"], "n": [1, 2, 3]})
    task = bench.task(stored, pa.table({"Id": ["b", "c"], "n": [20, 30]}), where="n > 1")
    task = replace(task, deleted={task.stored[0]: np.array([1], np.int64)})
    result = bench.engine.merge(task)
    assert (result.inserted, result.updated, result.unchanged, result.deleted) == (2, 0, 0, 1)
    rows = {row["Id"]: row["n"] for row in bench.rows(task.output, result.files)}
    assert rows == {"a": 1, "b": 20, "c": 30}


def test_two_files_of_one_name_with_deleted_rows_are_refused(bench, tmp_path):
    """Which rows are gone could not be told."""
    schema = pa.schema([("n", pa.int64())])
    files = [str(tmp_path / folder / "x.parquet") for folder in ("a", "b")]
    with pytest.raises(UnsupportedTable, match="same name"):
        read(bench, files, schema, {file: np.array([0], np.int64) for file in files})


def test_large_vectors_are_not_left_in_the_shared_session(spark_settings, bench, monkeypatch):
    """What a session keeps until it ends is sent to one of this process alone."""
    small, large = np.arange(1_000_000), np.arange(0, 200 << 16, 1 << 16)
    assert [are_large(item) for item in ({}, {"a": small}, {"a": small, "b": large})] == [False, False, True]
    monkeypatch.setattr("freezeframe.engine.plans.parquet_files._KEPT_BYTES_MIN", 1)
    table = pa.table({"Id": ["a", "b"]})
    task = bench.task(table, table, key=["Id"])
    engine = SparkEngine(spark_settings)
    result = engine.merge(replace(task, deleted={task.stored[0]: np.array([1])}))
    assert (result.inserted, result.unchanged) == (1, 1)
    assert (engine._own._connection is not None, engine._work._connection is not None) == (True, False)
    engine.close()
