"""Columns, lists and objects that are empty so far: kept as they are, and the first value decides."""

import datetime as dt
import json
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests import given
from tests.examples import sampled
from tests.given import rows_of

from freezeframe.engine.frames.frames import to_pandas
from freezeframe.engine.frames.untyped import parquet_schema
from freezeframe.engine.plans import write_batch
from freezeframe.errors import BadInput, NullKeyError, SchemaDriftError
from freezeframe.script.tenants import shared_engine
from freezeframe.storage import LocalStorage
from freezeframe.store.table.reader import in_schema
from freezeframe.store.updates import batch as batches

KINDS = {"arrow": lambda table: table, "pandas": to_pandas, "polars": pl.from_arrow}


def table(*values, start=1):
    return pa.table({"Id": range(start, start + len(values)), "v": pa.array(list(values))})


EMPTY_VALUES = {
    "list": [],
    "lists in a list": [[], []],
    "object": {},
    "objects in a list": [{}, {}],
    "member": {"a": None, "b": 1},
    "member of a member": {"a": {"b": None}},
    "list in an object": {"a": []},
    "nulls in a list": [None],
}


@pytest.fixture(params=KINDS)
def frame(request):
    """A table as each kind of frame."""
    return KINDS[request.param]


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "name"), sampled(product(KINDS, EMPTY_VALUES), every=2))
def test_what_is_empty_comes_back_as_it_was(open_finding, local, kind, name):
    """At every door, also where it is given back; a batch of the same is no new version."""
    frame, value = KINDS[kind], EMPTY_VALUES[name]
    stream = open_finding(local, streams={"S": frame(table(value, None))}).stream("S")

    assert [row["v"] for row in rows_of(stream)] == [value, None]
    for given_back in KINDS:
        receipt = stream.update(stream.read(as_=given_back), key="Id")
        assert (receipt.unchanged, receipt.committed) == (2, False)
    assert _listed(stream.read(as_="pandas")["v"][0]) == value
    assert stream.read(as_="polars")["v"].to_list() == [value, None]


def _listed(value):
    """The value with lists for numpy's arrays, as which pandas has lists."""
    if isinstance(value, np.ndarray):
        return list(map(_listed, value))
    return {name: _listed(part) for name, part in value.items()} if isinstance(value, dict) else value


DECISIONS = {
    "list of objects": ([], [{"sku": "a", "n": 1}], []),
    "list of text": ([], ["x"], []),
    "list of lists": ([[]], [[1.5]], [[]]),
    "object": ({}, {"a": 1}, {"a": None}),
    "object of open members": ({}, {"a": None}, {"a": None}),
    "objects in a list": ([{}], [{"a": "x"}], [{"a": None}]),
    "member becomes a number": ({"a": None, "b": 1}, {"a": 5, "b": 2}, {"a": None, "b": 1}),
    "member becomes an object": ({"a": None}, {"a": {"b": "x"}}, {"a": None}),
    "list in an object": ({"a": []}, {"a": [{"b": True}]}, {"a": []}),
    "nulls in a list": ([None], [7], [None]),
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("vectors_from_bytes", "kind", "name"),
    sampled(product([0, 1 << 40], KINDS, DECISIONS), every=3),
)
def test_the_first_value_decides(open_finding, local, vectors_from_bytes, kind, name):
    """Rows before it stay as they were, those after it have its type; a value of another kind is refused."""
    frame, (before, value, after) = KINDS[kind], DECISIONS[name]
    stream = open_finding(local, vectors_from_bytes=vectors_from_bytes).stream("S")
    stream.update(frame(table(before, None)), key="Id")
    stream.update(frame(table(before, start=7)), key="Id")
    receipt = stream.update(frame(table(value, start=3)), key="Id")

    assert (receipt.inserted, receipt.updated, receipt.deleted) == (1, 0, 0)
    assert [row["v"] for row in rows_of(stream)] == [after, None, value, after]
    assert [row["v"] for row in rows_of(stream, version=0)] == [before, None]
    changes = stream.changes(since=1, as_="arrow")
    assert changes.select(["_change_type", "Id"]).to_pylist() == [{"_change_type": "insert", "Id": 3}]
    assert stream.update(frame(table(before)), key="Id").updated == 0
    with pytest.raises(SchemaDriftError):
        stream.update(table("text" if isinstance(value, list) else [{"z": [1]}], start=9), key="Id")


def test_it_is_decided_by_a_row_that_changes(open_finding, local):
    """The change says the old and the new value; the version before is restored as it was."""
    tenant = open_finding(local)
    stream = tenant.stream("S")
    stream.update(table([], []), key="Id")
    receipt = stream.update(table(["a"]), key="Id")

    assert (receipt.updated, rows_of(stream)) == (1, [{"Id": 1, "v": ["a"]}, {"Id": 2, "v": []}])
    (change,) = receipt.changed_rows(as_="arrow").to_pylist()
    assert (change["_change_type"], change["v"], change["_before"]["v"]) == ("update", ["a"], [])
    tenant.restore(0)
    assert rows_of(stream) == [{"Id": 1, "v": []}, {"Id": 2, "v": []}]
    stream.update(table([5], start=3), key="Id")
    assert [row["v"] for row in rows_of(stream)] == [[], [], [5]]


def test_what_outside_readers_see_is_text_and_null(open_finding, local):
    """Neither void nor a struct without members is in the log or in a file."""
    stream = open_finding(local).stream("S")
    stream.update(pa.table({"Id": [1], "l": [[]], "m": [{}], "s": [{"a": None}], "n": pa.nulls(1)}), key="Id")

    snapshot = stream.snapshot()
    text = json.dumps([field["type"] for field in snapshot.delta_schema["fields"]])
    assert ("void" in text, '"fields": []' in text) == (False, False)
    plain = snapshot.to_arrow().to_pylist()
    assert plain == [{"Id": 1, "l": [], "m": {"_freezeframe_no_member": None}, "s": {"a": None}, "n": None}]


def test_a_text_column_without_values_decides_nothing(open_finding, local, frame):
    """A frame of the stream has such a column as text; a number may come after it was given back."""
    stream = open_finding(local, streams={"S": {"Id": [1], "phone": pa.nulls(1)}}).stream("S")
    stream.update(pa.table({"Id": [2], "phone": pa.nulls(1, pa.string())}), key="Id")
    stream.update(frame(pa.table({"Id": [3], "phone": [7]})), key="Id")

    assert [row["phone"] for row in rows_of(stream)] == [None, None, 7]


@pytest.mark.parametrize("options", [{}, {"history": "scd2"}])
def test_a_column_without_values_meets_no_condition_on_values(open_finding, local, options):
    """Of whatever type they are: a script filters by the phone numbers that a tenant has none of."""
    stream = open_finding(local).stream("S")
    stream.update(pa.table({"Id": [1], "phone": pa.nulls(1)}), key="Id", **options)
    for where, found in (
        (pc.field("phone") > 5, []),
        (pc.field("phone").is_null(), [1]),
        ([("phone", "=", "x")], []),
        ([("phone", "in", [dt.date(2026, 1, 1)])], []),
        ([[("phone", "=", 1.5)], [("Id", ">", 0)]], [1]),
    ):
        rows = stream.read(where=where, as_="arrow")
        assert (rows["Id"].to_pylist(), rows.schema.field("phone").type) == (found, pa.string()), where
        assert stream.read(where=where, columns=["phone"], as_="arrow").column_names == ["phone"]


def test_a_row_has_no_history_of_a_type(open_finding, local):
    """Its versions are those that changed it, with its values then; cells of one are restored."""
    tenant = open_finding(local)
    stream = tenant.stream("S")
    stream.update(table([], None), key="Id")
    stream.update(table([{"a": 1}], start=3), key="Id")
    stream.update(table([{"a": 2}]), key="Id")

    versions = [
        (version.entry.version, version.before, version.after) for version in stream.row_history(1).versions
    ]
    first, last = {"Id": 1, "v": []}, {"Id": 1, "v": [{"a": 2}]}
    assert versions == [(2, first, last), (0, None, first)]
    assert stream.row_history(2).versions[0].version == 0


def test_an_erasure_keeps_it_open(open_finding, local):
    """Files that are rewritten have the types that they had."""
    tenant = open_finding(local)
    stream = tenant.stream("S")
    stream.update(pa.table({"Id": [1, 2], "l": [[], []], "m": [{}, {}], "n": pa.nulls(2)}), key="Id")
    types = stream.schema

    tenant.erase("S", [2])
    assert (rows_of(stream), stream.schema) == ([{"Id": 1, "l": [], "m": {}, "n": None}], types)
    assert not tenant.verify().findings
    assert stream.update(pa.table({"Id": [1], "l": [[5]], "m": [{"a": 1}], "n": [1]})).updated == 1


def test_a_parquet_file_of_the_rows_can_be_taken_again(open_finding, local, tmp_path):
    """Parquet has no struct without members: the member that exports give it is left out again."""
    stream = open_finding(local).stream("S")
    given = pa.table({"Id": [1], "l": [[]], "m": [[{}]], "n": pa.nulls(1)})
    stream.update(given, key="Id")
    held = in_schema(stream.read(as_="arrow"), parquet_schema(stream.read(as_="arrow").schema))
    pq.write_table(held, tmp_path / "S.parquet")

    receipt = stream.update(pq.read_table(tmp_path / "S.parquet"))
    assert (receipt.unchanged, rows_of(stream)) == (1, given.to_pylist())


def test_an_override_counts_what_stays_the_same(open_finding, local):
    """Empty rows equal themselves, and nothing else."""
    tenant = open_finding(local)
    for name, value in EMPTY_VALUES.items():
        stream = tenant.stream(name)
        stream.update(table(value, None, value), key="Id")
        receipt = stream.update(table(value, value, None), key="Id", override=True)
        assert (receipt.unchanged, receipt.updated, receipt.inserted, receipt.deleted) == (1, 2, 0, 0), name


EMPTY_FRAMES = {
    "pandas": pd.DataFrame(columns=["Id", "V"]),
    "arrow": pa.table({"Id": pa.nulls(0), "V": pa.nulls(0)}),
    "polars": pl.DataFrame({"Id": [], "V": []}),
}


@pytest.mark.parametrize("empty", EMPTY_FRAMES.values(), ids=EMPTY_FRAMES)
@pytest.mark.parametrize("options", [{}, {"history": "scd2"}])
def test_a_stream_can_be_overridden_by_a_frame_without_rows(open_on, local, empty, options):
    """It is empty then and has these columns, also in a preview; the next rows decide their types."""
    stream = open_on(local).stream("S")
    stream.update(pa.table({"Id": [1, 2], "V": ["a", "b"], "W": [1, 2]}), key="Id", **options)

    assert stream.preview(empty, "Id", override=True, **options).deleted == 2
    receipt = stream.update(empty, key="Id", override=True, **options)
    assert (receipt.deleted, receipt.inserted, receipt.columns_dropped) == (2, 0, ("W",))
    assert (stream.schema.names, rows_of(stream)) == (["Id", "V"], [])
    stream.update(pa.table({"Id": ["x"], "V": [1.5]}), key="Id")
    assert rows_of(stream) == [{"Id": "x", "V": 1.5}]


def _by_spark(session, *rows):
    return session.sql(" union all ".join(f"select {row}" for row in rows))


@pytest.fixture
def by_spark(tmp_path):
    """A stream whose updates Spark may be asked for."""
    return given.tenant(LocalStorage(tmp_path), shared_engine()).stream("S")


@pytest.mark.spark
def test_spark_has_the_columns(by_spark, spark_session):
    """As text, and a struct without members as one; a frame of the stream decides nothing in it."""
    given = pa.table(
        {"Id": [1, 2], "phone": pa.nulls(2), "l": [[], None], "m": [{}, None], "s": [{"a": None}] * 2}
    )
    by_spark.update(given, key="Id")

    frame = by_spark.read(as_="spark")
    assert [field.dataType.simpleString() for field in frame.schema.fields] == [
        "bigint",
        "string",
        "array<string>",
        "struct<>",
        "struct<a:string>",
    ]
    assert frame.where("phone is null and (l is null or size(l) = 0)").orderBy(
        "Id"
    ).toArrow().to_pylist() == (given.to_pylist())
    assert by_spark.read(as_="spark", columns=["phone", "Id"]).columns == ["phone", "Id"]
    receipt = by_spark.update(frame, key="Id")
    assert (receipt.unchanged, receipt.committed) == (2, False)
    by_spark.update(_by_spark(spark_session, "3 Id, 7 phone, array(named_struct('a', 1)) l"), key="Id")
    assert rows_of(by_spark)[0] == {**given.to_pylist()[0], "phone": None}
    assert rows_of(by_spark)[2] == {"Id": 3, "phone": 7, "l": [{"a": 1}], "m": None, "s": None}


DECIDED_BY_SPARK = [
    ("array()", "array(named_struct('b', 1))", []),
    ("array(array())", "array(array('x'))", [[]]),
    ("map()", "map('k', 1)", []),
    ("named_struct('a', null)", "named_struct('a', named_struct('b', 1.5D))", {"a": None}),
    ("struct()", "named_struct('b', 1)", {"b": None}),
]


@pytest.mark.spark
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("small", "before", "value", "after"),
    sampled(((small, *case) for case in DECIDED_BY_SPARK for small in (True, False)), every=9),
)
def test_spark_frames_decide_as_others(by_spark, spark_session, monkeypatch, small, before, value, after):
    """Whether their rows come to this process or stay in files of Spark; repeated keys too."""
    if not small:
        monkeypatch.setattr(write_batch, "ROWS_MAX", 0)
        monkeypatch.setattr(batches, "LANDED_BYTES_MAX", 0)
    by_spark.update(_by_spark(spark_session, *[f"1 Id, {before} v"] * 2, "2 Id, null v"), key="Id")
    assert [row["v"] for row in rows_of(by_spark)] == [{} if before == "struct()" else after, None]

    assert by_spark.update(_by_spark(spark_session, f"1 Id, {before} v"), key="Id").unchanged == 1
    for row in (f"3 Id, {value} v", f"4 Id, {before} v"):
        receipt = by_spark.update(_by_spark(spark_session, row), key="Id")
        assert (receipt.inserted, receipt.updated) == (1, 0)
    found = [row["v"] for row in rows_of(by_spark)]
    assert (found[0], found[1], found[3]) == (after, None, after)
    assert found[2] == _by_spark(spark_session, f"{value} v").toArrow().to_pylist()[0]["v"]


EMPTY_IN_SPARK = {
    "void columns": "select null Id, null V limit 0",
    "text columns": "select '' Id, '' V limit 0",
    "no columns": None,
}
MODES = {
    "upsert": {"key": "Id"},
    "full": {"key": "Id", "mode": "full", "max_delete_ratio": 1.0},
    "history": {"key": "Id", "history": "scd2"},
    "window": {"replace_where": "V = 'b'"},
    "override": {"key": "Id", "override": True},
}


@pytest.mark.spark
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("columns", "small", "mode"), sampled(product(EMPTY_IN_SPARK, (True, False), MODES), every=11)
)
def test_a_spark_frame_without_rows_is_taken_as_that_of_pandas(
    spark_engine, spark_session, tmp_path, monkeypatch, mode, small, columns
):
    """The same rows, columns and counts, or the same error, in each mode."""
    query = EMPTY_IN_SPARK[columns]
    if not small:
        monkeypatch.setattr(write_batch, "ROWS_MAX", -1)
    empty = spark_session.sql(query) if query else spark_session.createDataFrame([], "struct<>")
    frames = {"spark": empty, "pandas": pd.DataFrame(columns=["Id", "V"] if query else [])}
    outcomes = []
    for name, frame in frames.items():
        stream = given.tenant(LocalStorage(tmp_path / name), spark_engine).stream("S")
        stream.update(pa.table({"Id": [1, 2], "V": ["a", "b"]}), key="Id")
        try:
            receipt = stream.update(frame, **MODES[mode])
            found = receipt.deleted, receipt.committed, rows_of(stream), stream.schema.names
        except BadInput as error:
            found = error.error_code, str(error)
        outcomes.append(found)

    assert outcomes[0] == outcomes[1]


@pytest.mark.spark
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("query", "null_keys"),
    sampled(product(["select null Id, null V", "select null Id, 'x' V"], ["match", "drop", "error"])),
)
def test_a_key_without_a_type_is_taken_as_null_keys_says(by_spark, spark_session, null_keys, query):
    """Matched, dropped and counted, or refused, as a pandas frame's."""
    by_spark.update(pa.table({"Id": [1], "V": ["a"]}), key="Id")
    frame = spark_session.sql(query)

    if null_keys == "error":
        with pytest.raises(NullKeyError, match="null"):
            by_spark.update(frame, key="Id")
        return
    for receipt in (by_spark.update(frame, key="Id", null_keys=null_keys) for _ in range(2)):
        assert (receipt.null_keys_dropped, receipt.updated) == (1 if null_keys == "drop" else 0, 0)
    assert by_spark.count() == (1 if null_keys == "drop" else 2)


@pytest.mark.spark
def test_spark_reads_the_table_itself(delta_session, by_spark, tmp_path):
    """Delta's own reader, before and after a part is decided."""
    by_spark.update(pa.table({"Id": [1], "l": [[]], "m": [{}], "n": pa.nulls(1)}), key="Id")
    table = str(next(tmp_path.rglob("_delta_log")).parent)

    seen = delta_session.read.format("delta").load(table).drop("m").toArrow().to_pylist()
    assert seen == [{"Id": 1, "l": [], "n": None}]
    by_spark.update(pa.table({"Id": [2], "l": [[{"a": 1}]], "m": [{"b": 2}], "n": [3]}), key="Id")
    seen = delta_session.read.format("delta").load(table).orderBy("Id").toArrow().to_pylist()
    assert seen == rows_of(by_spark)


WAYS = {
    "window": ({"override": True}, {"replace_where": "Id > 0"}),
    "full": ({"key": "Id"}, {"key": "Id", "mode": "full", "max_delete_ratio": 1.0}),
    "flags": ({"key": "Id", "mode": "full", "deletes": "flag"},) * 2,
    "history": ({"key": "Id", "history": "scd2"},) * 2,
    "overwritten nulls": ({"key": "Id"}, {"key": "Id", "nulls": "overwrite"}),
    "dropped column": ({"key": "Id"}, {"key": "Id", "drop_column": "w"}),
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=[pytest.mark.spark] * (way == "window")) for way in sampled(WAYS, every=3)],
)
def test_each_mode_decides(by_spark, way):
    """A merge reads what is open, compares it with the batch, and writes it decided."""
    first, then = WAYS[way]
    rows = pa.table({"Id": [1, 2], "v": [[], [{}]], "m": [{}, None], "w": [1, 2]})
    by_spark.update(rows, **first)
    receipt = by_spark.update(rows.append_column("n", pa.nulls(2)), **then)
    assert (receipt.unchanged, receipt.updated, receipt.inserted) == (2, 0, 0)
    assert [rows_of(by_spark)[0][name] for name in ("v", "m")] == [[], {}]

    more = pa.table(
        {"Id": [1, 2, 3], "v": [[], [{}], [{"a": 1}]], "m": [{}, None, {"b": "x"}], "w": [1, 2, 3]}
    )
    receipt = by_spark.update(more, **then)
    assert (receipt.unchanged, receipt.updated, receipt.inserted) == (2, 0, 1)
    found = sorted(rows_of(by_spark, columns=["Id", "v", "m"]), key=lambda row: row["Id"])
    assert [row["v"] for row in found] == [[], [{"a": None}], [{"a": 1}]]
    assert [row["m"] for row in found] == [{"b": None}, None, {"b": "x"}]


@pytest.mark.spark
@pytest.mark.parametrize("bytes_max", [0, 2**20])
def test_declared_parts_without_values_decide_nothing(by_spark, spark_session, monkeypatch, bytes_max):
    """Also of a frame whose rows stay in Spark's files, which hold the declared type."""
    monkeypatch.setattr(write_batch, "ROWS_MAX", 0)
    monkeypatch.setattr(batches, "LANDED_BYTES_MAX", bytes_max)
    by_spark.update(table([]), key="Id")
    declared = "cast(array() as array<bigint>) v"
    by_spark.update(_by_spark(spark_session, f"2 Id, {declared}", "3 Id, null"), key="Id")
    by_spark.update(_by_spark(spark_session, "3 Id, array('x') v"), key="Id")

    assert [row["v"] for row in rows_of(by_spark)] == [[], [], ["x"]]


@pytest.mark.spark
def test_a_stream_of_rows_too_large_for_memory_may_have_them(by_spark, monkeypatch):
    """It is written for Spark as files that hold text in their place."""
    monkeypatch.setattr(batches, "MEMORY_BYTES_MAX", 0)
    given = pa.table({"Id": [1, 1], "l": [[], []], "m": [None, {}], "o": [{"a": None}] * 2, "n": pa.nulls(2)})
    by_spark.update(given.to_reader(), key="Id")

    assert rows_of(by_spark) == given.to_pylist()[1:]
    by_spark.update(
        pa.table({"Id": [2], "l": [[1]], "m": [{"k": 1}], "o": [{"a": [1]}]}).to_reader(), key="Id"
    )
    assert [row["o"] for row in rows_of(by_spark)] == [{"a": None}, {"a": [1]}]
