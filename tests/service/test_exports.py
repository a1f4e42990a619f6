"""Exports are whole, in pieces that take little memory, and refused before their first byte."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from tests.store.conftest import NoEngine

from freezeframe.errors import CorruptData, StreamNotFound
from freezeframe.log.scan import file_rows
from freezeframe.script.inputs import transfer
from freezeframe.service.exports import export
from freezeframe.service.rows.streams import Moment
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant
from freezeframe.store.table import written_rows

READERS = {"csv": pa.csv.read_csv, "jsonl": pa.json.read_json, "parquet": pq.read_table}
ROWS, BYTES = 60_000, 500


@pytest.fixture(scope="module")
def tenant():
    """A tenant with a stream of some megabytes; exporting puts it in order in memory only if it is small."""
    found = Tenant(MemoryStorage(), NoEngine(), Settings())
    ids = np.random.default_rng(3).permutation(ROWS)
    found.stream("A").update(pa.table({"Id": ids, "text": [f"{id_:0{BYTES}d}" for id_ in ids]}), "Id")
    return found


@pytest.mark.parametrize("kind", READERS)
def test_a_large_export_holds_some_batches(tenant, kind, monkeypatch):
    """Every row is in it, and at no time more than a part of the rows is in memory."""
    monkeypatch.setattr(transfer, "MEMORY_BYTES_MAX", 1)
    monkeypatch.setattr(written_rows, "PIECE_ROWS", 2_000)
    monkeypatch.setattr(written_rows, "GROUP_ROWS", 5_000)
    monkeypatch.setattr(file_rows, "_BATCH_ROWS_MAX", 5_000)
    before, most, content, longest = pa.total_allocated_bytes(), 0, io.BytesIO(), 0
    for chunk in export(tenant.stream("A"), kind, Moment()):
        most = max(most, pa.total_allocated_bytes() - before)
        longest = max(longest, len(chunk))
        content.write(chunk)
    content.seek(0)
    table = READERS[kind](content)

    assert ROWS == len(table) == len(set(table["Id"].to_pylist()))
    assert max(most, longest) < ROWS * BYTES / 3


def test_a_small_export_is_in_the_order_of_the_key(tenant):
    """Up to 32 MiB rows come by key."""
    content = b"".join(export(tenant.stream("A"), "parquet", Moment()))

    assert list(range(ROWS)) == pq.read_table(io.BytesIO(content))["Id"].to_pylist()


@pytest.mark.parametrize("bytes_max", [1, 2**40])
def test_what_is_wrong_is_told_before_the_first_byte(bytes_max, monkeypatch):
    """A stream that is not there, and a data file that is missing, are errors of the call itself."""
    monkeypatch.setattr(transfer, "MEMORY_BYTES_MAX", bytes_max)
    storage = MemoryStorage()
    found = Tenant(storage, NoEngine(), Settings())
    stream = found.stream("A")
    with pytest.raises(StreamNotFound):
        export(stream, "csv", Moment())
    stream.update(pa.table({"Id": [1]}), "Id")
    for name in [item.name for item in storage.list_below("A.snapshot") if item.name.endswith(".parquet")]:
        storage.delete(f"A.snapshot/{name}")

    with pytest.raises(CorruptData):
        export(stream, "csv", Moment())
