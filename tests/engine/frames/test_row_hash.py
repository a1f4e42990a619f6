"""Hashes of rows: of the values alone, and the same wherever they are computed."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.typed_columns import KINDS, cells

from freezeframe.engine.frames.row_hash import row_sums
from freezeframe.log.schema.schema import arrow_to_delta


@st.composite
def tables(draw, rows_max=12):
    """A table with a column of every kind."""
    rows = draw(st.integers(0, rows_max))
    columns = {
        name: pa.array(draw(st.lists(cells(kind), min_size=rows, max_size=rows)), kind.arrow)
        for name, kind in KINDS.items()
    }
    return pa.table(columns)


@given(tables(), st.randoms(use_true_random=False))
@settings(max_examples=examples(30))
def test_order_chunks_and_offsets_do_not_matter(table, random):
    """The same rows in another order, cut elsewhere, behind others that are sliced away."""
    order = list(range(len(table)))
    random.shuffle(order)
    cut = random.randint(0, len(table))
    moved = table.take(pa.array(order, pa.int64()))
    behind = pa.concat_tables([table, moved]).combine_chunks().slice(len(table))
    chunks = pa.concat_tables([moved.slice(cut), moved.slice(0, cut)])

    assert row_sums(table) == row_sums(behind) == row_sums(chunks)
    assert row_sums(table) == row_sums(table.select(table.column_names[::-1]))


VALUES = {
    "texts": ([None, "", "0", "00", "a", "b", "x" * 600, "x" * 601], pa.string()),
    "bytes": ([None, b"", b"\x00", b"\x00\x00"], pa.binary()),
    "integers": ([None, 0, 1, -1, 2**62], pa.int64()),
    "floats": ([None, 0.0, -0.0, math.nan, math.inf, 5e-324], pa.float64()),
    "lists": ([None, [], [None], [None, None], [0], [0, None], [None, 0]], pa.list_(pa.int64())),
    "structs": ([None, {"a": None}, {"a": 0}], pa.struct([("a", pa.int64())])),
    "maps": ([None, [], [("a", None)], [("a", 0)], [("a", 0), ("b", 0)]], pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("name", VALUES)
def test_different_values_have_different_hashes(name):
    """Null, empty and zero, and signs of zero, are told apart, inside of lists as well."""
    values, kind = VALUES[name]
    found = {row_sums(pa.table({"v": pa.array([value], kind)})) for value in values}

    assert len(found) == len(values)


def test_values_belong_to_their_row_and_column():
    """Cells that change their rows, or their columns, make other rows."""
    sums = {
        row_sums(pa.table({"a": first, "b": second}))
        for first, second in itertools.product(itertools.permutations(["x", "y", None]), repeat=2)
    }

    # The rows have no order: of 36 pairs of permutations 6 are different sets of rows.
    assert len(sums) == 6


def test_repeated_texts_are_hashed_as_any_others():
    """A long column of few values takes a short cut."""
    values = ["won", None, "lost", "", "a text that takes more than thirty-two bytes"] * 1000
    table = pa.table({"v": values})
    halves = [row_sums(table.slice(start, 500)) for start in range(0, len(table), 500)]
    whole = row_sums(table)

    assert (whole.lower, whole.upper) == (sum(one.lower for one in halves), sum(one.upper for one in halves))


def test_more_columns_than_rotations():
    """Each of a thousand columns counts, and which one it is."""
    found = {
        row_sums(pa.table({f"c{place:04d}": [1 if place == set_ else 0] for place in range(1000)}))
        for set_ in (0, 1, 63, 64, 65, 128, 999)
    }

    assert len(found) == 7


def test_floats_of_both_widths_hash_alike():
    """The same number is the same, as it is with integers."""
    numbers = np.array([0.5, -0.0, math.nan], np.float32)

    assert row_sums(pa.table({"v": numbers})) == row_sums(pa.table({"v": numbers.astype(np.float64)}))


@pytest.mark.spark
@given(table=tables(rows_max=40))
@settings(max_examples=8, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_spark_says_the_same(bench, table):
    """Every type that a stream keeps, with the values that other tools change, over files."""
    half = len(table) // 2
    files = [bench.file(table.slice(0, half)), bench.file(table.slice(half))]

    assert bench.engine.sum_rows(files, arrow_to_delta(table.schema)) == row_sums(table)


@pytest.mark.spark
def test_spark_says_the_same_of_odd_tables(bench):
    """Long values, many columns, strange names, no rows, no columns with values."""
    tables_ = [
        pa.table({"v": ["x" * length for length in range(500, 530)], "b": [bytes(600)] * 30}),
        pa.table({f"c{place}.`x`": [place, None] for place in range(130)}),
        pa.table({"v": pa.array([], pa.int64())}),
        pa.table({"a": pa.nulls(2), "v": [1, 2]}),
        pa.table({"d": pa.array([10**37, -(10**37), 127, 128, -128, -129, 0, None], pa.decimal128(38, 0))}),
    ]
    for table in tables_:
        assert bench.engine.sum_rows([bench.file(table)], arrow_to_delta(table.schema)) == row_sums(table)
