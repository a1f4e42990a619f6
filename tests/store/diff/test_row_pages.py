"""Pages of rows: together they are the stream, in its order, and each reads little more than itself."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.store.stored_tables import StoredTable

from freezeframe.errors import MissingColumn, VersionNotFound
from freezeframe.store.diff.row_pages import RowCursor, matching_count, row_page
from freezeframe.store.table.reader import read_rows, sort_rows


def _pages(snapshot, limit, **wanted):
    """All pages of a snapshot, one after the other."""
    found, after = [], None
    while True:
        page = row_page(snapshot, after=after, limit=limit, **wanted)
        found.append(page.rows)
        if not page.has_more:
            return pa.concat_tables(found)
        assert limit == len(page.rows)
        after = page.cursors[-1]


KINDS = [pa.string(), pa.float64(), pa.int64(), pa.decimal128(9, 2), pa.timestamp("us"), pa.bool_()]


@settings(max_examples=examples(32))
@given(
    data=st.data(),
    place=st.integers(0, 5),
    cuts=st.lists(st.integers(0, 30), max_size=3),
    limit=st.integers(1, 7),
)
def test_pages_are_the_whole_in_the_order_of_the_key(data, place, cuts, limit):
    """Nulls, NaN, equal keys, keys of every type in files of any order: pages join to what a read gives."""
    keys = data.draw(_keys(place))
    rows = pa.table({"Id": pa.array(keys, KINDS[place]), "n": np.arange(len(keys))})
    table, start = StoredTable(rows.schema, ["Id"]), 0
    for end in [*sorted(set(cuts)), len(rows)]:
        if start < end <= len(rows):
            table.file(rows.slice(start, end - start), groups=3, gone=[0] if end % 2 else ())
            start = end
    snapshot = table.commit()
    whole = sort_rows(read_rows(snapshot), ["Id"])
    pages = _pages(snapshot, limit)

    assert repr(whole["Id"].to_pylist()) == repr(pages["Id"].to_pylist())
    assert sorted(whole["n"].to_pylist()) == sorted(pages["n"].to_pylist())


def _keys(place):
    kinds = [
        st.text("ab7\xe9\U0001f600", max_size=3),
        st.floats(),
        st.integers(-3, 30),
        st.decimals(-9, 9, places=2),
        st.datetimes(),
        st.booleans(),
    ]
    return st.lists(st.none() | kinds[place], max_size=30)


def test_deleted_rows_conditions_offsets_and_renamed_columns():
    """Deletion vectors, column mapping and statistics leave a page what the same read gives."""
    ids = np.arange(3_000)
    rows = pa.table({"an Id": ids, "a name": ids % 7, "n": -ids})
    table = StoredTable(rows.schema, ["an Id"], renamed=True)
    for part in range(3):
        table.file(rows.take(pa.array(ids[part::3])), gone=[3, 500])
    snapshot = table.commit()
    where = pc.field("a name") == 3
    whole, some = (sort_rows(read_rows(snapshot, None, item), ["an Id"]) for item in (None, where))

    assert whole.equals(_pages(snapshot, 999))
    assert some.equals(_pages(snapshot, 100, where=where))
    assert some.slice(11, 5).select(["n"]).equals(row_page(snapshot, ["n"], where, offset=11, limit=5).rows)
    assert (2_994, len(some)) == (matching_count(snapshot), matching_count(snapshot, where))


def test_a_page_reads_little_of_a_large_stream():
    """The first page, one in the middle and one under a condition read a hundredth of the files."""
    ids = np.arange(300_000)
    schema = pa.schema([("Id", pa.int64()), ("text", pa.string()), ("n", pa.int64())])
    table = StoredTable(schema, ["Id"])
    texts = pa.array(np.random.default_rng(7).random(len(ids))).cast(pa.string())
    for part in range(3):
        chosen = pa.array(ids[part::3])
        rows = pa.table({"Id": chosen, "text": texts.take(chosen), "n": pc.divide(chosen, 100)})
        table.file(rows, groups=1_000)
    snapshot = table.commit()
    middle = RowCursor("001.parquet", 50_000)
    found = []
    for wanted in ({}, {"after": middle}, {"where": pc.field("n") == 1_500}):
        table.storage.bytes_read = 0
        page = row_page(snapshot, limit=50, **wanted)
        found.append((page.rows["Id"][0].as_py(), len(page.rows)))
        assert 0 < table.storage.bytes_read < snapshot.size / 8, wanted

    assert found == [(0, 50), (150_002, 50), (150_000, 50)]


def test_rows_without_a_key_come_in_the_order_of_the_files():
    """Rows come as they lie, file after file, and the page after a row goes on behind it."""
    table = StoredTable(pa.schema([("n", pa.int64())]))
    for part in range(3):
        table.file(pa.table({"n": np.arange(500) + 500 * part}), gone=[7])
    snapshot = table.commit()
    table.storage.bytes_read = 0
    pages = _pages(snapshot, 123)

    assert [n for n in range(1500) if n % 500 != 7] == pages["n"].to_pylist()


def test_of_a_stream_with_a_history_the_rows_that_hold_now():
    moments = pa.timestamp("us", tz="UTC")
    schema = pa.schema([("Id", pa.int64()), ("_valid_from", moments), ("_valid_to", moments)])
    table = StoredTable(schema, ["Id"], **{"freezeframe.history": "scd2"})
    table.file(
        pa.table({"Id": [1, 1, 2], "_valid_from": [1, 2, 3], "_valid_to": [2, None, None]}, schema=schema)
    )
    snapshot = table.commit()

    assert _pages(snapshot, 1).to_pylist() == [{"Id": 1}, {"Id": 2}]
    assert matching_count(snapshot) == 2
    with pytest.raises(MissingColumn):
        row_page(snapshot, ["_valid_to"])


def test_a_place_of_another_version_is_refused():
    table = StoredTable(pa.schema([("n", pa.int64())]), ["n"])
    table.file(pa.table({"n": [1]}))

    with pytest.raises(VersionNotFound):
        row_page(table.commit(), after=RowCursor("x.parquet", 0))
