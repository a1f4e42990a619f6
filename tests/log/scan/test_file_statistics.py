"""Statistics of a data file from its footer alone."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.old_calendar import OLD

from freezeframe.errors import CorruptData
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.scan.file_statistics import bounded_columns, file_statistics, statistics_text


def parquet(table, **options):
    sink = BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def of(values, kind, **options):
    table = pa.table({"c": pa.array(values, kind)})
    return file_statistics(parquet(table, **options), arrow_to_delta(table.schema))


def test_counts_and_bounds_over_row_groups():
    """Rows, nulls, least and greatest are taken over all row groups."""
    found = of([5, None, 3, 9, None, 7], pa.int64(), row_group_size=2)
    assert found == {
        "numRecords": 6,
        "minValues": {"c": 3},
        "maxValues": {"c": 9},
        "nullCount": {"c": 2},
        "tightBounds": True,
    }


@pytest.mark.parametrize(
    ("values", "kind", "least", "greatest"),
    [
        ([None, None, 3, 9], pa.int32(), {"c": 3}, {"c": 9}),  # in groups, of which one has no bounds
        ([None, None], pa.string(), {}, {}),
        (["b" * 40], pa.string(), {"c": "b" * 32}, {"c": "b" * 32 + "\x7f"}),
        (["é" * 33], pa.string(), {"c": "é" * 32}, {"c": "é" * 32 + "\U0010ffff"}),
        (["\U0010ffff" * 100], pa.string(), {"c": "\U0010ffff" * 32}, {}),  # nothing is above it
        ([1.5, float("nan"), -2.0], pa.float64(), {"c": -2.0}, {}),  # a footer hides NaN, above every number
        ([float("nan")], pa.float32(), {}, {}),  # no number of JSON, nor is an infinity
        ([float("-inf")], pa.float32(), {}, {}),
        ([], pa.float32(), {}, {}),
        ([True, None], pa.bool_(), {}, {}),  # types that Delta does not order
        ([b"a", None], pa.binary(), {}, {}),
    ],
)
def test_bounds_are_claimed_where_they_hold(values, kind, least, greatest):
    """Text is cut at 32 characters, its maximum with a character above; nulls are counted in any type."""
    found = of(values, kind, row_group_size=2)
    assert (least, greatest) == (found["minValues"], found["maxValues"])
    assert {"c": values.count(None)} == found["nullCount"]


def test_times_are_milliseconds_around_the_values():
    """A minimum is rounded down and a maximum up, before 1970 too; beyond the year 9999 there are none."""
    for year in (2020, 1905):
        start = datetime(year, 1, 1, 0, 0, 0, 1500, tzinfo=UTC).replace(tzinfo=None)
        found = of([start], pa.timestamp("us"))
        assert start.isoformat()[:20] + "001" == found["minValues"]["c"]
        assert start.isoformat()[:20] + "002" == found["maxValues"]["c"]
    instant = of([datetime(2020, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert "2020-01-01T00:00:00.000Z" == instant["maxValues"]["c"] == instant["minValues"]["c"]
    assert of([10_000_000], pa.date32())["maxValues"] == {}
    assert of([9_000_000_000_000_000_00], pa.timestamp("us"))["maxValues"] == {}


def test_dates_and_decimals_are_exact():
    """Dates are ISO text and decimals keep all digits in the JSON text."""
    big = Decimal("12345678901234567890123456789012345.678")
    assert of([date(2020, 2, 29)], pa.date32())["minValues"]["c"] == "2020-02-29"
    text = statistics_text(of([big], pa.decimal128(38, 3)))
    assert '"minValues":{"c":12345678901234567890123456789012345.678}' in text
    assert big == json.loads(text, parse_float=Decimal)["minValues"]["c"]


def test_struct_fields_are_nested_and_names_may_hold_dots():
    """Fields of structs are nested objects; a dot in a name is part of the name."""
    table = pa.table({"a.b": pa.array([1]), "a": pa.array([{"b": 7}][:1]), "l": pa.array([[1, None]])})
    found = file_statistics(parquet(table), arrow_to_delta(table.schema))
    assert found["minValues"] == {"a.b": 1, "a": {"b": 7}}
    assert found["nullCount"] == {"a.b": 0, "a": {"b": 0}}


def test_only_the_first_columns_are_covered():
    """Columns after the limit have no statistics, as in Delta."""
    table = pa.table({f"c{n}": [n] for n in range(40)})
    content, schema = parquet(table), arrow_to_delta(table.schema)
    assert len(file_statistics(content, schema)["minValues"]) == 32
    assert len(file_statistics(content, schema, indexed_columns_max=2)["nullCount"]) == 2
    assert len(file_statistics(content, schema, indexed_columns_max=-1)["nullCount"]) == 40


def test_columns_have_their_physical_names_and_are_in_schema_and_file():
    """A column only of the schema, or only of the file, has no statistics."""
    schema = arrow_to_delta(pa.schema([pa.field("odd name", pa.int64()), pa.field("missing", pa.int64())]))
    schema["fields"][0]["metadata"] = {"delta.columnMapping.physicalName": "col-1"}
    found = file_statistics(parquet(pa.table({"col-1": [4], "hidden": [2]})), schema)
    assert found["minValues"] == {"col-1": 4}


def test_what_is_no_parquet_is_damage(tmp_path):
    """A source without a Parquet footer is reported as damaged data."""
    with pytest.raises(CorruptData):
        file_statistics(b"no parquet here", {"type": "struct", "fields": []})


@settings(max_examples=examples(60))
@given(st.lists(st.one_of(st.none(), st.text(max_size=70)), max_size=6))
def test_text_bounds_hold_for_every_value(values):
    """By its UTF-8 bytes every value lies between the bounds that are given."""
    found = of(values, pa.string())
    texts = [value.encode() for value in values if value is not None]
    low, high = found["minValues"].get("c"), found["maxValues"].get("c")
    assert all(low.encode() <= text for text in texts) if low is not None else True
    assert all(text <= high.encode() for text in texts) if high is not None else True
    assert values.count(None) == found["nullCount"]["c"]


@settings(max_examples=examples(40))
@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1), st.integers(1, 4))
def test_integer_bounds_are_exact(values, rows_per_group):
    """For integers the bounds are the least and the greatest, whatever the row groups."""
    found = of(values, pa.int64(), row_group_size=rows_per_group)
    bounds = pc.min_max(pa.array(values, pa.int64())).as_py()
    assert bounds == {"min": found["minValues"].get("c"), "max": found["maxValues"].get("c")}


def test_bounds_in_the_old_calendar_are_no_bounds():
    """Dates and times are counted otherwise than the table counts them; the other columns keep theirs."""
    table = pa.table(OLD).replace_schema_metadata({"org.apache.spark.version": "2.4.8"})

    found = file_statistics(parquet(table), arrow_to_delta(table.schema))

    assert {"id": 1} == found["minValues"]
    assert {"id": 2} == found["maxValues"]
    assert {"id": 0, "d": 0, "t": 0} == found["nullCount"]


def test_floating_columns_get_no_bounds_in_a_footer():
    """At any depth, for bounds pass over NaN; nor does a column with the dotted name of one."""
    floating = pa.scalar({"b": 0.5, "c": 1}, pa.struct([("b", pa.float32()), ("c", pa.int64())]))
    table = pa.table(
        {
            "f": [0.1, float("nan")],
            "n": [1, 2],
            "a": pa.array([floating, None], floating.type),
            "a.b": [3, 4],
            "l": [[0.5], None],
            "m": pa.array([[("x", 0.5)], []], pa.map_(pa.string(), pa.float64())),
            "t": pa.array([["x"], []]),
        }
    )

    content = parquet(table, write_statistics=bounded_columns(table.schema))

    group = pq.read_metadata(BytesIO(content)).row_group(0)
    chunks = [group.column(place) for place in range(group.num_columns)]
    assert ["n", "a.c", "m.key_value.key", "t.list.element"] == [
        chunk.path_in_schema for chunk in chunks if chunk.statistics is not None
    ]
    assert bounded_columns(table.select(["n", "t"]).schema) is True
    assert bounded_columns(pa.schema([("f", pa.float64())])) == []


def test_floating_columns_without_bounds_in_the_footer_are_counted():
    """Their nulls and least values come from the values, in structs as well; NaN is passed over."""
    numbers = [2.5, float("nan"), None, -1.5]
    table = pa.table(
        {
            "f": numbers,
            "s": pa.array([None, {"g": 7.0}, {"g": None}, {"g": 8.0}]),
            "n": pa.array([float("nan")] * 4, pa.float32()),
            "a.b": [1.0] * 4,
            "a": [{"b": 2.0}] * 4,
        }
    )

    content = parquet(table, write_statistics=bounded_columns(table.schema), row_group_size=2)
    found = file_statistics(content, arrow_to_delta(table.schema))

    assert {"f": -1.5, "s": {"g": 7.0}} == found["minValues"]
    assert {"f": 1, "s": {"g": 2}, "n": 0} == found["nullCount"]
    assert {} == found["maxValues"]
