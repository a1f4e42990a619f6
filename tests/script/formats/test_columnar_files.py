"""Parquet and Arrow files: rows and types as they were, and every damage an error of ours."""

import datetime as dt
import decimal
import io
from contextlib import suppress
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.old_calendar import NEW, OLD, write_old
from tests.store.conftest import NoEngine

from freezeframe.errors import BadInput, SchemaDriftError, UnreadableInput
from freezeframe.script.formats.columnar_files import (
    ArrowFormat,
    ParquetFormat,
    arrow_batches,
    require_arrow,
)
from freezeframe.script.formats.input_parts import UNLIMITED, UnpackLimits
from freezeframe.script.inputs.transfer import import_stream
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant


@pytest.fixture
def written(tmp_path):
    def write(*tables):
        files = [tmp_path / f"Account-{number}.parquet" for number in range(len(tables))]
        for file, table in zip(files, tables, strict=True):
            pq.write_table(table, file)
        return files

    return write


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (pa.array([1], pa.int32()), pa.array([2**40]), pa.int64()),
        (pa.array([2**40]), pa.array([1], pa.int32()), pa.int64()),
        (pa.array([1], pa.int32()), pa.array([1]), pa.int64()),
        (pa.array([1.5]), pa.array([1]), pa.float64()),
        (pa.nulls(1), pa.array(["x"]), pa.string()),
        (pa.array(["x"]), pa.nulls(1), pa.string()),
        (pa.nulls(1), pa.nulls(1), pa.null()),
        (pa.array([1.5], pa.float32()), pa.array([0.1]), pa.float64()),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("100.25")]), pa.decimal128(5, 2)),
        (pa.array(["x"]).dictionary_encode(), pa.array(["y"], pa.large_string()), pa.string()),
    ],
)
def test_types_are_joined_without_loss(written, first, second, kind):
    """The wider type wins where every value stays the same."""
    table = ParquetFormat().whole(written(pa.table({"a": first}), pa.table({"a": second})))
    assert kind == table.schema.field("a").type
    assert first.to_pylist() + second.to_pylist() == table["a"].to_pylist()


def test_a_column_that_a_file_lacks_is_null_there(written):
    """Columns are matched by name, in order of first appearance."""
    files = written(pa.table({"a": [1], "b": ["x"]}), pa.table({"c": [True], "a": [2]}))
    assert ParquetFormat().whole(files).to_pydict() == {"a": [1, 2], "b": ["x", None], "c": [None, True]}


def test_types_that_cannot_be_joined_name_the_files(written):
    """Text and numbers do not become each other."""
    files = written(pa.table({"a": [1]}), pa.table({"a": ["x"]}))
    with pytest.raises(SchemaDriftError, match="Account-1") as caught:
        ParquetFormat().whole(files)
    assert [str(file) for file in files] == caught.value.details["files"]


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"not parquet at all, but long enough to be looked at"])
def test_a_damaged_file_is_named(tmp_path, damage):
    """Whatever is wrong with it, the message says which file."""
    file = tmp_path / "Account-1.parquet"
    file.write_bytes(damage)
    with pytest.raises(UnreadableInput, match="Account-1"):
        ParquetFormat().whole([file])


def test_pandas_unnamed_index_is_left_out(tmp_path):
    """A position that pandas wrote as a column is not data; a named index is."""
    frame = pd.DataFrame({"a": [1, 2]}, index=[5, 7])
    frame.to_parquet(tmp_path / "A-1.parquet")
    frame.rename_axis("Id").to_parquet(tmp_path / "B-1.parquet")
    assert ParquetFormat().whole([tmp_path / "A-1.parquet"]).column_names == ["a"]
    assert ParquetFormat().whole([tmp_path / "B-1.parquet"]).column_names == ["a", "Id"]


def test_times_of_the_type_int96_are_instants(tmp_path):
    """Held and streamed, as Spark reads them; the year 9999 does not fit the usual reading in nanoseconds."""
    moments = [dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC), dt.datetime(1999, 1, 1, tzinfo=dt.UTC)]
    file = tmp_path / "A-1.parquet"
    naive = pa.array([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us"))
    pq.write_table(pa.table({"t": naive}), file, use_deprecated_int96_timestamps=True)
    for rows in (
        ParquetFormat().whole([file]),
        ParquetFormat(UnpackLimits(10**6, 10**6)).streamed(file).read_all(),
    ):
        assert pa.timestamp("us", "UTC") == rows.schema.field("t").type
        assert moments == rows["t"].to_pylist()


def test_nanoseconds_are_refused_with_the_file(tmp_path):
    """What a stream could not keep is not read either, and the file is in the details."""
    file = tmp_path / "A-1.parquet"
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), file)
    with pytest.raises(SchemaDriftError) as caught:
        ParquetFormat().whole([file])
    assert str(file) == caught.value.details["file"]


@pytest.mark.parametrize("limits", [UNLIMITED, UnpackLimits(rows_max=10)])
@pytest.mark.parametrize(
    "index", [[7, 8], pd.Index([7, 8], name="Id"), pd.RangeIndex(2), [["a", "b"], [1, 2]]]
)
def test_a_streamed_file_is_read_alike(index, limits, tmp_path):
    """An index without a name is left out, unsigned numbers are int64 unless a value needs more."""
    file = tmp_path / "A-1.parquet"
    columns = {"u": [1, 2**63 - 1], "w": [0, 2**63], "text": ["a", "b"]}
    frame = pd.DataFrame(columns, index=index).astype({"u": "uint64", "w": "uint64", "text": "category"})
    frame.to_parquet(file, row_group_size=1)
    whole = ParquetFormat().whole([file])
    streamed = ParquetFormat(limits).streamed(file).read_all()
    assert whole.schema == streamed.schema
    assert whole.to_pylist() == streamed.to_pylist()
    assert whole.column_names[:3] == ["u", "w", "text"]
    assert not any("index_level" in name for name in whole.column_names)


@pytest.mark.parametrize("limits", [UNLIMITED, UnpackLimits(10**6, 10**6)], ids=["unlimited", "limited"])
def test_dates_and_times_of_the_old_calendar_show_what_they_showed(tmp_path, limits):
    """Held and streamed, with limits and without."""
    file = write_old(tmp_path / "Account-1.parquet", OLD)
    assert NEW == ParquetFormat(limits).whole([file]).to_pydict()
    assert NEW == ParquetFormat(limits).streamed(file).read_all().to_pydict()


ROWS = pa.table(
    {
        "Id": ["1", "2", None],
        "city": pa.array(["Bern", "Bern", None]).dictionary_encode(),
        "price": pa.array([decimal.Decimal("1.50"), None, None], pa.decimal128(9, 2)),
        "tags": [["a", None], [], None],
        "place": [{"lat": 1.5}, {"lat": None}, None],
    }
)


def _written(table, make=pa.ipc.new_stream):
    sink = io.BytesIO()
    with make(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


@pytest.mark.parametrize("make", [pa.ipc.new_stream, pa.ipc.new_file])
def test_rows_come_as_they_were(tmp_path, make):
    """Streams and files give the same rows; a dictionary is text again, nested types stay."""
    file = tmp_path / "rows.arrow"
    file.write_bytes(_written(ROWS, make))
    table = ArrowFormat().whole([file])
    assert ROWS.to_pylist() == table.to_pylist()
    assert (pa.string(), pa.decimal128(9, 2)) == (
        table.schema.field("city").type,
        table.schema.field("price").type,
    )


@pytest.mark.parametrize("memory_bytes_max", [1, 2**40])
def test_a_file_is_imported_whole_or_in_pieces(tmp_path, memory_bytes_max):
    """An import takes a small file at once and streams a large one: the same rows."""
    file = tmp_path / "rows.arrow"
    file.write_bytes(_written(ROWS.slice(0, 2)))
    stream = Tenant(MemoryStorage(), NoEngine(), Settings()).stream("A")
    import_stream(stream, file, "Id", memory_bytes_max=memory_bytes_max)
    assert ROWS.slice(0, 2).to_pylist() == stream.read(as_="arrow").to_pylist()


def _union():
    kinds = pa.array([0, 1], pa.int8())
    return pa.UnionArray.from_sparse(kinds, [pa.array([1, 2]), pa.array(["a", "b"])])


@pytest.mark.parametrize(
    "column",
    [_union(), pa.array([1, 2], pa.duration("s")), pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval())],
)
def test_types_that_no_stream_keeps_are_refused(column):
    """A union, a duration, an interval: typed errors, before any row is read."""
    with pytest.raises(BadInput):
        require_arrow(io.BytesIO(_written(pa.table({"Id": ["1", "2"], "odd": column}))), "rows")


def test_a_name_that_is_no_text_is_damage():
    """Arrow itself does not look at names before somebody asks for them."""
    rows = _written(pa.table({"column": ["1"]})).replace(b"column", b"\xecolumn")
    with pytest.raises(UnreadableInput):
        require_arrow(io.BytesIO(rows), "rows")


GOOD = [_written(ROWS), _written(ROWS, pa.ipc.new_file)]


@settings(max_examples=examples(150))
@given(which=st.sampled_from(GOOD), place=st.floats(0, 1, exclude_max=True), byte=st.integers(1, 255))
def test_a_damaged_byte_is_an_error_of_ours_or_harmless(which, place, byte):
    """Whatever byte is another one, the rows are read or refused; nothing else comes of it."""
    damaged = bytearray(which)
    damaged[int(place * len(damaged))] ^= byte
    rows = io.BytesIO(bytes(damaged))
    with suppress(BadInput):
        require_arrow(rows, "rows")
        assert 3 >= sum(len(batch) for batch in arrow_batches(rows, "rows"))


@given(which=st.sampled_from(GOOD), share=st.floats(0, 1, exclude_max=True))
def test_what_is_cut_off_is_refused(which, share):
    """No part of a stream or file passes for the whole."""
    with pytest.raises(UnreadableInput):
        require_arrow(io.BytesIO(which[: int(share * len(which))]), "rows")


def test_reading_needs_no_more_than_a_batch(tmp_path):
    """The rows of a file are given batch by batch."""
    file = tmp_path / "rows.arrow"
    file.write_bytes(_written(ROWS))
    assert [len(batch) for batch in ArrowFormat().streamed(file)] == [2, 1]
