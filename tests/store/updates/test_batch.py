"""Batches that come in pieces."""

import pyarrow as pa
import pytest

from freezeframe.script import open_tenant
from freezeframe.store.updates import batch as batches

pytestmark = pytest.mark.spark

PIECES = [
    {"Id": ["1", "2"], "v": [1, 2], "w": [None, None], "t": ["a", None]},
    {"Id": ["2", "3"], "v": [20, 3], "w": [None, None], "t": ["b", "c"]},
    {"Id": ["1"], "v": [None], "w": [None], "t": ["d"]},
]
SCHEMA = pa.schema([("Id", pa.string()), ("v", pa.int64()), ("w", pa.null()), ("t", pa.string())])


def reader():
    batches = [pa.RecordBatch.from_pydict(piece, schema=SCHEMA) for piece in PIECES]
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)


def test_many_rows_are_what_few_are(tmp_path, spark_engine, monkeypatch):
    """The last of a key to arrive counts, a column without values stays, nothing of ours is left."""
    tenant = open_tenant(tmp_path)
    seen = {}
    for name, bytes_max in (("Few", batches.MEMORY_BYTES_MAX), ("Many", 0)):
        monkeypatch.setattr(batches, "MEMORY_BYTES_MAX", bytes_max)
        stream = tenant.stream(name)
        first = stream.update(reader(), key="Id")
        again = stream.update(reader())
        rows = stream.read(as_="arrow")
        seen[name] = (
            stream.schema,
            rows.to_pylist(),
            (first.inserted, again.updated, again.unchanged, again.committed),
        )

    assert seen["Few"] == seen["Many"]
    assert [(row["Id"], row["v"]) for row in seen["Many"][1]] == [("1", None), ("2", 20), ("3", 3)]
    assert list((tmp_path / "Many.snapshot").glob("**/pieces.parquet")) == []
