"""Upsert: rows are found, completed and written; and what becomes of files."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.typed_columns import KINDS, cells, same_form

from freezeframe.log.scan import rows
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.updates.upsert import coalesce


@pytest.fixture
def stream(spark_engine, tmp_path):
    """A stream that is never too small for deletion vectors."""
    settings = Settings(vectors_from_bytes=0)
    return Tenant(LocalStorage(tmp_path / "snapshots"), spark_engine, settings).stream("Lead")


def frame(numbers, **columns):
    return pd.DataFrame({"Id": [f"{n:04}" for n in numbers], **columns})


def content(stream, **options):
    read = stream.read(as_="arrow", **options).sort_by("Id")
    return {row.pop("Id"): row for row in read.to_pylist()}


def vectors(stream):
    files = stream._snapshot().files
    return [None if item is None else item["cardinality"] for item in files["deletion_vector"].to_pylist()]


@pytest.mark.spark
@pytest.mark.usefixtures("searcher")
def test_only_changed_and_new_rows_are_written(stream):
    """The old file stays, its changed rows are marked; equal rows are counted and not written."""
    stream.update(frame(range(100), n=range(100)), key="Id")
    before = stream._snapshot().files["path"].to_pylist()
    receipt = stream.update(frame([3, 4, 5, 100], n=[3, 40, 50, 100]))
    assert (receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted) == (1, 2, 1, 0)
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
    assert (receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted) == (0, 3, 6, 1)
    stream.update(frame([3], n=[33]))
    receipt = stream.update(frame(range(9), n=range(9)), override=True)
    assert (receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted) == (0, 1, 8, 0)


@pytest.mark.spark
def test_plain_compatibility_never_marks(spark_engine, tmp_path):
    """compatibility='plain' writes touched files anew and leaves the others; the reader version stays 1."""
    settings = Settings(vectors_from_bytes=0, compatibility="plain")
    stream = Tenant(LocalStorage(tmp_path / "snapshots"), spark_engine, settings).stream("Lead")
    stream.update(frame(range(10), n=range(10)), key="Id")
    stream.update(frame(range(100, 110), n=range(10)))
    stream.update(frame([1], n=[100]))
    snapshot = stream._snapshot()
    assert snapshot.protocol.min_reader_version == 1
    assert vectors(stream) == [None, None]
    assert rows.count(snapshot) == 20


@pytest.mark.spark
def test_a_large_batch_from_spark_is_merged_with_the_files_it_touches(stream, spark_session, monkeypatch):
    """Files without a key of the batch stay; the others are written anew by Spark."""
    monkeypatch.setattr("freezeframe.store.updates.batch.LANDED_BYTES_MAX", 0)
    monkeypatch.setattr("freezeframe.engine.plans.write_batch.ROWS_MAX", 0)
    stream.update(frame(range(10), n=range(10)), key="Id")
    stream.update(frame(range(100, 110), n=range(10)))
    untouched = stream._snapshot().files["path"].to_pylist()[1]
    stream.update(frame([1], n=[-1]))
    receipt = stream.update(spark_session.createDataFrame(frame([1, 2, 3, 50], n=[7, 8, 3, 9])))
    assert (receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted) == (1, 2, 1, 0)
    assert untouched in stream._snapshot().files["path"].to_pylist()
    assert [None] * stream._snapshot().files.num_rows == vectors(stream)
    expected = {f"{n:04}": {"n": n} for n in range(10)} | {f"{n:04}": {"n": n - 100} for n in range(100, 110)}
    assert content(stream) == expected | {"0001": {"n": 7}, "0002": {"n": 8}, "0050": {"n": 9}}


@pytest.mark.spark
def test_a_stream_of_any_size_is_patched_where_few_files_may_hold_a_key(stream, monkeypatch):
    """What counts are the bytes that the batch's keys can be in; Spark merges all of it beyond a limit."""
    stream.update(frame(range(1000), n=range(1000)), key="Id")
    stream.update(frame(range(5000, 5010), n=range(10)))
    least, whole = sorted(stream._snapshot().files["size"].to_pylist())
    monkeypatch.setattr("freezeframe.store.updates.upsert.PATCHED_BYTES_MAX", least)
    assert stream.explain(frame([5003], n=[-1])).route.kind == "upsert"
    told = stream.explain(frame([3], n=[-1])).route
    assert ("merge", f"files of {whole:,} bytes may hold a key of the batch") == (told.kind, told.reason)


@pytest.mark.spark
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


@st.composite
def meetings(draw):
    """A table of stored rows, a batch of as many rows with the same keys, and the columns of the result."""
    kinds = {f"c{number}": draw(st.sampled_from(list(KINDS.values()))) for number in range(3)}
    stored = [name for name in kinds if draw(st.booleans())]
    given_ = [name for name in kinds if name not in stored or draw(st.booleans())]
    rows = draw(st.integers(0, 5))
    columns = {
        name: draw(st.lists(cells(kind), min_size=rows, max_size=rows)) for name, kind in kinds.items()
    }
    old = {name: columns[name] for name in stored}
    # A cell of the batch is often the stored one, so that rows stay unchanged.
    new = {
        name: [draw(st.sampled_from([None, value]) | cells(kinds[name])) for value in columns[name]]
        for name in given_
    }
    types = {name: kind.arrow for name, kind in kinds.items()}
    return types, {"Id": list(range(rows)), **old}, {"Id": list(range(rows)), **new}


def by_rule(types, old, new, *, keeps_nulls):
    """The rows that change, as they become, and for each row whether it does."""
    changed_rows, changed = [], []
    for number in old["Id"]:
        before = {name: old[name][number] if name in old else None for name in types}
        after = {}
        for name in types:
            value = new[name][number] if name in new else None
            keeps = name not in new or (keeps_nulls and value is None)
            after[name] = before[name] if keeps else value
        differs = any(same_form(before[n], types[n]) != same_form(after[n], types[n]) for n in types)
        changed.append(differs)
        if differs:
            changed_rows.append((number, *(same_form(after[n], types[n]) for n in types)))
    return changed_rows, changed


def table(columns, types):
    whole = {"Id": pa.int64(), **types}
    return pa.table({name: pa.array(values, whole[name]) for name, values in columns.items()})


@pytest.mark.parametrize("keeps_nulls", [True, False], ids=["keep", "overwrite"])
@given(found=meetings())
def test_rows_are_filled_by_the_rule(keeps_nulls, found):
    """Whatever is absent, null or equal: the changed rows are those of the rule, whole, and only those."""
    types, old, new = found
    target = pa.schema([("Id", pa.int64()), *types.items()])
    stored = table(old, types)
    asked = []

    def old_values(names, which):
        asked.extend(names)
        return stored.select(list(names)).filter(pa.array(which))

    filled = coalesce(table(new, types), target, list(old), ["Id"], old_values, keeps_nulls=keeps_nulls)

    rows, changed = by_rule(types, old, new, keeps_nulls=keeps_nulls)
    assert changed == filled.changed.tolist()
    assert rows == [
        (row["Id"], *(same_form(row[name], types[name]) for name in types)) for row in filled.rows.to_pylist()
    ]
    assert target == filled.rows.schema
    assert len(asked) == len(set(asked)) <= len(old) - 1, (
        "each stored column is read at most once, the key never"
    )


def test_columns_that_decide_nothing_are_not_read():
    """When one column shows that every row changes, and no cell is open, no other column is read."""
    batch = pa.table({"Id": [1, 2], "at": [1.5, 2.5], "name": ["a", "b"]})
    stored = pa.table({"at": [1.0, 2.0], "name": ["a", "b"]})
    asked = []

    def old_values(names, which):
        asked.extend(names)
        return stored.select(list(names)).filter(pa.array(which))

    filled = coalesce(batch, batch.schema, ["Id", "at", "name"], ["Id"], old_values, keeps_nulls=True)

    assert asked == ["at"]
    assert batch == filled.rows


def test_old_values_of_a_narrower_type_are_widened():
    """What was stored as an int is compared and kept as the long that the column has become."""
    batch = pa.table({"Id": [1, 2], "n": pa.array([7, None], pa.int64())})
    stored = pa.table({"n": pa.array([7, 8], pa.int32()), "m": pa.array([1, 2], pa.int32())})
    target = pa.schema([("Id", pa.int64()), ("n", pa.int64()), ("m", pa.int64()), ("new", pa.string())])

    def old_values(names, which):
        return stored.select(list(names)).filter(pa.array(which))

    filled = coalesce(batch, target, ["Id", "n", "m"], ["Id"], old_values, keeps_nulls=False)

    assert filled.changed.tolist() == [False, True]
    assert filled.rows.to_pylist() == [{"Id": 2, "n": None, "m": 2, "new": None}]
    assert np.bool_ == filled.changed.dtype


def test_a_batch_that_meets_no_stored_row_changes_none():
    """Where all keys are new nothing is read, though the batch lacks a column; the columns are whole."""
    target = pa.schema([("Id", pa.int64()), ("n", pa.string())])

    def old_values(names, which):
        raise AssertionError((names, which))

    filled = coalesce(
        target.empty_table().select(["Id"]), target, ["Id", "n"], ["Id"], old_values, keeps_nulls=True
    )

    assert target.empty_table() == filled.rows
    assert filled.changed.tolist() == []
