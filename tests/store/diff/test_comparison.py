"""The comparison of two versions: batches and pages have all that differs, in little memory, also by keys."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.store.stored_tables import StoredTable

from freezeframe.errors import InvalidOption, SchemaDriftError, TooLarge, VersionNotFound
from freezeframe.store.diff import comparison as comparison_module
from freezeframe.store.diff.comparison import ChangeCursor, Comparison
from freezeframe.store.diff.row_changes import CHANGE_TYPE, compare_tables, join_changes
from freezeframe.store.diff.row_pages import RowCursor
from freezeframe.store.model.receipt import Counts
from freezeframe.store.table.reader import read_rows

COLUMNS = pa.schema([("Id", pa.float64()), ("part", pa.string()), ("v", pa.int64())])


def _all(comparison, limit):
    """All pages one after the other, each found by the place that the one before gave."""
    found, after = [], None
    while True:
        page = comparison.page(limit, after)
        found.append(page.changes.table)
        if page.following is None:
            return pa.concat_tables(found)
        assert limit == len(page.changes)
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

    expected = compare_tables(read_rows(before), read_rows(after), ("Id", "part")).table.to_pylist()
    assert repr(expected) == repr(found.to_pylist())
    batches = list(comparison.batches())
    assert repr(expected) == repr(join_changes(batches).table.to_pylist())
    assert all(len(changes) <= 2 * window for changes in batches if comparison.rows_max > 2 * window)
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


def test_rows_without_a_key_are_compared_whole_up_to_a_limit(monkeypatch):
    """They are counted as a multiset, a page at a time; of too many no page is shown, and all count."""
    table = StoredTable(pa.schema([("n", pa.int64())]))
    old = table.file(pa.table({"n": [1, 1, 2, 3]}))
    before = table.commit()
    table.delete(old, [])
    table.file(pa.table({"n": [1, 3, 4, 5]}))
    after = table.commit()

    expected = compare_tables(read_rows(before), read_rows(after), ()).table
    assert expected.equals(_all(Comparison(before, after), 1))
    narrow = Comparison(before, after, whole_rows_max=7)
    with pytest.raises(TooLarge):
        narrow.page(1)
    assert Counts(2, 0, 0, 2) == narrow.counts()
    monkeypatch.setattr(comparison_module, "CONTENT_ROWS_MAX", 7)
    assert Counts(4, 0, 0, 4) == narrow.counts()
    assert expected.equals(narrow.table())


@pytest.mark.parametrize(("back", "limit"), [(False, 1), (True, 3), (False, 100)])
def test_a_key_in_another_type_is_paged_as_well(open_finding, memory, back, limit):
    """Rows meet in the type that both have, in whose order the pages are, whatever the number of rows."""
    stream = open_finding(memory).stream("Account")
    days = pa.array(range(12), pa.int32()).cast(pa.date32())
    stream.update(pa.table({"Id": range(12), "day": days, "v": range(12)}), key=["Id", "day"])
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

    assert [page.changes.table["Id"][number].as_py() for number in (0, 99)] == [200_001, 200_100]
    assert place != page.following.row
    assert table.storage.bytes_read < (before.size + after.size) / 8
    assert comparison.rows_max == 800_000
    assert shared in before.files["path"].to_pylist()
    assert pa.total_allocated_bytes() - held < 20_000_000


def test_a_whole_comparison_holds_some_windows_of_rows():
    """Both versions have all rows in files of their own: what is held does not grow with them."""
    ids = np.arange(400_000)
    table = StoredTable(pa.schema([("Id", pa.int64()), ("v", pa.int64()), ("text", pa.string())]), ["Id"])
    texts = pa.array([f"{number:050}" for number in range(1_000)]).take(pa.array(ids % 1_000))
    values = np.where(ids % 100, 0, 1)
    old = table.file(pa.table({"Id": ids, "v": np.zeros(len(ids), np.int64), "text": texts}), groups=50_000)
    before = table.commit()
    table.delete(old, [])
    table.file(pa.table({"Id": ids, "v": values, "text": texts}), groups=50_000)
    after = table.commit()
    held, peak, found = pa.total_allocated_bytes(), 0, 0
    for changes in Comparison(before, after, window_rows=20_000).batches():
        peak = max(peak, pa.total_allocated_bytes() - held)
        found += len(changes)
        assert {"v": len(changes)} == changes.changed_counts

    assert (4_000, True) == (found, peak < 25_000_000)


def test_a_cursor_of_other_versions_is_refused():
    """A place that neither version has says what to do, and so does one without a row."""
    table = StoredTable(COLUMNS, ["Id", "part"])
    table.file(_rows(range(9), 0))
    comparison = Comparison(None, table.commit())
    for place in (
        ChangeCursor("new", RowCursor("gone.parquet", 0)),
        ChangeCursor("old"),
        ChangeCursor("", None, 3),
    ):
        with pytest.raises(VersionNotFound) as error:
            comparison.page(1, place)
        assert "Start again with the first page." == error.value.remedy


VALUES = st.none() | st.integers(0, 2)
STATE = st.dictionaries(st.integers(0, 12), st.tuples(VALUES, VALUES), max_size=9)


@settings(max_examples=examples(30))
@given(states=st.tuples(STATE, STATE, STATE), window=st.integers(1, 5))
def test_what_one_version_changed_is_compared_with_now_by_its_keys(states, window):
    """Cell by cell, value before, after and now: who changed each last, as dictionaries say."""
    table = StoredTable(pa.schema([("Id", pa.int64()), ("a", pa.int64()), ("b", pa.int64())]), ["Id"])
    snapshots, names = [], []
    for state in states:
        for name in names:
            table.delete(name, [])
        columns = [list(state), *([row[at] for row in state.values()] for at in (0, 1))]
        rows = [pa.array(column, pa.int64()) for column in columns]
        names = [table.file(pa.table(rows, names=["Id", "a", "b"]), groups=2)]
        snapshots.append(table.commit())
    before, after, now = states

    found = {}
    for changes in Comparison(*snapshots[:2], window_rows=window).batches():
        later = join_changes(Comparison(*snapshots[1:], changes.keys, window_rows=window).batches())
        assert later.keys["Id"].to_pylist() == sorted(later.keys["Id"].to_pylist())
        touched = dict(zip(later.keys["Id"].to_pylist(), range(len(later)), strict=True))
        for number, key in enumerate(changes.keys["Id"].to_pylist()):
            cells = frozenset(name for name, mask in changes.changed.items() if mask[number])
            again = touched.get(key)
            gone = again is not None and later.table[CHANGE_TYPE][again].as_py() != "update"
            since = frozenset(
                name for name, mask in later.changed.items() if again is not None and mask[again]
            )
            found[key] = (cells, gone, since)

    def changed(old, new):
        return frozenset(name for at, name in enumerate("ab") if old and new and old[at] != new[at])

    expected = {
        key: (
            changed(before.get(key), after.get(key)),
            (key in after) != (key in now),
            changed(after.get(key), now.get(key)),
        )
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }
    assert expected == found


def test_some_columns_are_compared_alone_and_in_other_types():
    """Other columns are left out; values that the types cannot hold are refused."""
    table = StoredTable(COLUMNS, ["Id", "part"])
    first = table.file(_rows([1, 2], 0))
    before = table.commit()
    table.delete(first, [])
    table.file(_rows([1, 2], 300))
    after = table.commit()
    keys = read_rows(before).select(["Id", "part"])
    narrow = pa.schema([("Id", pa.float64()), ("part", pa.string())])

    assert [] == Comparison(before, after, keys, columns=narrow).table().to_pylist()
    with pytest.raises(SchemaDriftError, match="v"):
        Comparison(before, after, keys, columns=narrow.append(pa.field("v", pa.int8()))).table()
    with pytest.raises(InvalidOption):
        Comparison(before, after, keys.select(["Id"])).table()


def test_each_version_has_the_key_in_its_own_type(open_finding, memory):
    """In the table of all changes; a deleted key that the later type cannot hold is in ``_before`` alone."""
    stream = open_finding(memory, streams={"Account": {"Id": [2, 10], "v": [1, 1]}}).stream("Account")
    stream.retype("Id", "string")
    stream.update(pa.table({"Id": ["10", "X"], "v": [2, 2]}), key="Id")
    sides = [stream.snapshot(version=0), stream.snapshot()]

    forward, back = (
        [(row["_change_type"], row["Id"], (row["_before"] or {}).get("Id")) for row in table.to_pylist()]
        for table in (Comparison(*sides).table(), Comparison(*reversed(sides)).table())
    )
    assert [("update", "10", 10), ("insert", "X", None)] == forward
    assert [("update", 10, "10"), ("delete", None, "X")] == back


DAYS = pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())
"""The second is beyond all timestamps."""
LONG = [Decimal(0), Decimal(2**64 - 1)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DAYS, pa.array([0, 86_400_000_000], pa.timestamp("us"))),
        (pa.array(LONG, pa.decimal128(20, 0)), pa.array([0, Decimal("1.5")], pa.decimal128(38, 18))),
    ],
)
@pytest.mark.parametrize("is_back", [False, True])
def test_a_key_that_the_other_type_cannot_hold_is_in_its_own_version(
    open_finding, memory, one, other, is_back
):
    """One such key hides neither itself nor those of other rows."""
    before, after = (other, one) if is_back else (one, other)
    stream = open_finding(memory).stream("Account")
    stream.update(pa.table({"Id": before, "v": [1, 1]}), key="Id")
    rows = stream.update(pa.table({"Id": after, "v": [2, 2]}), override=True).changed_rows("arrow")
    kinds, images = rows[CHANGE_TYPE], rows["_before"].combine_chunks()

    assert ["update", "insert", "delete"] == kinds.to_pylist()
    assert rows["Id"].combine_chunks().slice(0, 2).equals(after)
    assert images.field("Id").drop_null().equals(before)
    sides = [stream.snapshot(version=0), stream.snapshot()]
    assert rows.equals(Comparison(*sides, window_rows=1).table())


@pytest.mark.parametrize("key", [["part", "Id"], ["part"]])
def test_a_nested_column_of_the_key_has_no_order(key):
    """The table of all changes is in the order of the key's other columns, each in its version's type."""
    sides = []
    for number, kind in enumerate((pa.int32(), pa.int64())):
        parts = pa.array([[1], [2]], pa.list_(kind))
        columns = {"part": parts, "Id": pa.array([2, 1], kind), "v": [number, number]}
        rows = pa.table(columns)
        table = StoredTable(rows.schema, key)
        table.file(rows)
        sides.append(table.commit())
    found = Comparison(*sides).table()

    expected = [("update", [2], 1, 1), ("update", [1], 2, 1)]
    seen = [(row[CHANGE_TYPE], row["part"], row["Id"], row["v"]) for row in found.to_pylist()]
    assert expected == (seen if len(key) > 1 else seen[::-1])


def test_windows_of_large_rows_have_few_rows(monkeypatch):
    """As many as fit into a bound of bytes, by the sizes of the files: wide rows do not fill memory."""
    monkeypatch.setattr(comparison_module, "_WINDOW_BYTES", 2**20)
    table = StoredTable(pa.schema([("Id", pa.int64()), ("v", pa.binary())]), ["Id"])
    random, files, versions = np.random.default_rng(1), [], []
    for _ in range(2):
        for name in files:
            table.delete(name, [])
        rows = pa.table({"Id": range(4_000), "v": [random.bytes(1_000) for _ in range(4_000)]})
        files = [table.file(rows, groups=500)]
        versions.append(table.commit())
    sizes = [len(changes) for changes in Comparison(*versions).batches()]

    assert (4_000, True) == (sum(sizes), max(sizes) < 300)
