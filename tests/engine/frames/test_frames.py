"""What goes in comes out: pandas and Arrow at the edge, refusals included."""

# ruff: noqa: DTZ001 - datetimes without a zone are among the values to keep

import datetime as dt
import uuid
from decimal import Decimal
from types import NoneType
from typing import get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.text_types import TEXT_TYPES, text_type

from freezeframe.engine.frames.frames import DtypeBackend, require_library, to_pandas
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import BadInput, InvalidOption, SchemaDriftError

UTC = pa.timestamp("us", tz="UTC")
NAIVE = pa.timestamp("us")


def objects(*values):
    return pd.Series(list(values), dtype=object)


def arrow_of(series):
    table = Rows(pd.DataFrame({"a": series})).to_arrow()
    return table.schema.field("a").type, table["a"].to_pylist()


def test_the_library_of_a_frame_is_named():
    """Frames are told apart without loading Spark."""
    spark_frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    assert Rows(pd.DataFrame()).library == "pandas"
    assert Rows(pa.table({})).library == "arrow"
    assert Rows(pa.record_batch({"a": [1]})).library == "arrow"
    assert Rows(spark_frame).library == "spark"


def test_other_things_are_refused_by_their_type():
    """A list of rows is not a frame, and the message says what it is."""
    with pytest.raises(BadInput, match=r"builtins\.list"):
        Rows([{"a": 1}]).to_arrow()


def test_a_spark_frame_is_not_pulled_into_this_process():
    """The rows of a Spark frame stay in Spark."""
    spark_frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    with pytest.raises(BadInput, match="toArrow"):
        Rows(spark_frame).to_arrow()


KEPT = [
    (objects(True, None, np.nan, pd.NA), pa.bool_(), [True, None, None, None]),
    (objects("nan", "NA", "", None, "007"), pa.string(), ["nan", "NA", "", None, "007"]),
    (objects(2**53 + 1, None, np.nan), pa.int64(), [2**53 + 1, None, None]),
    (objects(1, 2**63), pa.decimal128(38, 0), [Decimal(1), Decimal(2**63)]),
    (objects(1, 1.5), pa.float64(), [1.0, 1.5]),
    (objects(Decimal("1.10"), Decimal(100), None), pa.decimal128(38, 2), [Decimal("1.10"), 100, None]),
    (objects(Decimal("NaN"), Decimal(1), 2), pa.decimal128(38, 0), [None, 1, 2]),
    (objects(dt.date(2020, 1, 1), pd.NaT), pa.date32(), [dt.date(2020, 1, 1), None]),
    (
        objects(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1)),
        NAIVE,
        [dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1)],
    ),
    (objects(b"\x00", bytearray(b"x"), None), pa.binary(), [b"\x00", b"x", None]),
    (objects(uuid.UUID(int=1), None), pa.string(), ["00000000-0000-0000-0000-000000000001", None]),
    (objects([1, None], [np.nan]), pa.list_(pa.int64()), [[1, None], [None]]),
    (objects(np.array([1.5, np.nan])), pa.list_(pa.float64()), [[1.5, None]]),
    (
        objects({"a": 1}, {"b": ["x"]}, None),
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]),
        [{"a": 1, "b": None}, {"a": None, "b": ["x"]}, None],
    ),
    (objects(np.float16(0.5), 1), pa.float64(), [0.5, 1.0]),
    (objects(np.int8(1), 300), pa.int64(), [1, 300]),
    (objects([np.float16(0.5), 1]), pa.list_(pa.float64()), [[0.5, 1.0]]),
    (
        objects({"u": uuid.UUID(int=1), "d": Decimal("1.10"), "i": 2**63}, {"d": Decimal(1), "n": np.nan}),
        pa.struct(
            [("u", pa.string()), ("d", pa.decimal128(38, 2)), ("i", pa.decimal128(38, 0)), ("n", pa.null())]
        ),
        [
            {"u": str(uuid.UUID(int=1)), "d": Decimal("1.10"), "i": Decimal(2**63), "n": None},
            {"u": None, "d": Decimal(1), "i": None, "n": None},
        ],
    ),
    (objects({}, None), pa.struct([]), [{}, None]),
    (
        objects([[("k", 1)], []], [], None),
        pa.list_(pa.map_(pa.string(), pa.int64())),
        [[[("k", 1)], []], [], None],
    ),
    (objects([(2**53 + 1, 1.5)]), pa.map_(pa.int64(), pa.float64()), [[(2**53 + 1, 1.5)]]),
    (
        objects(np.array(["2026-01-02", "NaT"], "datetime64[us]"), None),
        pa.list_(NAIVE),
        [[dt.datetime(2026, 1, 2), None], None],
    ),
    (objects(None, np.nan, pd.NaT), pa.null(), [None, None, None]),
    (pd.Series([1, None], dtype="Int64"), pa.int64(), [1, None]),
    (pd.Series([None, None], dtype="Int64"), pa.null(), [None, None]),
    (pd.Series([True, None], dtype="boolean"), pa.bool_(), [True, None]),
    (pd.Series(["a", None], dtype="string[python]"), pa.string(), ["a", None]),
    (pd.Series(["a", None], dtype="string[pyarrow]"), pa.string(), ["a", None]),
    (pd.Series(["b", "a", None], dtype="category"), pa.string(), ["b", "a", None]),
    (pd.Series([2**53 + 1, None], dtype=pd.ArrowDtype(pa.int64())), pa.int64(), [2**53 + 1, None]),
    (pd.Series([1.5, np.nan]), pa.float64(), [1.5, None]),
    (pd.Series([1.5, float("nan")], dtype=pd.ArrowDtype(pa.float64())), pa.float64(), [1.5, None]),
    (pd.Series(pd.array([0.0, 1.0], "Float64") / pd.array([0.0, 1.0], "Float64")), pa.float64(), [None, 1.0]),
    (pd.Series([1.5, np.nan], dtype="Sparse[float]"), pa.float64(), [1.5, None]),
    (pd.Series([1.5], dtype="float16"), pa.float32(), [1.5]),
    (pd.Series([np.nan, np.nan]), pa.null(), [None, None]),
    (pd.Series([], dtype="float64"), pa.float64(), []),
    (pd.Series([200], dtype="uint8"), pa.int16(), [200]),
    (pd.Series([1], dtype="uint64"), pa.int64(), [1]),
    (pd.Series([2**64 - 1], dtype="uint64"), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
    (
        pd.Series(pd.to_datetime(["2020-01-01T00:00:00.123456", None])),
        NAIVE,
        [dt.datetime(2020, 1, 1, 0, 0, 0, 123456), None],
    ),
    (
        pd.Series(pd.to_datetime(["2020-07-01"])).dt.tz_localize("Europe/Berlin"),
        UTC,
        [dt.datetime(2020, 6, 30, 22, tzinfo=dt.UTC)],
    ),
    (
        objects(pd.Timestamp("2020-07-01", tz="Europe/Berlin"), pd.Timestamp("2020-07-01", tz="UTC")),
        UTC,
        [dt.datetime(2020, 6, 30, 22, tzinfo=dt.UTC), dt.datetime(2020, 7, 1, tzinfo=dt.UTC)],
    ),
]


@pytest.mark.parametrize(("series", "kind", "values"), KEPT)
def test_pandas_values_are_kept_and_missing_ones_are_null(series, kind, values):
    """Each pandas representation becomes one Arrow type with the very same values."""
    assert (kind, values) == arrow_of(series)


REFUSED = [
    (objects(1, "a", 2, "b"), r"integer \(rows 0, 2\) and text \(rows 1, 3\)"),
    (objects("b", b"a"), r"bytes \(rows 1\) and text \(rows 0\)"),
    (objects(1.5, True), "boolean"),
    (objects(Decimal(1), 1.5), "decimal"),
    (objects(dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)), r"date \(rows 0\) and naive datetime"),
    (objects(pd.Timestamp("2020", tz="UTC"), pd.Timestamp("2020")), "naive datetime"),
    (objects({"a": 1}, {"a": "x"}), r"'a\.a' mixes"),
    (objects([1, "x"]), r"'a\[\]' mixes"),
    (objects(2**53 + 1, 1.5), "outside of the range"),
    (objects(10**38), r"\(rows 0\)"),
    (objects(Decimal("1" * 39)), "38"),
    (objects(Decimal("Infinity")), "infinite decimal"),
    (objects(pd.Timestamp("2020-01-01T00:00:00.123456789")), "nanoseconds"),
    (
        pd.Series(pd.to_datetime(["2020-01-01", "2020-01-01T00:00:00.123456789"], format="ISO8601")),
        "rows 1 are the first",
    ),
    (objects(dt.timedelta(1)), "duration"),
    (pd.Series([pd.Timedelta(1)]), "duration"),
    (objects(dt.time(1)), "time of day"),
    (objects({1, 2}), r"builtins\.set"),
    (objects("a", "\ud800"), r"text \(rows 1\)"),
    (pd.Series([1 + 2j]), "complex128"),
    (pd.Series([pd.Period("2020")]), "period"),
    (objects(1, "a").astype("category"), "mixes"),
    (objects(np.bool_(True), 2), r"boolean \(rows 0\) and integer"),
    (objects(np.datetime64("2026-01-01"), np.int64(1)), r"datetime64\[D\] \(rows 0\) and integer"),
    (objects(np.datetime64("2026-01-01", "ns"), np.float64(1)), r"datetime64\[ns\] \(rows 0\) and float"),
    (objects([np.datetime64("2026-01-01"), np.int64(1)]), r"'a\[\]' mixes"),
    (objects({"a": np.datetime64("2026-01-01")}, {"a": np.int64(1)}), r"'a\.a' mixes"),
    (objects(np.datetime64("2026-01", "M")), "datetime64"),
    (objects(np.zeros((2, 2)), None), r"an array of 2 dimensions \(rows 0\)"),
    (objects(pd.Series([1]), None), r"Series \(rows 0\)"),
    (objects(Decimal(1), Decimal("sNaN")), r"a signalling NaN \(rows 1\)"),
    (objects({1: 2}), "members is text"),
]


@pytest.mark.parametrize(("series", "message"), REFUSED)
def test_what_cannot_be_kept_is_refused_by_name(series, message):
    """A column that mixes kinds, or that Delta cannot hold unchanged, is an error naming it."""
    with pytest.raises(SchemaDriftError, match=message) as caught:
        Rows(pd.DataFrame({"a": series})).to_arrow()
    assert caught.value.details["column"].startswith("a")


ARROW_KEPT = [
    (pa.array(["a", None]).dictionary_encode(), pa.string(), ["a", None]),
    (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
    (pa.array([2**63 - 1], pa.uint64()), pa.int64(), [2**63 - 1]),
    (
        pa.array([1000], pa.timestamp("ns", "Asia/Tokyo")),
        UTC,
        [dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)],
    ),
    (pa.array(["a"], pa.large_string()), pa.string(), ["a"]),
    (pa.array(["a"], pa.string_view()), pa.string(), ["a"]),
    (pa.array([b"abc"], pa.binary(3)), pa.binary(), [b"abc"]),
    (pa.array([[1, None]], pa.large_list(pa.uint8())), pa.list_(pa.int16()), [[1, None]]),
    (pa.array([[1, None]], pa.list_view(pa.int8())), pa.list_(pa.int8()), [[1, None]]),
    (
        pa.array([[("k", 1)]], pa.map_(pa.large_string(), pa.int8())),
        pa.map_(pa.string(), pa.int8()),
        [[("k", 1)]],
    ),
    (pa.array([Decimal(100)], pa.decimal128(3, -2)), pa.decimal128(5, 0), [Decimal(100)]),
    (pa.array([Decimal(1)], pa.decimal256(50, 0)), pa.decimal128(38, 0), [Decimal(1)]),
    (pa.array([b"\x00" * 16], pa.uuid()), pa.string(), ["00000000-0000-0000-0000-000000000000"]),
    (pa.array(['{"a":1}'], pa.json_()), pa.string(), ['{"a":1}']),
    (pa.array([None], pa.int64()), pa.int64(), [None]),
]


@pytest.mark.parametrize(("column", "kind", "values"), ARROW_KEPT)
def test_arrow_encodings_are_undone_and_values_kept(column, kind, values):
    """An Arrow column arrives in the type that a stream keeps, with the same values."""
    table = Rows(pa.table({"a": column})).to_arrow()
    assert (kind, values) == (table.schema.field("a").type, table["a"].to_pylist())


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([0, 1], pa.timestamp("ns")), "rows 1 are the first"),
        (pa.array([{"t": 1}], pa.struct([("t", pa.timestamp("ns"))])), "rows 0"),
        (pa.array([1], pa.time32("s")), "time32"),
        (pa.array([1], pa.duration("s")), "duration"),
        (pa.array([Decimal(10) ** 40], pa.decimal256(50, 0)), "rows 0"),
    ],
)
def test_arrow_values_that_would_change_are_refused(column, message):
    """Nothing is rounded and no type is invented."""
    with pytest.raises(SchemaDriftError, match=message):
        Rows(pa.table({"a": column})).to_arrow()


@pytest.mark.parametrize("mark", ["variant", "geometry", "geography"])
def test_what_spark_encodes_as_a_struct_is_refused(mark):
    """A VARIANT of Spark's is two binaries in Arrow, which nobody could read as a value again."""
    fields = [
        pa.field("value", pa.binary()),
        pa.field("metadata", pa.binary(), nullable=False, metadata={mark: "true"}),
    ]
    rows = pa.array([{"value": b"1", "metadata": b"2"}], pa.struct(fields))
    for column in (rows, pa.array([[rows[0].as_py()]], pa.list_(rows.type))):
        with pytest.raises(SchemaDriftError, match=r"'v.*' has the type .*, which a stream cannot keep"):
            Rows(pa.table({"v": column})).to_arrow()


def test_nan_stays_nan_in_arrow():
    """Arrow can tell NaN from NULL, so it does."""
    values = Rows(pa.table({"a": [float("nan"), None]})).to_arrow()["a"].to_pylist()
    assert values[0] != values[0]
    assert values[1] is None


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "'x'"),
        (pa.table([[1], [2]], names=["x", "x"]), "'x'"),
        (pd.DataFrame([[1, 2]]), "0, 1"),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), r"\('a', 'b'\)"),
    ],
    ids=["pandas", "arrow", "numbers", "levels"],
)
def test_column_names_must_be_text_and_unique(frame, named):
    """Columns that a stream could not tell apart are refused, naming them."""
    with pytest.raises(BadInput, match=named):
        Rows(frame).to_arrow()


def test_the_index_is_not_data():
    """The seed drops the index when it writes, and so do we."""
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="key"))
    assert Rows(frame).to_arrow().column_names == ["a"]


EVERY_KIND = pa.table(
    {
        "text": pa.array(["", None]),
        "whole": pa.array([7, None]),
        "long": pa.array([2**53 + 1, None]),
        "small": pa.array([7, 8], pa.int8()),
        "double": pa.array([1.5, None]),
        "flag": pa.array([True, None]),
        "sure": pa.array([True, False]),
        "instant": pa.array([0, None], UTC),
        "local": pa.array([0, None], NAIVE),
        "amount": pa.array([Decimal("1.10"), None], pa.decimal128(38, 2)),
        "day": pa.array([dt.date(2020, 1, 1), None]),
        "bytes": pa.array([b"x", None]),
        "list": pa.array([[2**53 + 1, None], None]),
        "struct": pa.array([{"a": 1}, None]),
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "empty": pa.nulls(2),
    }
)


def test_a_pandas_frame_has_the_types_that_pandas_itself_makes():
    """Text is what pandas makes of it, integers beside missing ones are floats: no value changes by it."""
    frame = to_pandas(EVERY_KIND)

    ordinary = {
        "text": str(pd.Series(["text"]).dtype),  # objects of str on pandas 2
        "whole": "float64",
        "long": "Int64",
        "small": "int8",
        "double": "float64",
        "sure": "bool",
        "instant": "datetime64[us, UTC]",
        "local": "datetime64[us]",
    }
    assert {name: ordinary.get(name, "object") for name in frame} == frame.dtypes.astype(str).to_dict()
    assert [True, "", Decimal("1.10"), dt.date(2020, 1, 1), b"x", {"a": 1}, [("k", 1)]] == [
        frame[name][0] for name in ("flag", "text", "amount", "day", "bytes", "struct", "map")
    ]
    assert isinstance(frame["list"][0], np.ndarray)
    assert [2**53 + 1, None] == frame["list"][0].tolist()
    assert frame.loc[1].drop(["small", "sure"]).isna().all()
    missing = {name: type(frame[name][1]) for name in ("text", "flag", "empty", "amount", "day", "list")}
    assert {"text": float, "flag": float, "empty": float, "amount": NoneType, "day": NoneType} | {
        "list": NoneType
    } == missing


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.timestamp("us", "UTC")]
)
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_a_frame_that_was_read_can_be_changed(kind, backend):
    """Its memory is its own, not Arrow's: a cell is set and the table stays as it was."""
    table = pa.table({"v": pa.array([1, 0, 1]).cast(pa.int64()).cast(kind)})
    frame = to_pandas(table, backend)

    frame.loc[1, "v"] = frame.loc[0, "v"]

    assert len(set(frame["v"])) == 1
    assert pc.count_distinct(table["v"]).as_py() == 2


@pytest.mark.parametrize("on", TEXT_TYPES, ids=str)
def test_pandas_own_text_type_is_taken_where_it_is_on(on):
    """Text has the type ``str`` on pandas 3, and on pandas 2 with ``future.infer_string``."""
    with text_type(on):
        frame = to_pandas(EVERY_KIND)
        assert frame["text"].dtype == pd.Series([""]).dtype
        assert (frame["text"].dtype == object) == (on == "object")
        assert Rows(frame[["text"]]).to_arrow() == EVERY_KIND.select(["text"])


@pytest.mark.parametrize(
    ("backend", "types"),
    [
        ("numpy_nullable", {"text": "string", "whole": "Int64", "double": "Float64", "flag": "boolean"}),
        ("pyarrow", {"text": "string[pyarrow]", "whole": "int64[pyarrow]", "day": "date32[day][pyarrow]"}),
    ],
)
def test_other_types_of_pandas_are_given_where_they_are_asked_for(backend, types):
    """``dtype_backend`` is pandas' own option, and what it gives comes back as it was."""
    frame = to_pandas(EVERY_KIND, backend)
    assert types == {name: str(frame[name].dtype) for name in types}
    assert EVERY_KIND == Rows(frame).to_arrow()


def test_an_unknown_backend_is_refused():
    """The error names pandas' words."""
    with pytest.raises(InvalidOption, match="numpy_nullable"):
        require_library("pandas", "arrow")


def test_lists_of_instants_keep_their_zone():
    """pandas' own arrays of times have none."""
    when = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    table = pa.table({"a": pa.array([[when], [None], None], pa.list_(UTC))})
    assert [when] == list(to_pandas(table)["a"][0])
    assert table == Rows(to_pandas(table)).to_arrow()


def test_a_column_more_is_no_fragmented_frame():
    """A frame of many columns takes another one without a warning (warnings are errors here)."""
    frame = to_pandas(pa.table({f"c{place}": [1] for place in range(150)}))
    frame["more"] = 1
    assert (1, 151) == frame.shape


WHOLE = [
    (pd.Series([7.0, None, 2.0**53]), pa.int64(), [7, None, 2**53]),
    (objects(7.0, None, np.nan), pa.int64(), [7, None, None]),
    (pd.Series([7.0, 8.0]), pa.float64(), [7.0, 8.0]),
    (pd.Series([7.5, None]), pa.float64(), [7.5, None]),
    (pd.Series([-0.0, None]), pa.float64(), [-0.0, None]),
    (pd.Series([2.0**53 + 2, None]), pa.float64(), [2.0**53 + 2, None]),
    (pd.Series([np.inf, None]), pa.float64(), [np.inf, None]),
]


@pytest.mark.parametrize(("series", "kind", "values"), WHOLE)
def test_whole_floats_beside_missing_ones_are_the_integers_that_they_were(series, kind, values):
    """pandas makes floats of integers beside missing ones; no other floats are touched."""
    found = Rows(pd.DataFrame({"a": series})).to_arrow()["a"]
    assert (kind, values) == (found.type, found.to_pylist())
    assert [str(value) for value in values] == [str(value) for value in found.to_pylist()]


def test_lists_of_pairs_of_unlike_kinds_are_maps():
    """As such pandas has a map; pairs of one kind are lists, as PyArrow takes them."""
    frame = pd.DataFrame({"a": objects([("k", 1), ("j", None)], [], None), "b": [[(1, 2)]] * 3})
    table = Rows(frame).to_arrow()
    assert pa.map_(pa.string(), pa.int64()) == table["a"].type
    assert [[("k", 1), ("j", None)], [], None] == table["a"].to_pylist()
    assert pa.list_(pa.list_(pa.int64())) == table["b"].type


def test_frames_without_rows_or_columns_pass():
    """An empty frame is a frame."""
    assert to_pandas(Rows(pd.DataFrame()).to_arrow()).shape == (0, 0)
    assert to_pandas(Rows(pd.DataFrame({"a": []})).to_arrow()).shape == (0, 1)


SCALARS = {
    "integers": st.integers(-(2**63), 2**63 - 1),
    "texts": st.text(st.characters(exclude_categories=["Cs"])),
    "floats": st.floats(allow_nan=True),
    "booleans": st.booleans(),
    "dates": st.dates(),
    "naive": st.datetimes(),
    "zoned": st.datetimes(timezones=st.just(dt.UTC)),
    "bytes": st.binary(),
    "decimals": st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9
    ),
    "lists": st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)),
    "structs": st.fixed_dictionaries({"a": st.none() | st.text("ab"), "b": st.lists(st.dates(), max_size=2)}),
}


@settings(max_examples=examples(60))
@given(st.data())
def test_arrow_to_pandas_and_back_changes_nothing(data):
    """A frame that came in is the same after a way out and in again, types and all."""
    names = data.draw(st.lists(st.sampled_from(sorted(SCALARS)), unique=True, min_size=1))
    rows = data.draw(st.integers(0, 5))
    frame = pd.DataFrame(
        {
            name: pd.Series(
                data.draw(st.lists(st.none() | SCALARS[name], min_size=rows, max_size=rows)), dtype=object
            )
            for name in names
        }
    )
    table = Rows(frame).to_arrow()

    assert table.equals(Rows(to_pandas(table, data.draw(st.sampled_from(get_args(DtypeBackend))))).to_arrow())


@settings(max_examples=examples(60))
@given(st.data())
def test_values_in_arrow_are_those_that_came(data):
    """Every value is found again in Arrow; a missing one is NULL."""
    name = data.draw(st.sampled_from(sorted(set(SCALARS) - {"structs"})))
    values = data.draw(st.lists(st.none() | SCALARS[name]))
    expected = [None if isinstance(value, float) and np.isnan(value) else value for value in values]
    assert Rows(pd.DataFrame({"a": objects(*values)})).to_arrow()["a"].to_pylist() == expected


def test_repeated_text_comes_out_as_any_text_does():
    """A long column of few different values takes a shorter way to the same pandas column."""
    values = ["open", None, "won", "NA", ""] * 1_000
    column = pa.chunked_array([pa.array(values), pa.array(values[::-1]), pa.array([], pa.string())])
    frame = to_pandas(pa.table({"Status": column}))
    expected = pd.Series([*values, *values[::-1]], dtype=object)
    assert expected.where(expected.notna(), np.nan).equals(frame["Status"].astype(object))
    assert pd.Series(values).dtype == frame["Status"].dtype
