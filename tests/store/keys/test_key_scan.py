"""Keys found in a stream's files by this process: files, positions and keys, as Spark would tell them."""

import pickle

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.store.conftest import NoEngine

from freezeframe.errors import CorruptData
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.table.keys import FOUND, scan, scan_tasks
from freezeframe.store.table.staging import _DATA_FILE

pytestmark = pytest.mark.parametrize("piece_rows", [1, 3, 1 << 20])


@pytest.fixture
def stream(memory):
    """A stream of which nothing is ever written anew, so that it soon has several files."""
    return Tenant(memory, NoEngine(), Settings(vectors_from_bytes=0)).stream("Lead")


@pytest.fixture(autouse=True)
def _batches_of_two_rows(monkeypatch):
    """Few rows are read at once."""
    monkeypatch.setattr("freezeframe.log.scan.file_rows._BATCH_ROWS", 2)


def frame(numbers, value):
    return pd.DataFrame({"Id": [f"{n:04}" for n in numbers], "v": value})


def keys(*ids):
    return pa.table({"Id": list(ids)})


def found(stream, sought, piece_rows):
    snapshot = stream._snapshot()
    table = scan(snapshot, snapshot.files, sought, piece_rows)
    assert table.schema == FOUND
    return sorted(zip(*(table[name].to_pylist() for name in FOUND.names), strict=True))


def test_each_key_is_found_with_its_file_and_position(stream, piece_rows):
    """A row that was changed is found where it was and where it is: which one is deleted, the log says."""
    stream.update(frame(range(7), 0), key="Id")
    stream.update(frame([5, 9], 1))
    assert stream._snapshot().files.num_rows == 2
    assert found(stream, keys("0009", "0005", "0077"), piece_rows) == [(0, 5, 1), (1, 0, 1), (1, 1, 0)]
    assert found(stream, keys("0005"), piece_rows) == [(0, 5, 0), (1, 0, 0)]
    assert found(stream, keys("x"), piece_rows) == []


def test_only_the_given_files_are_read(stream, piece_rows):
    """Numbers are those of the files that were given."""
    stream.update(frame(range(3), 0), key="Id")
    stream.update(frame(range(10, 13), 0))
    snapshot = stream._snapshot()
    table = scan(snapshot, snapshot.files.slice(1), keys("0001", "0012"), piece_rows)
    assert table.to_pylist() == [{"file": 0, "row": 2, "place": 1}]
    assert len(scan(snapshot, snapshot.files.slice(2), keys("0001"), piece_rows)) == 0


def test_tasks_for_other_processes_find_the_same(tmp_path, monkeypatch, piece_rows):
    """They can be pickled, read the keys from a file, and share the row groups of large files."""
    monkeypatch.setattr("freezeframe.store.table.keys.PART_ROWS_MIN", 3)
    monkeypatch.setattr("freezeframe.store.table.keys._processors", lambda: 3)
    monkeypatch.setitem(_DATA_FILE, "row_group_size", 2)
    storage = LocalStorage(tmp_path / "acme")
    stream = Tenant(storage, NoEngine(), Settings(vectors_from_bytes=0)).stream("Lead")
    stream.update(frame(range(11), 0), key="Id")
    stream.update(frame([5, 20, 21], 1))
    sought = keys("0020", "0005", "0010", "none")
    pq.write_table(sought, tmp_path / "keys.parquet")
    snapshot = stream._snapshot()
    tasks = pickle.loads(
        pickle.dumps(scan_tasks(snapshot, snapshot.files, ["Id"], str(tmp_path / "keys.parquet")))
    )

    assert len(tasks) == 3
    places = [tuple(row.values()) for row in pa.concat_tables([task() for task in tasks]).to_pylist()]
    assert found(stream, sought, piece_rows) == sorted(places)
    assert set(places) == {(0, 10, 2), (0, 5, 1), (1, 0, 1), (1, 1, 0)}


def test_a_damaged_file_is_named(stream, memory, piece_rows):
    """Nothing is answered from a file that is not as it was written."""
    stream.update(frame(range(3), 0), key="Id")
    (path,) = stream._snapshot().files["path"].to_pylist()
    (name,) = (item.name for item in memory.list_below("") if item.name.endswith(path))
    memory.replace(name, memory.read(name)[:-1])
    with pytest.raises(CorruptData, match=path):
        found(stream, keys("0001"), piece_rows)
