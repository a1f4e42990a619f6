"""The filter of changed keys: no key of a commit is ever excluded, and nearly all others are."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.store.keys.key_filter import KEYS_MAX, excludes, key_filter, key_hashes


def keys(values, kind=None):
    return pa.table({"Id": pa.array(values, kind)})


def is_excluded(text, table):
    return excludes(text, key_hashes(table))


@given(st.lists(st.text() | st.none(), min_size=1, max_size=50))
def test_a_key_of_the_commit_is_never_excluded(values):
    """Whatever its text; a null is a key as well."""
    text = key_filter(keys(values, pa.string()))
    assert not any(is_excluded(text, keys([value], pa.string())) for value in values)


@pytest.mark.parametrize(
    "table",
    [
        keys([1, -(2**63), None], pa.int64()),
        keys([Decimal("1.50"), Decimal(-7)], pa.decimal128(38, 2)),
        keys([date(2026, 11, 25), None], pa.date32()),
        pa.table({"Day": [date(2026, 11, 1)] * 2, "Ccy": ["EUR", None]}),
    ],
)
def test_keys_of_other_types_and_of_several_columns(table):
    """Each key passes, also when it is looked for alone."""
    text = key_filter(table)
    assert not any(is_excluded(text, table.slice(place, 1)) for place in range(len(table)))


def test_what_is_one_key_to_spark_is_one_here():
    """0.0 and -0.0, and NaN whatever its bits."""
    text = key_filter(keys([-0.0, float("nan")]))
    assert not is_excluded(text, keys([0.0]))
    assert not is_excluded(text, keys([-float("nan")]))


def test_one_key_in_a_hundred_passes_by_chance():
    """At the most keys that a filter is made of, which then takes ten bits for each."""
    text = key_filter(keys([f"K{number:06d}" for number in range(KEYS_MAX)]))
    assert len(text) == pytest.approx(KEYS_MAX * 10 / 8 * 4 / 3, abs=4)
    others = [is_excluded(text, keys([f"K{number:06d}"])) for number in range(KEYS_MAX, KEYS_MAX + 2_000)]
    assert sum(others) >= 0.98 * len(others)


@pytest.mark.parametrize("count", [0, KEYS_MAX + 1])
def test_without_keys_or_with_very_many_there_is_none(count):
    """An empty text, which excludes nothing."""
    assert key_filter(keys([str(number) for number in range(count)], pa.string())) == ""
    assert not is_excluded("", keys(["a"]))


@pytest.mark.parametrize("text", ["?", "AAA", "\u00e9", " "])
def test_a_text_that_is_no_filter_excludes_nothing(text):
    """Then the files are read, as where no filter is."""
    assert not is_excluded(text, keys(["a"]))
    assert not is_excluded(key_filter(keys(["a"])), keys([], pa.string()))
