"""Keys of stored rows: as numbers, excluded by statistics, found in files."""

import math
import pickle

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.conftest import NoEngine
from tests.typed_columns import KINDS, TEXTS, Kind, cells, key_form

from freezeframe.errors import CorruptData
from freezeframe.log.scan.file_statistics import file_statistics, statistics_text
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store import Tenant
from freezeframe.store.schema.columns import delta_columns
from freezeframe.store.table.keys import FOUND, KeyNumbers, may_hold, scan, scan_tasks, sent

KEY_KINDS = [kind for kind in KINDS.values() if kind.may_be_key]


def found(keys, rows):
    at, numbers = KeyNumbers(keys).found_in(rows)
    return list(zip(at.tolist(), numbers.tolist(), strict=True))


@st.composite
def searches(draw):
    """(types of a key's one to three columns, keys that are there once, rows of the same few values)."""
    kinds = draw(st.lists(st.sampled_from(KEY_KINDS), min_size=1, max_size=3))
    pools = [[*draw(st.lists(kind.values, min_size=1, max_size=3)), None] for kind in kinds]
    row = st.tuples(*map(st.sampled_from, pools))
    keys = draw(st.lists(row, max_size=8, unique_by=lambda key: form(kinds, key)))
    return kinds, keys, draw(st.lists(row, max_size=20))


def form(kinds, row):
    return tuple(key_form(value, kind.arrow) for kind, value in zip(kinds, row, strict=True))


def table(kinds, rows):
    arrays = [pa.array([row[n] for row in rows], kind.arrow) for n, kind in enumerate(kinds)]
    return pa.table(arrays, names=[f"k{n}" for n in range(len(kinds))])


@given(search=searches())
def test_rows_are_found_as_by_a_dictionary(search):
    """The number of a key is its row among the keys; all that equals it is found, in order."""
    kinds, keys, rows = search
    numbers = {form(kinds, key): number for number, key in enumerate(keys)}
    expected = [(at, numbers[form(kinds, row)]) for at, row in enumerate(rows) if form(kinds, row) in numbers]
    assert found(table(kinds, keys), table(kinds, rows)) == expected


def test_equal_is_what_is_equal_to_spark():
    """Zeros of either sign, any NaN, nulls."""
    keys = pa.table({"a": pa.array([0.0, math.nan, None])})
    rows = pa.table({"a": pa.array([None, -0.0, -math.nan, 1.0])})
    assert found(keys, rows) == [(0, 2), (1, 0), (2, 1)]


def test_columns_are_told_apart():
    """The same values in other columns are another key."""
    keys = pa.table({"a": ["x", "y"], "b": ["y", "x"], "c": ["z", "z"]})
    rows = pa.table({"a": ["x", "x", "y", "y"], "b": ["x", "y", "x", "y"], "c": ["z"] * 4})
    assert found(keys, rows) == [(1, 0), (2, 1)]


@pytest.mark.parametrize("stored", [pa.int32(), pa.null()])
def test_rows_of_another_type_are_compared_in_the_keys(stored):
    """A column that was widened since, and one that no file had a value for."""
    keys = pa.table({"a": pa.array([2**40, 2, None], pa.int64())})
    values = [None, 2, 3] if stored == pa.int32() else [None] * 3
    expected = [(0, 2), (1, 1)] if stored == pa.int32() else [(0, 2), (1, 2), (2, 2)]
    assert found(keys, pa.table({"a": pa.array(values, stored)})) == expected


def test_pairs_of_many_values_do_not_run_over():
    """Four columns of 70,000 values each: their product is more than 64 bits hold."""
    count = 70_000
    columns = {name: pa.array(range(count)) for name in "abcd"}
    assert [(0, 7), (1, count - 1)] == found(
        pa.table(columns), pa.table({name: pa.array([7, count - 1, count]) for name in "abcd"})
    )


LONG_TEXTS = st.builds(
    lambda start, length, end: start * length + end,
    st.sampled_from(["a", "\x7f", "\x80", "é", "\U0010ffff"]),
    st.sampled_from([1, 31, 32, 33, 70]),
    st.sampled_from(["", "a", "\x7f", "\uffff", "\U0010ffff"]),
)
KEYS = [kind for kind in KINDS.values() if kind.may_be_key] + [Kind("long text", pa.string(), LONG_TEXTS)]


def statistics_of(rows):
    """The statistics that a commit would say of a file with these rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=False, coerce_timestamps="us")
    return statistics_text(file_statistics(sink.getvalue().to_pybytes(), delta_columns(rows.schema, None)))


@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: kind.name)
@given(data=st.data())
def test_no_file_that_holds_a_key_is_passed_over(kind, data):
    """For every type of key, nulls, NaN and extremes included: a file with one of the keys stays."""
    files = [data.draw(st.lists(cells(kind), max_size=4)) for _ in range(data.draw(st.integers(1, 3)))]
    stored = [value for values in files for value in values]
    keys = data.draw(st.lists(cells(kind) | st.sampled_from(stored or [None]), min_size=1, max_size=4))
    tables = [pa.table({"Id": pa.array(values, kind.arrow)}) for values in files]

    held = may_hold(
        [statistics_of(rows) for rows in tables],
        pa.table({"Id": pa.array(keys, kind.arrow)}),
        tables[0].schema,
        {"Id": "Id"},
    )

    wanted = {key_form(key, kind.arrow) for key in keys}
    for values, may in zip(files, held, strict=True):
        assert may or not wanted & {key_form(value, kind.arrow) for value in values}


@given(data=st.data())
def test_composite_keys_are_held_column_by_column(data):
    """A file stays if each part of a key may be in it; one part outside is enough to pass it over."""
    texts, longs = KINDS["text"], KINDS["long"]
    pairs = st.tuples(cells(texts), cells(longs))
    files = [data.draw(st.lists(pairs, min_size=1, max_size=4)) for _ in range(2)]
    keys = data.draw(st.lists(pairs | st.sampled_from(files[0]), min_size=1, max_size=3))

    def rows(values):
        return pa.table(
            {
                "a": pa.array([a for a, _ in values], texts.arrow),
                "b": pa.array([b for _, b in values], longs.arrow),
            }
        )

    tables = [rows(values) for values in files]
    held = may_hold(
        [statistics_of(table) for table in tables], rows(keys), tables[0].schema, {"a": "a", "b": "b"}
    )

    for values, may in zip(files, held, strict=True):
        assert may or not set(keys) & set(values)


@pytest.mark.parametrize("sampled", [1, 2_000])
@pytest.mark.parametrize(("middle", "is_held"), [("0050", False), ("0100", True), ("0199", True)])
def test_files_outside_the_bounds_are_passed_over(middle, is_held, sampled, monkeypatch):
    """Only those are read whose bounds, both included, hold a key, be it among the first looked at or not."""
    monkeypatch.setattr("freezeframe.store.table.keys._SAMPLED_KEYS", sampled)
    tables = [pa.table({"Id": [f"{n:04}" for n in range(start, start + 100)]}) for start in (0, 100, 200)]
    keys = pa.table({"Id": ["0005", middle, "0250"]})

    held = may_hold([statistics_of(rows) for rows in tables], keys, tables[0].schema, {"Id": "Id"})

    assert held == [True, is_held, True]


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"minValues": 1}', '{"minValues": {"Id": 5}}'])
def test_statistics_that_say_nothing_exclude_nothing(text):
    """Absent, damaged and foreign statistics leave no file out."""
    keys = pa.table({"Id": list(TEXTS)})

    assert may_hold([text], keys, keys.schema, {"Id": "Id"}) == [True]


def test_a_narrower_stored_type_excludes_nothing():
    """Keys of another type than the files' may order differently, so their bounds are not used."""
    rows = pa.table({"Id": pa.array([1, 2], pa.int32())})

    assert may_hold([statistics_of(rows)], pa.table({"Id": [5]}), rows.schema, {"Id": "Id"}) == [True]


@pytest.fixture
def stream(memory):
    """A stream of which nothing is ever written anew, so that it soon has several files."""
    return Tenant(memory, NoEngine(), Settings(vectors_from_bytes=0)).stream("Lead")


@pytest.fixture(autouse=True)
def _batches_of_two_rows(monkeypatch):
    """Few rows are read at once."""
    monkeypatch.setattr("freezeframe.log.scan.file_rows._BATCH_ROWS_MAX", 2)


def frame(numbers, value):
    return pd.DataFrame({"Id": [f"{n:04}" for n in numbers], "v": value})


def keys(*ids):
    return pa.table({"Id": list(ids)})


def located(stream, sought, piece_rows):
    snapshot = stream._snapshot()
    table = scan(snapshot, snapshot.files, sought, piece_rows)
    assert table.schema == FOUND
    return sorted(zip(*(table[name].to_pylist() for name in FOUND.names), strict=True))


@pytest.mark.parametrize("piece_rows", [1, 3, 1 << 20])
def test_each_key_is_found_with_its_file_and_position(stream, piece_rows):
    """A row that was changed is found where it was and where it is: which one is deleted, the log says."""
    stream.update(frame(range(7), 0), key="Id")
    stream.update(frame([5, 9], 1))
    assert stream._snapshot().files.num_rows == 2
    assert located(stream, keys("0009", "0005", "0077"), piece_rows) == [(0, 5, 1), (1, 0, 1), (1, 1, 0)]
    assert located(stream, keys("0005"), piece_rows) == [(0, 5, 0), (1, 0, 0)]
    assert located(stream, keys("x"), piece_rows) == []


@pytest.mark.parametrize("piece_rows", [1, 3, 1 << 20])
def test_only_the_given_files_are_read(stream, piece_rows):
    """Numbers are those of the files that were given."""
    stream.update(frame(range(3), 0), key="Id")
    stream.update(frame(range(10, 13), 0))
    snapshot = stream._snapshot()
    table = scan(snapshot, snapshot.files.slice(1), keys("0001", "0012"), piece_rows)
    assert table.to_pylist() == [{"file": 0, "row": 2, "place": 1}]
    assert len(scan(snapshot, snapshot.files.slice(2), keys("0001"), piece_rows)) == 0


@pytest.mark.parametrize("piece_rows", [1, 3, 1 << 20])
def test_tasks_for_other_processes_find_the_same(tmp_path, monkeypatch, piece_rows):
    """They can be pickled, read the keys from a file, and share the row groups of large files."""
    monkeypatch.setattr("freezeframe.store.table.keys.PART_ROWS_MIN", 3)
    monkeypatch.setattr("freezeframe.store.table.keys.processors", lambda: 3)
    monkeypatch.setattr("freezeframe.store.table.staging._GROUP_ROWS", 2)
    storage = LocalStorage(tmp_path / "acme")
    stream = Tenant(storage, NoEngine(), Settings(vectors_from_bytes=0)).stream("Lead")
    stream.update(frame(range(11), 0), key="Id")
    stream.update(frame([5, 20, 21], 1))
    sought = keys("0020", "0005", "0010", "none")
    pq.write_table(sought, tmp_path / "acme/keys.parquet")
    snapshot = stream._snapshot()
    tasks = pickle.loads(
        pickle.dumps(scan_tasks(snapshot, snapshot.files, ["Id"], storage.sendable(), "keys.parquet"))
    )

    assert len(tasks) == 3
    places = [tuple(row.values()) for row in pa.concat_tables([task() for task in tasks]).to_pylist()]
    assert located(stream, sought, piece_rows) == sorted(places)
    assert set(places) == {(0, 10, 2), (0, 5, 1), (1, 0, 1), (1, 1, 0)}


@pytest.mark.parametrize(("row", "bits"), [(2**31 - 1, [16, 32, 32]), (2**31, [32, 64, 64])])
def test_what_tasks_found_is_sent_in_half_the_bytes_where_it_fits(row, bits):
    """Rows and keys by four bytes, files by two; a larger number leaves all as they are."""
    found = pa.table({"file": [1, 2], "row": [row, 0], "place": [3, 4]}, FOUND)
    assert (bits, found) == ([kind.bit_width for kind in sent(found).schema.types], sent(found).cast(FOUND))


@pytest.mark.parametrize("piece_rows", [1, 3, 1 << 20])
def test_a_damaged_file_is_named(stream, memory, piece_rows):
    """Nothing is answered from a file that is not as it was written."""
    stream.update(frame(range(3), 0), key="Id")
    (path,) = stream._snapshot().files["path"].to_pylist()
    (name,) = (item.name for item in memory.list_below("") if item.name.endswith(path))
    memory.replace(name, memory.read(name)[:-1])
    with pytest.raises(CorruptData, match=path):
        located(stream, keys("0001"), piece_rows)
