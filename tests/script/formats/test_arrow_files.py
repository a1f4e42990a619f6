"""Arrow's own files: rows and types as they were, and every damage an error of ours."""

import decimal
import io
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.store.conftest import NoEngine

from freezeframe.errors import BadInput, UnreadableInput
from freezeframe.script.formats.columnar_files import arrow_batches, read_arrow, require_arrow, streamed_arrow
from freezeframe.script.transfer import import_stream
from freezeframe.settings import Settings
from freezeframe.storage import MemoryStorage
from freezeframe.store import Tenant

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
    table = read_arrow(file)

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

    assert [len(batch) for batch in streamed_arrow(file)] == [2, 1]
