"""Files that are staged, and what is read back of them."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store.staging import Attempt


@pytest.fixture(params=[True, False])
def attempt(request, tmp_path):
    """An attempt into which something landed two files: short ones of rows that repeat themselves."""
    storage = LocalStorage(tmp_path) if request.param else MemoryStorage()
    for number in (1, 2):
        buffer = io.BytesIO()
        pq.write_table(pa.table({"Id": pa.array([f"{number:0100}"] * 10_000)}), buffer)
        assert buffer.tell() < 10_000
        storage.put_if_absent(f"T/try/landed/{number}.parquet", buffer.getvalue())
    return Attempt(storage, "T", "try")


def test_landed_rows_are_measured_in_memory(attempt):
    """However few bytes their files have: up to the limit all rows in their order, above it none."""
    paths = ["try/landed/1.parquet", "try/landed/2.parquet"]
    rows = attempt.read_landed(paths, 4_000_000)
    assert [f"{1:0100}"] * 10_000 + [f"{2:0100}"] * 10_000 == rows["Id"].to_pylist()
    assert attempt.read_landed(paths, 1_500_000) is None
    assert attempt.read_landed(paths, 100) is None
