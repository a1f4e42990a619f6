"""Which files a predicate needs: never one too few."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from freezeframe.errors import TypeMismatch
from freezeframe.log.format.action_columns import from_adds
from freezeframe.log.format.actions import Add
from freezeframe.log.format.conversion import PartitionColumns
from freezeframe.log.scan.block_index import Skipper, column_bounds
from freezeframe.log.scan.data_skipping import FileFacts, as_expression, columns_of, keep

N, S, T = pc.field("n"), pc.field("s"), pc.field("t")
SCHEMA = pa.schema(
    [("n", pa.int64()), ("s", pa.string()), ("t", pa.timestamp("us", "UTC")), ("f", pa.float64())]
)


def kept(where, statistics, partition=None, key="n"):
    text = statistics if isinstance(statistics, str | None) else json.dumps(statistics)
    schema = pa.schema([SCHEMA.field(name) for name in columns_of(where, SCHEMA)])
    [answer] = keep(
        where, schema, [FileFacts(partition or {}, text)], {name: name for name in SCHEMA.names} | {"n": key}
    )
    return answer


RANGE = {
    "numRecords": 9,
    "minValues": {"n": 1, "s": "b"},
    "maxValues": {"n": 5, "s": "d"},
    "nullCount": {"n": 0},
}


@pytest.mark.parametrize(
    ("where", "answer"),
    [
        (N > 5, False),
        (N >= 5, True),
        (N < 1, False),
        (N == 0, False),
        (N == 3, True),
        (N.isin([7, 8]), False),
        (N.isin([7, 5]), True),
        ((N > 7) | (S == "c"), True),
        ((N > 7) & (S == "c"), False),
        (S == "a", False),
        (S > "d", False),
        (~(N > 0), False),
        (~(N > 3), True),
        (N != 3, True),
    ],
)
def test_bounds_leave_files_out(where, answer):
    """A file is left out exactly when its bounds rule out every row."""
    assert answer == kept(where, RANGE)


@pytest.mark.parametrize(
    "statistics", [None, "", "{", "[]", "{}", '{"minValues":7}', '{"minValues":{"n":"x"}}']
)
def test_unusable_statistics_leave_no_file_out(statistics):
    """Missing, torn or foreign statistics are none."""
    assert kept(N > 100, statistics)


def test_nothing_but_nulls():
    """A column that is null throughout matches only predicates that nulls match."""
    nulls = {"numRecords": 3, "nullCount": {"n": 3}}
    assert [kept(where, nulls) for where in (N > 1, N.is_null(), N.is_valid())] == [False, True, False]


def test_nulls_among_values_are_not_forgotten():
    """Bounds say nothing about nulls."""
    assert kept(N.is_null(), {**RANGE, "nullCount": {"n": 2}})
    assert kept(N.is_null(), {key: value for key, value in RANGE.items() if key != "nullCount"})


def test_cut_times_are_read_as_reaching_a_millisecond_further():
    """A maximum that another writer cut to milliseconds does not hide the microseconds after it."""
    cut = {
        "maxValues": {"t": "2020-01-01T00:00:00.000Z"},
        "minValues": {"t": "2019-01-01T00:00:00.000+00:00"},
    }
    base = pa.scalar("2020-01-01T00:00:00.000900Z").cast(pa.timestamp("us", "UTC"))
    later = pa.scalar("2020-01-01T00:00:00.001001Z").cast(pa.timestamp("us", "UTC"))
    assert [kept(T >= pc.scalar(moment), cut) for moment in (base, later)] == [True, False]


@pytest.mark.parametrize(
    ("text", "moment", "answer"),
    [
        ("1850-01-01T00:00:00.000+01:12", "1849-12-31T22:47:32Z", True),  # Stockholm had 01:12:28
        ("1850-01-01T00:00:00.000-00:25", "1850-01-01T00:25:21Z", True),  # Dublin had -00:25:21
        ("1850-01-01T00:00:00.000+01:12", "1849-12-31T22:46:59Z", False),
        ("2020-01-01T00:00:00.000+01:12", "2019-12-31T22:47:32Z", False),
    ],
)
@pytest.mark.parametrize("files", [1, 5000])
def test_offsets_of_old_times_may_lack_their_seconds(text, moment, answer, files):
    """Some releases of Delta cut them off, so the bounds of old times reach a minute further."""
    bounds = json.dumps({"numRecords": 1, "minValues": {"t": text}, "maxValues": {"t": text}})
    found = column_bounds(pa.chunked_array([[bounds] * files]), SCHEMA.field("t"), "t")
    stored = pa.scalar(moment).cast(pa.timestamp("us", "UTC")).value
    low, high = (side[0].value for side in (found.low, found.high))
    assert answer == (low <= stored <= high)


def test_nan_bounds_nothing():
    """A maximum that is NaN (as Spark writes it) leaves no file out."""
    assert kept(pc.field("f") > 1e300, {"maxValues": {"f": "NaN"}, "minValues": {"f": 1.0}})
    assert not kept(pc.field("f") < 0, {"maxValues": {"f": "NaN"}, "minValues": {"f": 1.0}})


@pytest.mark.parametrize("files", [1, 5000])
def test_bounds_of_a_double_hold_the_float_that_they_may_stand_for(files):
    """The text of a float is that of another double; texts of few files are parsed otherwise."""
    random = np.random.default_rng(files)
    singles = random.integers(0, 2**32, files, np.uint32).view(np.float32)
    singles = singles[np.isfinite(singles)]
    bounds = [f'{{"v":{number!s}}}' for number in singles]
    texts = [f'{{"numRecords":2,"minValues":{bound},"maxValues":{bound}}}' for bound in bounds]
    found = column_bounds(pa.chunked_array([texts], pa.string()), pa.field("v", pa.float64()), "v")
    low, high = (np.array(side.to_pylist()) for side in (found.low, found.high))
    values = singles.astype(float)
    assert len(values) == sum((low <= values) & (values <= high))
    assert np.allclose(low, high, rtol=1e-6, atol=1e-44)


def test_partition_values_decide_before_statistics():
    """A partition value is exact, null included."""
    seven = {"n": pa.scalar(7, pa.int64())}
    assert [kept(where, None, seven) for where in (N == 7, N == 8)] == [True, False]
    null = {"n": pa.scalar(None, pa.int64())}
    assert [kept(where, None, null) for where in (N == 7, N.is_null())] == [False, True]


def test_statistics_are_found_under_physical_names():
    """With column mapping the statistics' keys are physical names."""
    assert not kept(N > 5, {"maxValues": {"col-1": 5}}, key="col-1")


def test_the_columns_of_a_predicate():
    """The columns that a predicate needs, of any form, in the order of the schema."""
    where = as_expression([[("s", "=", "x"), ("n", "in", [1])], [("s", "!=", "y")]], SCHEMA)
    assert columns_of(where, SCHEMA) == ["n", "s"]
    assert columns_of(T.is_null(), SCHEMA) == ["t"]


@pytest.mark.parametrize("text", ["n like 'a%'", "s = n"])
def test_a_predicate_for_columns_of_other_types_is_told_from_one_of_bad_syntax(text):
    """It has the code of a comparison with a value of another type."""
    with pytest.raises(TypeMismatch, match="cannot be applied"):
        columns_of(as_expression(text, SCHEMA), SCHEMA)


X, Y = pc.field("x"), pc.field("y")


@pytest.mark.parametrize(
    ("where", "answer"),
    [
        (~(X >= 5.0), True),
        (X >= 5.0, True),
        (X < 5.0, False),
        (X != 5.0, True),
        (~X.isin([5.0]), True),
        (X.isin([7.0]), False),
        (X.is_nan(), True),
        (~(X >= 5.0) & (Y > 9.0), False),
        (~(X >= 5.0) & ~(Y < 9.0), True),
        ((X < 5.0) | (Y > 9.0), False),
        ((X < 5.0) | (pc.field("n") == 1), False),
        ((X < 5.0) | (pc.field("n") == 5), True),
    ],
)
@pytest.mark.parametrize("files", [1, pytest.param(3000, marks=pytest.mark.nightly)])
def test_bounds_say_nothing_of_nan(where, answer, files):
    """A file whose bounds rule out every number may hold NaN, which other predicates match."""
    schema = pa.schema([("x", pa.float64()), ("y", pa.float32()), ("n", pa.int64())])
    bounds = {"x": 5.0, "y": 5.0, "n": 5}
    text = json.dumps({"numRecords": 2, "minValues": bounds, "maxValues": bounds})
    columns = columns_of(where, schema)
    asked = pa.schema([schema.field(name) for name in columns])
    found = Skipper(where, asked, {name: name for name in schema.names}, PartitionColumns({})).mask(
        from_adds(Add(f"f{number}", 1, stats=text) for number in range(files))
    )
    assert [answer] == sorted(set(found.tolist()))


def test_a_file_is_kept_for_its_bounds_or_for_nan():
    """Where NaN meets the predicate beside another partition, the bounds decide for this one."""
    schema = pa.schema([("f", pa.float64()), ("p", pa.int64())])
    f, p = pc.field("f"), pc.field("p")
    where = ((f < 5.0) & (p == 1)) | (~(f <= 100.0) & (p == 2))
    statistics = json.dumps({"numRecords": 1, "minValues": {"f": 0.5}, "maxValues": {"f": 3.0}})
    files = [FileFacts({"p": pa.scalar(number, pa.int64())}, statistics) for number in (1, 2, 3)]
    assert [True, True, False] == keep(where, schema, files, {"f": "f", "p": "p"})
