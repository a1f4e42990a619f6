"""Upsert: rows are found, completed and written; and what becomes of files."""

import pandas as pd
import pytest
from tests import given
from tests.given import counts

from freezeframe.engine.frames.rows import Rows
from freezeframe.log.scan import rows
from freezeframe.log.scan.held_columns import held_columns
from freezeframe.script.tenants import shared_engine
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.model.update_options import parse_update


@pytest.fixture
def stream(tmp_path):
    """A stream that is never too small for deletion vectors."""
    settings = Settings(vectors_from_bytes=0)
    return Tenant(LocalStorage(tmp_path / "snapshots"), shared_engine(), settings).stream("Lead")


def frame(numbers, **columns):
    return pd.DataFrame({"Id": [f"{n:04}" for n in numbers], **columns})


def content(stream, **options):
    read = stream.read(as_="arrow", **options).sort_by("Id")
    return {row.pop("Id"): row for row in read.to_pylist()}


def vectors(stream):
    files = stream._snapshot().files
    return [None if item is None else item["cardinality"] for item in files["deletion_vector"].to_pylist()]


@pytest.mark.usefixtures("searcher")
def test_only_changed_and_new_rows_are_written(stream):
    """The old file stays, its changed rows are marked; equal rows are counted and not written."""
    stream.update(frame(range(100), n=range(100)), key="Id")
    before = stream._snapshot().files["path"].to_pylist()
    receipt = stream.update(frame([3, 4, 5, 100], n=[3, 40, 50, 100]))
    assert counts(receipt) == (1, 2, 1, 0)
    files = stream._snapshot().files
    assert before == files["path"].to_pylist()[:1]
    assert vectors(stream) == [2, None]
    assert files.num_rows == 2
    expected = {f"{n:04}": {"n": n} for n in range(101)} | {"0004": {"n": 40}, "0005": {"n": 50}}
    assert content(stream) == expected
    assert stream.count() == 101


@pytest.mark.spark
def test_spark_frames_and_spark_reads(stream, spark_session):
    """A Spark frame is patched in like any other; a Spark read leaves marked rows out."""
    stream.update(frame(range(20), n=range(20)), key="Id")
    batch = spark_session.createDataFrame(frame([1, 2, 30], n=[10, 20, 300]))
    receipt = stream.update(batch)
    assert (receipt.inserted, receipt.updated, receipt.unchanged) == (1, 2, 0)
    assert vectors(stream) == [2, None]
    read = {row["Id"]: row["n"] for row in stream.read(as_="spark").collect()}
    assert {name: row["n"] for name, row in content(stream).items()} == read


@pytest.mark.spark
def test_other_modes_on_a_stream_with_vectors(stream):
    """A window, a full extract and an override see a stream without its marked rows."""
    stream.update(frame(range(10), n=range(10)), key="Id")
    stream.update(frame([1], n=[100]))
    assert vectors(stream) == [1, None]
    receipt = stream.update(frame([1, 2], n=[200, 300]), replace_where="n >= 100 or n = 2")
    assert (receipt.inserted, receipt.updated, receipt.deleted) == (0, 2, 0)
    stream.update(frame([3], n=[33]))
    receipt = stream.update(frame(range(9), n=range(9)), mode="full")
    assert counts(receipt) == (0, 3, 6, 1)
    stream.update(frame([3], n=[33]))
    receipt = stream.update(frame(range(9), n=range(9)), override=True)
    assert counts(receipt) == (0, 1, 8, 0)


def test_plain_compatibility_never_marks(tmp_path):
    """compatibility='plain' writes touched files anew and leaves the others; the reader version stays 1."""
    settings = Settings(vectors_from_bytes=0, compatibility="plain")
    stream = Tenant(LocalStorage(tmp_path / "snapshots"), shared_engine(), settings).stream("Lead")
    stream.update(frame(range(10), n=range(10)), key="Id")
    stream.update(frame(range(100, 110), n=range(10)))
    stream.update(frame([1], n=[100]))
    snapshot = stream._snapshot()
    assert snapshot.protocol.min_reader_version == 1
    assert vectors(stream) == [None, None]
    assert rows.count(snapshot) == 20


@pytest.mark.spark
def test_a_large_batch_from_spark_is_merged_with_the_files_it_touches(
    searcher, stream, spark_session, monkeypatch
):
    """Files without a key of the batch stay; Spark's workers mark rows of the others, and write the new."""
    monkeypatch.setattr("freezeframe.store.updates.batch.LANDED_BYTES_MAX", 0)
    monkeypatch.setattr("freezeframe.engine.plans.write_batch.ROWS_MAX", 0)
    stream.update(frame(range(10), n=range(10)), key="Id")
    stream.update(frame(range(100, 110), n=range(10)))
    untouched = stream._snapshot().files["path"].to_pylist()[1]
    stream.update(frame([1], n=[-1]))
    receipt = stream.update(spark_session.createDataFrame(frame([1, 2, 3, 50], n=[7, 8, 3, 9])))
    assert counts(receipt) == (1, 2, 1, 0)
    assert untouched in stream._snapshot().files["path"].to_pylist()
    assert {"Spark": "spark"}.get(searcher, "process") == receipt.engine
    assert [2] == [count for count in vectors(stream) if count]
    expected = {f"{n:04}": {"n": n} for n in range(10)} | {f"{n:04}": {"n": n - 100} for n in range(100, 110)}
    assert content(stream) == expected | {"0001": {"n": 7}, "0002": {"n": 8}, "0050": {"n": 9}}


def test_a_stream_of_any_size_is_patched_where_few_files_may_hold_a_key(stream, monkeypatch):
    """What counts are the bytes that the batch's keys can be in; Spark merges all of it beyond a limit."""
    stream.update(frame(range(1000), n=range(1000)), key="Id")
    stream.update(frame(range(5000, 5010), n=range(10)))
    least, whole = sorted(stream._snapshot().files["size"].to_pylist())
    monkeypatch.setattr("freezeframe.store.updates.upsert.PATCHED_BYTES_MAX", least)
    assert stream.explain(frame([5003], n=[-1])).route.kind == "upsert"
    told = stream.explain(frame([3], n=[-1])).route
    assert ("merge", f"files of {whole:,} bytes may hold a key of the batch") == (told.kind, told.reason)


def test_an_explanation_tells_the_route_and_writes_nothing(stream, tmp_path):
    """What would become of each file, with its reason; the stream and its folder stay as they are."""
    assert stream.explain().route.kind == "overwrite"
    stream.update(frame(range(10), n=range(10)), key="Id")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    explanation = stream.explain(frame([1, 2, 77], n=[1, 20, 7]))
    assert explanation.route.kind == "upsert"
    assert tuple(explanation.counts.to_json().values()) == (1, 1, 1, 0)
    (file,) = explanation.files()
    assert (file["fate"], file["rows"], file["deleted"]) == ("marked", 10, 0)
    assert 0 < explanation.bytes_written
    assert before == sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert stream.version == 0


class CountingStorage(LocalStorage):
    """A directory that notes which data files are read, and how many columns are held meanwhile."""

    def __init__(self, root):
        super().__init__(root)
        self.names = []
        self.held = []

    def read(self, name, offset=0, length=None):
        if name.endswith(".parquet"):
            self.names.append(name)
            self.held.append(len(held.columns) if (held := held_columns()) else 0)
        return super().read(name, offset, length)


@pytest.mark.parametrize("gives_back", [False, True])
def test_the_files_of_a_small_stream_are_read_once(tmp_path, gives_back):
    """For keys, old values, rows that stay and the frame; a column that is asked for twice is the same."""
    storage = CountingStorage(tmp_path)
    stream = given.tenant(storage, vectors_from_bytes=1 << 30).stream("A")
    stream.update(pd.DataFrame({"Id": ["a", "b", "c"], "v": [1, 2, 3], "w": ["x", None, "z"]}), key="Id")
    storage.names.clear()
    batch = pd.DataFrame({"Id": ["b", "c", "d"], "v": [2, 4, 5], "w": ["y", None, "u"]})
    expected = {"Id": list("abcd"), "v": [1, 2, 4, 5], "w": list("xyzu")}
    if gives_back:
        assert expected == stream.update_and_read(Rows(batch), parse_update(None, {})).to_dict("list")
        assert 2 == len(storage.names) == len(set(storage.names))
        assert [0, 0] == storage.held[-2:]  # those of the old file are needed no longer
    else:
        stream.update(batch)
        assert 1 == len(storage.names)
        assert expected == stream.read(as_="arrow").sort_by("Id").to_pydict()
