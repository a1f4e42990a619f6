"""Statistics and partition values as typed structs, for checkpoints that are asked to have them."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from freezeframe.log.scan.parsed_statistics import (
    parse_partition_values,
    parse_statistics,
    partition_type,
    statistics_type,
)
from freezeframe.log.segments.checkpoint_columns import statistics_texts


def schema_of(**types):
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {"delta.columnMapping.physicalName": name}}
        for name, kind in types.items()
    ]
    return {"type": "struct", "fields": fields}


INNER = schema_of(x="integer", words={"type": "array", "elementType": "string", "containsNull": True})
SCHEMA = schema_of(
    p="date",
    n="long",
    d="decimal(20,2)",
    f="double",
    day="date",
    at="timestamp",
    local="timestamp_ntz",
    name="string",
    flag="boolean",
    raw="binary",
    inner=INNER,
)
TYPE = statistics_type(SCHEMA, ["p"])


def parsed(*statistics):
    texts = [
        statistic if statistic is None or isinstance(statistic, str) else json.dumps(statistic)
        for statistic in statistics
    ]
    return parse_statistics(pa.chunked_array([texts], pa.string()), TYPE).to_pylist()


def test_the_type_has_bounds_where_they_are_ordered_and_null_counts_everywhere():
    """Partition columns have neither; a list has a count and no bounds."""
    bounds = [field.name for field in TYPE.field("minValues").type]
    counts = [field.name for field in TYPE.field("nullCount").type]
    assert bounds == ["n", "d", "f", "day", "at", "local", "name", "inner"]
    assert counts == ["n", "d", "f", "day", "at", "local", "name", "flag", "raw", "inner"]
    assert [field.name for field in TYPE.field("minValues").type.field("inner").type] == ["x"]
    assert [field.name for field in TYPE.field("nullCount").type.field("inner").type] == ["x", "words"]


BOUNDS = {
    "n": (7, 7),
    "f": (1.5, 1.5),
    "day": ("2024-02-29", date(2024, 2, 29)),
    "at": ("2024-01-01T00:00:00.001Z", datetime(2024, 1, 1, 0, 0, 0, 1000, UTC)),
    "local": ("2024-01-01T00:00:00.001", datetime(2024, 1, 1, 0, 0, 0, 1000)),  # noqa: DTZ001 - has no zone
    "name": ('a "quoted" é', 'a "quoted" é'),
    "inner": ({"x": 3}, {"x": 3}),
}


@pytest.mark.parametrize("odd", [None, "line\nbreak"])
def test_bounds_have_the_types_of_their_columns(odd):
    """In one go, and one by one where a text is not like the others."""
    texts = {name: text for name, (text, _) in BOUNDS.items()}
    found = parsed({"numRecords": 2, "minValues": texts, "tightBounds": True}, {"minValues": {"name": odd}})
    values = found[0]["minValues"]
    assert {name: values[name] for name in BOUNDS} == {name: value for name, (_, value) in BOUNDS.items()}
    assert (found[0]["numRecords"], found[0]["tightBounds"], found[0]["nullCount"]) == (2, True, None)
    assert found[1]["minValues"]["name"] == odd


@pytest.mark.parametrize("odd", [None, "line\nbreak"])
def test_decimals_keep_their_digits(odd):
    """A text of 19 digits is not a floating number on the way."""
    text = '{"numRecords":1,"minValues":{"d":12345678901234567.89}}'
    found = parsed(text, {"minValues": {"name": odd}})
    assert found[0]["minValues"]["d"] == Decimal("12345678901234567.89")


@pytest.mark.parametrize(
    "odd",
    [
        {"minValues": {"f": "NaN", "n": 1}},
        {"minValues": {"day": "+10000-01-01", "n": 1}},
        {"minValues": {"at": "nonsense", "n": 1}},
        {"minValues": {"d": "x", "n": 1}},
        {"minValues": {"inner": 3, "n": 1}},
        {"minValues": {"n": 1}, "unknown": {"n": 2}},
    ],
)
def test_an_odd_value_costs_its_file_no_other_bound(odd):
    """It is left out, or kept where the type has it; other files are not concerned."""
    first, second = parsed(odd, {"minValues": {"n": 5, "name": "x"}})
    assert (first["minValues"]["n"], second["minValues"]["n"], second["minValues"]["name"]) == (1, 5, "x")


def test_a_column_that_was_widened_from_float_has_no_bounds():
    """The text of a float is not the double that the type would make of it, and others read the struct."""
    schema = schema_of(d="double", n="long")
    for name, was in (("d", "float"), ("n", "integer")):
        field = next(field for field in schema["fields"] if field["name"] == name)
        field["metadata"] = {"delta.typeChanges": [{"fromType": was, "toType": field["type"]}]}
    kind = statistics_type(schema, [])
    names = {part: [field.name for field in kind.field(part).type] for part in ("maxValues", "nullCount")}
    assert {"maxValues": ["n"], "nullCount": ["d", "n"]} == names


@pytest.mark.parametrize("text", [None, "", "not JSON", "[]"])
def test_what_is_no_object_is_null(text):
    """Statistics are optional, so that unusable ones are none."""
    assert parsed(text, {"numRecords": 1})[0] is None


def test_a_struct_comes_back_as_the_text_that_it_was():
    """What a reader makes of the struct says the same as the text."""
    one = {
        "numRecords": 3,
        "minValues": {"n": 1, "day": "2024-02-29", "at": "2024-01-01T00:00:00.001Z", "inner": {"x": 2}},
        "maxValues": {"n": 9, "name": "zz"},
        "nullCount": {"n": 0, "flag": 1, "inner": {"x": 0, "words": 3}},
        "tightBounds": False,
    }
    structs = parse_statistics(pa.chunked_array([[json.dumps(one)]]), TYPE)
    assert json.loads(statistics_texts(structs)[0].as_py()) == one


def test_partition_values_have_the_types_of_their_columns():
    """By physical names; the empty text is null, and so is one that is not of the type."""
    kind = partition_type(schema_of(p="date", n="integer", s="string"), ["p", "n", "s"])
    texts = pa.map_(pa.string(), pa.string())
    rows = [
        [("p", "2024-02-29"), ("n", "7"), ("s", "")],
        [("p", None), ("n", "x"), ("s", "a")],
        [("p", "2024-02-29"), ("n", "8")],
    ]
    found = parse_partition_values(pa.chunked_array([pa.array(rows, texts)]), kind).to_pylist()
    assert found == [
        {"p": date(2024, 2, 29), "n": 7, "s": None},
        {"p": None, "n": None, "s": "a"},
        {"p": date(2024, 2, 29), "n": 8, "s": None},
    ]
