"""Frames of Polars, of pandas 3 and of whatever hands on Arrow: in as they are, and Polars out."""

import datetime as dt
import decimal
import sys
import uuid
import warnings

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from freezeframe.engine.frames.arrow_columns import with_offsets
from freezeframe.engine.frames.frames import to_polars
from freezeframe.engine.frames.rows import Rows, library_of
from freezeframe.errors import BadInput, SchemaDriftError, SetupError
from freezeframe.gluestick.spark_export import to_export
from freezeframe.script import get_snapshot, read_csv_folder, update_snapshot
from freezeframe.script.tenants import open_tenant

ROWS = pl.DataFrame(
    {
        "Id": ["007", "8"],
        "whole": [2**53 + 1, None],
        "exact": [decimal.Decimal("1.10"), None],
        "day": [dt.date(2026, 11, 21), None],
        "moment": [dt.datetime(2026, 11, 21, 4, tzinfo=dt.UTC), None],
        "kind": pl.Series(["a", None], dtype=pl.Categorical),
        "level": pl.Series(["low", "high"], dtype=pl.Enum(["low", "high"])),
        "small": pl.Series([255, 0], dtype=pl.UInt8),
        "bytes": [b"\x00", None],
        "tags": [["a", None], None],
        "place": [{"city": "Bern"}, {"city": None}],
    }
)


class ArrowStream:
    """A frame of a library that nobody has heard of."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def without_offsets(array):
    """The array as Java's Arrow writes it: no offsets where a list or map has no entry."""
    kind, buffers = array.type, array.buffers()
    if pa.types.is_struct(kind):
        parts = [without_offsets(array.field(index)) for index in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(array), buffers[:1], children=parts)
    if not pa.types.is_list(kind):
        return array
    offsets = buffers[1] if len(array) else pa.py_buffer(b"")
    return pa.Array.from_buffers(
        kind, len(array), [buffers[0], offsets], children=[without_offsets(array.values)]
    )


@pytest.mark.parametrize(
    "take",
    [
        lambda table: Rows(table).to_arrow(),
        lambda table: with_offsets(table.to_batches()[0]),
        lambda table: next(Rows(table.to_reader()).pieces()),
    ],
)
def test_arrow_rows_of_java_get_the_offsets_that_they_lack(take):
    """PyArrow would read them all the same, and end the process."""
    kind = pa.struct([("a", pa.list_(pa.list_(pa.list_(pa.int64()))))])
    plain = pa.array([{"a": []}, None], kind)
    found = take(pa.table({"c": without_offsets(plain), "n": pa.array([1, 2])}))["c"].chunk(0)
    sizes = [[buffer and buffer.size for buffer in array.buffers()[2:]] for array in (plain, found)]
    assert sizes[0] == sizes[1]
    assert plain.equals(found)


def test_polars_rows_come_back_as_they_went_in(tmp_path):
    """Every value of every type, from the update that kept them and from a read as Polars."""
    told = update_snapshot(tmp_path, "Account", ["Id"], ROWS)
    read = get_snapshot(tmp_path, "Account", as_="polars")
    expected = ROWS.to_dicts()
    assert (pl.DataFrame, pl.DataFrame) == (type(told), type(read))
    assert expected == read.to_dicts() == told.to_dicts()
    assert [Rows(ROWS).library, Rows(Rows(ROWS).to_arrow()).library] == ["polars", "arrow"]


def test_changes_and_previews_are_given_as_polars(tmp_path):
    """`changes` takes the kind; a preview is of the kind of its rows."""
    update_snapshot(tmp_path, "Account", ["Id"], ROWS)
    seen = update_snapshot(tmp_path, "Account", ["Id"], pl.DataFrame({"Id": ["9"]}), persist=False)
    assert seen["Id"].to_list() == ["007", "8", "9"]
    assert (
        open_tenant(tmp_path).stream("Account").changes(as_="polars")["_change_type"].to_list()
        == ["insert"] * 2
    )


def test_files_are_read_as_polars(tmp_path):
    """A folder of CSV files gives Polars frames, with converters too."""
    (tmp_path / "Account.csv").write_text("Id,n\n007,1\n")
    plain = read_csv_folder(tmp_path, as_="polars")["Account"]
    converted = read_csv_folder(tmp_path, converters={"Account": {"n": int}}, as_="polars")["Account"]
    assert [{"Id": "007", "n": 1}] == plain.to_dicts() == converted.to_dicts()


def test_whatever_hands_on_arrow_is_taken(tmp_path):
    """An object with `__arrow_c_stream__` is as good as an Arrow table, which it comes back as."""
    rows = pa.table({"Id": ["1"], "n": [1]})
    told = update_snapshot(tmp_path, "Account", ["Id"], ArrowStream(rows))
    assert ("arrow", rows) == (Rows(ArrowStream(rows)).library, told)


def test_the_module_of_pandas_frames_does_not_matter():
    """pandas 3 tells `pandas.DataFrame` of its frames, pandas 2 `pandas.core.frame.DataFrame`."""
    newer = type("DataFrame", (), {"__module__": "pandas"})()
    foreign = type("DataFrame", (), {"__module__": "pandasish.core"})()
    assert [Rows(pd.DataFrame()).library, Rows(newer).library] == ["pandas", "pandas"]
    with pytest.raises(BadInput, match=r"pandasish\.core\.DataFrame"):
        Rows(foreign).to_arrow()


def test_without_polars_the_error_says_what_to_install(monkeypatch):
    """A package that is missing is one clear sentence."""
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(SetupError, match="pip install polars"):
        to_polars(pa.table({"Id": ["1"]}))


def test_a_column_of_the_empty_name_keeps_it():
    """Polars would call it `column_0`."""
    assert to_polars(pa.table([[1], [2]], names=["", "a"])).columns == ["", "a"]


def test_a_frame_of_pandas_on_spark_is_refused_by_name():
    """It has an index, and says itself how its rows become a Spark frame."""
    with warnings.catch_warnings(action="ignore"):  # PySpark 4.3 has none beside pandas 3
        on_spark = pytest.importorskip("pyspark.pandas", exc_type=ImportError)
    frame = on_spark.DataFrame.__new__(on_spark.DataFrame)
    for take in (library_of, lambda item: to_export(item, "Lead", "nowhere")):
        with pytest.raises(BadInput, match=r"to_spark\(\)"):
            take(frame)


POLARS_KEPT = [
    (pl.Series([uuid.UUID(int=7), None], dtype=pl.Object), pa.string(), [str(uuid.UUID(int=7)), None]),
    (
        pl.Series([decimal.Decimal("1.5"), None], dtype=pl.Object),
        pa.decimal128(38, 1),
        [decimal.Decimal("1.5"), None],
    ),
    (pl.Series([1, None], dtype=pl.Int128), pa.int64(), [1, None]),
    (
        pl.Series([1, 2**100], dtype=pl.UInt128),
        pa.decimal128(38, 0),
        [decimal.Decimal(1), decimal.Decimal(2**100)],
    ),
    (
        pl.Series([["b", None], None], dtype=pl.List(pl.Categorical)),
        pa.list_(pa.string()),
        [["b", None], None],
    ),
    (
        pl.Series([{"e": "b"}], dtype=pl.Struct({"e": pl.Enum(["a", "b"])})),
        pa.struct([("e", pa.string())]),
        [{"e": "b"}],
    ),
]


@pytest.mark.parametrize(("series", "kind", "values"), POLARS_KEPT)
def test_types_that_polars_alone_has_keep_their_values(series, kind, values):
    """Objects follow the rules of pandas' objects, wide integers are whole numbers, categories are text."""
    column = Rows(pl.DataFrame({"u": series})).to_arrow()["u"]
    assert (kind, values) == (column.type, column.to_pylist())


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([object()], dtype=pl.Object),
        pl.Series([2**127 - 1], dtype=pl.Int128),
        pl.Series([[1]], dtype=pl.List(pl.Int128)),
        pl.Series([dt.time(1)]),
    ],
)
def test_what_polars_alone_has_and_no_stream_keeps_is_refused_by_name(series):
    """No memory address is stored and no error of Arrow's leaves."""
    with pytest.raises(SchemaDriftError, match="'u'"):
        Rows(pl.DataFrame({"u": series})).to_arrow()


@pytest.mark.parametrize("column", [pl.Series([1]), pa.chunked_array([[1]])])
def test_a_column_is_no_frame(column):
    """A column hands on Arrow's data too, but has no name."""
    with pytest.raises(BadInput, match="Rows cannot be read from"):
        Rows(column).to_arrow()


def test_categories_that_no_row_uses_are_no_values():
    """Only values are looked at, and an error names their rows."""
    used = pd.Categorical(["b", "a"], categories=[1, "a", object(), "b", 2.5])
    assert ["b", "a"] == Rows(pd.DataFrame({"v": used})).to_arrow()["v"].to_pylist()
    mixed = pd.Categorical(["a", "a", 1], categories=[1, "a", "b"])
    with pytest.raises(BadInput, match=r"integer \(rows 2\) and text \(rows 0, 1\)"):
        Rows(pd.DataFrame({"v": mixed})).to_arrow()


_PAIRS = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("held", "wrap"),
    [
        (_PAIRS, lambda item: item),
        (pa.list_(_PAIRS), lambda item: [[("c", 1)], item]),
        (pa.struct([("k", _PAIRS)]), lambda item: {"k": item}),
    ],
)
def test_a_map_with_a_key_twice_is_refused(held, wrap):
    """At any depth, with the rows; Spark could not read it."""
    rows = pa.array([wrap([("a", 1), ("b", 1)]), None, wrap([("a", 1), ("a", 1)])], held)
    with pytest.raises(BadInput, match=r"key twice \(rows 2"):
        Rows(pa.table({"v": rows})).to_arrow()
    assert len(Rows(pa.table({"v": rows.slice(0, 2)})).to_arrow()) == 2


def test_a_lazy_frame_is_to_be_collected():
    """The remedy is a method that it has."""
    with pytest.raises(BadInput) as refused:
        Rows(pl.LazyFrame({"a": [1]})).to_arrow()
    assert refused.value.remedy == "Call collect() on a lazy frame."
