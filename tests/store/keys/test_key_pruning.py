"""A file is passed over only if it surely holds none of the keys, by the statistics that we write."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.typed_columns import KINDS, TEXTS, Kind, cells, key_form

from freezeframe.log.scan.file_statistics import file_statistics, statistics_text
from freezeframe.store.schema.columns import delta_columns
from freezeframe.store.table.keys import may_hold

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


def test_files_outside_the_bounds_are_passed_over():
    """The point of it: of many files only those are read whose bounds meet a key's."""
    tables = [pa.table({"Id": [f"{n:04}" for n in range(start, start + 100)]}) for start in (0, 100, 200)]

    held = may_hold(
        [statistics_of(rows) for rows in tables],
        pa.table({"Id": ["0105", "0250"]}),
        tables[0].schema,
        {"Id": "Id"},
    )

    assert held == [False, True, True]


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"minValues": 1}', '{"minValues": {"Id": 5}}'])
def test_statistics_that_say_nothing_exclude_nothing(text):
    """Absent, damaged and foreign statistics leave no file out."""
    keys = pa.table({"Id": list(TEXTS)})

    assert may_hold([text], keys, keys.schema, {"Id": "Id"}) == [True]


def test_a_narrower_stored_type_excludes_nothing():
    """Keys of another type than the files' may order differently, so their bounds are not used."""
    rows = pa.table({"Id": pa.array([1, 2], pa.int32())})

    assert may_hold([statistics_of(rows)], pa.table({"Id": [5]}), rows.schema, {"Id": "Id"}) == [True]
