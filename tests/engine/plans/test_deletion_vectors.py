"""Reading files of which rows are deleted: those rows, and only those, are left out."""

import numpy as np
import pyarrow as pa
import pytest

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


def test_two_files_of_one_name_with_deleted_rows_are_refused(bench, tmp_path):
    """Which rows are gone could not be told."""
    schema = pa.schema([("n", pa.int64())])
    files = [str(tmp_path / folder / "x.parquet") for folder in ("a", "b")]
    with pytest.raises(UnsupportedTable, match="same name"):
        read(bench, files, schema, {file: np.array([0], np.int64) for file in files})
