"""Pages of changes: together they are all that differs, whatever the versions share, in little memory."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.store.stored_tables import StoredTable

from freezeframe.errors import TooLarge
from freezeframe.store.diff.row_diff import CHANGE_TYPE, snapshot_changes
from freezeframe.store.diff.row_diff_pages import ChangeCursor, Comparison
from freezeframe.store.diff.row_pages import RowCursor

COLUMNS = pa.schema([("Id", pa.float64()), ("part", pa.string()), ("v", pa.int64())])


def _all(comparison, limit):
    """All pages one after the other, each found by the place that the one before gave."""
    found, after = [], None
    while True:
        page = comparison.page(limit, after)
        found.append(page.table)
        if page.following is None:
            return pa.concat_tables(found)
        assert limit == len(page.table)
        after = page.following


def _rows(keys, base):
    keys = list(
        dict.fromkeys((None if i == 5 else float("nan") if i == 6 else i * 1.0, "ab"[i % 2]) for i in keys)
    )
    return pa.table(
        {"Id": [key for key, _ in keys], "part": [p for _, p in keys], "v": range(base, base + len(keys))},
        schema=COLUMNS,
    )


@settings(max_examples=examples(12))
@given(
    shared=st.lists(st.integers(0, 9), unique=True, min_size=1),
    gone=st.sets(st.integers(0, 9)),
    came=st.lists(st.integers(0, 19), unique=True),
    second=st.lists(st.integers(20, 29), unique=True, min_size=1),
    window=st.integers(2, 9),
    limit=st.integers(1, 9),
)
def test_pages_are_all_changes(shared, gone, came, second, window, limit):
    """Shared files with other deleted rows, files that came and went: page after page gives every change."""
    table = StoredTable(COLUMNS, ["Id", "part"])
    first = table.file(_rows(shared, 0), groups=3)
    other = table.file(_rows(second, 100), groups=2)
    before = table.commit()
    deleted = sorted({item for item in gone if item < len(shared)})
    if deleted:
        table.delete(first, deleted)
    table.delete(other, [])
    kept = [one for place, one in enumerate(shared) if place not in deleted]
    added = [item for item in [*came, *second[::2]] if item not in kept]
    if added:
        table.file(_rows(added, 100), groups=4)
    after = table.commit()
    comparison = Comparison(before, after, window_rows=window)
    found = _all(comparison, limit)
    counts = comparison.counts()

    expected = snapshot_changes(before, after, ("Id", "part"))
    by_key = [(name, "ascending") for name in ("Id", "part")]
    assert repr(expected.sort_by(by_key).to_pylist()) == repr(found.to_pylist())
    kinds = found[CHANGE_TYPE].to_pylist()
    assert [kinds.count(item) for item in ("insert", "update", "delete")] == [
        counts.inserted,
        counts.updated,
        counts.deleted,
    ]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_stream_that_came_or_went(side):
    table = StoredTable(COLUMNS, ["Id", "part"])
    table.file(_rows(range(9), 0))
    snapshot = table.commit()
    comparison = Comparison(snapshot, None) if side == "before" else Comparison(None, snapshot)

    found = _all(comparison, 2)
    assert len(found) == 9
    assert {"delete" if side == "before" else "insert"} == set(found[CHANGE_TYPE].to_pylist())


def test_rows_without_a_key_are_compared_whole_up_to_a_limit():
    """They are counted as a multiset, a page at a time; too many of them are refused."""
    table = StoredTable(pa.schema([("n", pa.int64())]))
    old = table.file(pa.table({"n": [1, 1, 2, 3]}))
    before = table.commit()
    table.delete(old, [])
    table.file(pa.table({"n": [1, 3, 4, 5]}))
    after = table.commit()

    assert snapshot_changes(before, after, ()).equals(_all(Comparison(before, after), 1))
    with pytest.raises(TooLarge):
        Comparison(before, after, whole_rows_max=7).page(1)


@pytest.mark.parametrize(("back", "limit"), [(False, 1), (True, 3), (False, 100)])
def test_a_key_in_another_type_is_paged_as_well(open_finding, memory, back, limit):
    """Rows meet in the type that both have, in whose order the pages are, whatever the number of rows."""
    stream = open_finding(memory).stream("Account")
    days = pa.array(range(30), pa.int32()).cast(pa.date32())
    stream.update(pa.table({"Id": range(30), "day": days, "v": range(30)}), key=["Id", "day"])
    stream.retype("Id", "string")
    stream.retype("day", "timestamp_ntz")
    stream.update(pa.table({"Id": ["7", "X", "10"], "day": days.take(pa.array([7, 7, 10])), "v": [0, 1, 10]}))
    sides = [stream.snapshot(version=0), stream.snapshot()]
    comparison = Comparison(*(reversed(sides) if back else sides), whole_rows_max=0, window_rows=1)

    assert [("7", "update"), ("X", "delete" if back else "insert")] == [
        (row["Id"], row[CHANGE_TYPE])
        for row in sorted(_all(comparison, limit).to_pylist(), key=lambda row: row["Id"])
    ]
    assert (comparison.counts().updated, comparison.counts().inserted + comparison.counts().deleted) == (1, 1)


def test_a_page_of_a_large_difference_reads_and_holds_little():
    """Of half a million changed rows a page takes some row groups and some megabytes, not all of them."""
    ids = np.arange(400_000)
    table = StoredTable(pa.schema([("Id", pa.int64()), ("v", pa.int64())]), ["Id"])
    shared = table.file(pa.table({"Id": ids + 10**6, "v": ids}), groups=10_000)
    old = table.file(pa.table({"Id": ids, "v": ids}), groups=10_000)
    before = table.commit()
    table.delete(old, [])
    table.file(pa.table({"Id": ids, "v": pc.add(pa.array(ids), 1)}), groups=10_000)
    after = table.commit()
    comparison = Comparison(before, after)
    table.storage.bytes_read = 0
    held = pa.total_allocated_bytes()
    page = comparison.page(100, ChangeCursor("old", place := RowCursor(old, 200_000)))

    assert [page.table["Id"][number].as_py() for number in (0, 99)] == [200_001, 200_100]
    assert place != page.following.row
    assert table.storage.bytes_read < (before.size + after.size) / 8
    assert comparison.rows_max == 800_000
    assert shared in before.files["path"].to_pylist()
    assert pa.total_allocated_bytes() - held < 20_000_000
