"""Contents compared and windows replaced on real Spark: which rows come out, and what was counted."""

import datetime as dt
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.engine.conftest import counts
from tests.examples import examples

from freezeframe.errors import CorruptData, InvalidOption, OutsideWindow, SchemaDriftError

pytestmark = pytest.mark.spark

# Names that would break a plan which is not careful: quotes, dots, and the plan's own words.
SCHEMA = pa.schema(
    {
        "o0": pa.string(),
        "a.b`c": pa.int64(),
        "fate": pa.string(),
        "count": pa.float64(),
        "new_key": pa.decimal128(20, 3),
        "nth": pa.bool_(),
        "when ?": pa.timestamp("us", tz="UTC"),
        "list": pa.list_(pa.int32()),
        "struct": pa.struct({"x y": pa.string(), "count": pa.int64()}),
        "map": pa.map_(pa.string(), pa.int64()),
    }
)
KEY = ("o0", "a.b`c")
VALUES = {
    "fate": st.sampled_from(["", "a", "ü", "null", "007"]),
    "count": st.sampled_from([0.5, float("nan"), float("inf"), 2.0**60]),
    "new_key": st.sampled_from([Decimal("1.250"), Decimal("-12345678901234567.999")]),
    "nth": st.booleans(),
    "when ?": st.sampled_from(
        [
            dt.datetime(1, 1, 1, tzinfo=dt.UTC),
            dt.datetime(2026, 3, 29, 1, 30, 0, 7, tzinfo=dt.UTC),
        ]
    ),
    "list": st.lists(st.none() | st.integers(0, 2), max_size=2),
    "struct": st.fixed_dictionaries({"x y": st.none() | st.just("a"), "count": st.none() | st.just(1)}),
    "map": st.permutations([("a", 1), ("b", None)]).map(list) | st.just([]),
}


@st.composite
def keyed_rows(draw):
    keys = draw(
        st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 2)), unique=True, max_size=6), label="keys"
    )
    return [
        {**dict(zip(KEY, key, strict=True)), **{n: draw(st.none() | v) for n, v in VALUES.items()}}
        for key in keys
    ]


def canonical(value):
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return tuple((name, canonical(inner)) for name, inner in sorted(value.items()))
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(item, tuple) for item in value)
        return tuple(sorted(value, key=str) if pairs else map(canonical, value))
    return value


def content(rows):
    return Counter(tuple(canonical(row[name]) for name in SCHEMA.names) for row in rows)


# Each example is a Spark job: shrinking one would run hundreds of them.
QUICK = settings(
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@settings(QUICK, max_examples=examples(12))
@given(stored=keyed_rows(), batch=keyed_rows())
def test_contents_are_compared_by_key(bench, stored, batch):
    """Keys of one side are inserted or deleted, keys of both changed or not."""
    result, _ = bench.merge(
        pa.Table.from_pylist(stored, schema=SCHEMA), pa.Table.from_pylist(batch, schema=SCHEMA), key=KEY
    )
    old = {tuple(row[name] for name in KEY): row for row in stored}
    new = {tuple(row[name] for name in KEY): row for row in batch}
    same = sum(content([old[key]]) == content([new[key]]) for key in old.keys() & new.keys())
    assert (
        len(new.keys() - old.keys()), len(old.keys() & new.keys()) - same, same, len(old.keys() - new.keys()),
    ) == (result.inserted, result.updated, result.unchanged, result.deleted)  # fmt: skip


REPORT = pa.schema({"day": pa.date32(), "Amount": pa.int64()})
DAYS = [dt.date(2026, 1, day) for day in (1, 2, 3)]
ROWS = st.lists(
    st.fixed_dictionaries({"day": st.none() | st.sampled_from(DAYS), "Amount": st.integers(0, 1)}), max_size=6
)


@settings(QUICK, max_examples=examples(12))
@given(stored=ROWS, batch=ROWS)
def test_a_window_without_key_is_replaced_as_a_multiset(bench, stored, batch):
    """Rows for which the predicate is true go, others (null too) stay; what is equal counts as unchanged."""
    batch = [row for row in batch if row["day"] and row["day"] >= DAYS[1]]
    result, rows = bench.merge(
        pa.Table.from_pylist(stored, schema=REPORT),
        pa.Table.from_pylist(batch, schema=REPORT),
        where="day >= DATE'2026-01-02'",
    )
    as_tuples = [Counter((row["day"], row["Amount"]) for row in side) for side in (stored, batch, rows)]
    window = Counter({row: n for row, n in as_tuples[0].items() if row[0] and row[0] >= DAYS[1]})
    assert as_tuples[0] - window + as_tuples[1] == as_tuples[2]
    new = as_tuples[1]
    assert (new - window).total() == result.inserted
    assert (window & new).total() == result.unchanged
    assert (window - new).total() == result.deleted


def test_rows_outside_the_window_are_refused_before_anything_is_written(bench):
    """The error counts and shows the rows; a null is outside."""
    batch = pa.table({"day": pa.array([1, 2, None], pa.int64())})
    task = bench.task(batch, batch, where="day = 2")
    with pytest.raises(OutsideWindow, match=r"^2 rows .*'day': 1"):
        bench.engine.merge(task)
    assert not list(bench.folder.glob(task.output.rpartition("/")[2]))


@pytest.mark.parametrize("where", ["day >", "nothing = 1", "day + 1", "count(*) > 1", "DAY = 1", "day = 'x'"])
def test_a_predicate_that_is_none_is_refused(bench, where):
    """Unparsable, of unknown columns, not boolean, an aggregate, another case, a wrong value."""
    batch = pa.table({"day": [1]})
    with pytest.raises(InvalidOption, match="replace_where is not a predicate"):
        bench.merge(batch, batch, where=where)


def test_a_null_in_a_key_matches_if_asked(bench):
    """By option a null equals a null, also in a part of the key."""
    schema = pa.schema({"a": pa.string(), "b": pa.int64(), "v": pa.int64()})
    stored = pa.Table.from_pylist([{"a": None, "b": 1, "v": 1}, {"a": "x", "b": None, "v": 1}], schema=schema)
    batch = pa.Table.from_pylist([{"a": None, "b": 1, "v": 2}, {"a": None, "b": None, "v": 2}], schema=schema)
    found = [
        counts(bench.merge(stored, batch, key=["a", "b"], **options)[0])
        for options in ({}, {"null_keys": "match"})
    ]
    assert [(2, 0, 0, 2), (1, 1, 0, 1)] == found


def test_a_key_twice_in_the_stored_rows_is_damage(bench):
    """Rows would be counted twice."""
    stored = pa.table({"Id": ["1", "1"], "v": [1, 2]})
    with pytest.raises(CorruptData, match="more than once"):
        bench.merge(stored, pa.table({"Id": ["1"], "v": [3]}), key=["Id"])


def test_a_history_is_compared_without_its_past(bench):
    """Closed rows take no part, whatever they hold."""
    us = pa.timestamp("us", tz="UTC")
    period = {"from": pa.nulls(3, us), "to": pa.array([1, None, None], us)}
    stored = pa.table({"Id": [1, 1, 2], "v": [0, 1, 2], **period})
    batch = pa.table({"Id": [1, 3], "v": [9, 3]})
    assert (1, 1, 0, 1) == counts(bench.merge(stored, batch, key=["Id"], period=("from", "to"))[0])


def test_a_value_that_does_not_fit_is_an_error(bench):
    """Nothing is silently cut or made null on its way into a narrower type."""
    batch = pa.table({"Id": ["1"], "v": [2**40]})
    target = pa.schema({"Id": pa.string(), "v": pa.int32()})
    with pytest.raises(SchemaDriftError):
        bench.merge(None, batch, where="true", target=target)


def test_physical_names_are_those_of_the_files(bench):
    """With column mapping the files have other names than the columns, nested ones too."""
    stored = pa.table({"col-1": ["a"], "col-2": pa.array([{"col-3": 1}])})
    task = bench.task(None, stored, where="true")

    def mapped(name, physical, kind):
        metadata = {"delta.columnMapping.physicalName": physical}
        return {"name": name, "type": kind, "nullable": True, "metadata": metadata}

    inner = {"type": "struct", "fields": [mapped("x,y", "col-3", "long")]}
    schema = {"type": "struct", "fields": [mapped("col-2", "col-1", "string"), mapped("s;", "col-2", inner)]}
    task = replace(task, stored=task.batch, stored_schema=schema, batch_schema=schema, target_schema=schema)
    result = bench.engine.merge(task)
    assert (result.unchanged, [row["col-1"] for row in bench.rows(task.output, result.files)]) == (1, ["a"])
    assert [row["col-2"] for row in bench.rows(task.output, result.files)] == [{"col-3": 1}]
    assert bench.engine.read(task.stored, schema).columns == ["col-2", "s;"]


def test_large_inputs_are_split_and_counted_the_same(bench):
    """Above the small size both sides are shuffled by key, or by all values."""
    stored = pa.table({"Id": [str(n) for n in range(2000)], "v": list(range(2000))})
    batch = pa.table({"Id": [str(n) for n in range(1900, 2100)], "v": [0] * 200})
    for options, expected in (
        ({"key": ["Id"]}, (100, 100, 0, 1900)),
        ({"key": ["Id"], "null_keys": "match"}, (100, 100, 0, 1900)),
        ({}, (200, 0, 0, 2000)),
    ):
        assert expected == counts(bench.merge(stored, batch, size_bytes=2**28, **options)[0])


def test_a_missing_stored_file_is_damage(bench):
    """A live file that is not there is told, never read as no rows."""
    batch = pa.table({"Id": ["1"]})
    task = bench.task(batch, batch, key=["Id"])
    (bench.folder / task.stored[0]).unlink()
    with pytest.raises(CorruptData, match="missing"):
        bench.engine.merge(task)


def test_files_are_as_promised(bench):
    """One zstd file with checked pages, INT64 micros, nullable columns and nothing beside it."""
    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    batch = pa.table({"Id": ["1"], "at": pa.array([when], pa.timestamp("us", tz="UTC"))})
    task = bench.task(None, batch, where="true")
    (name,) = bench.engine.merge(task).files
    assert [name] == [path.name for path in (bench.folder / task.output).iterdir()]
    file = pq.ParquetFile(f"{task.output}/{name}")
    assert {file.metadata.row_group(0).column(i).compression for i in range(2)} == {"ZSTD"}
    assert file.metadata.row_group(0).column(1).physical_type == "INT64"
    assert [file.schema.column(i).max_definition_level for i in range(2)] == [1, 1]
    assert pa.timestamp("us", tz="UTC") == file.schema_arrow.field("at").type
    data = bytearray((bench.folder / task.output / name).read_bytes())
    data[file.metadata.row_group(0).column(0).data_page_offset + 40] ^= 0xFF
    (bench.folder / task.output / name).write_bytes(data)
    with pytest.raises(OSError, match=r"(?i)crc|corrupt"):
        pq.read_table(f"{task.output}/{name}", page_checksum_verification=True)
