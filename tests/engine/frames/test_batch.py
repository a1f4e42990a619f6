"""Batches fit to be merged: keys that are there, filled and unique."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.engine.frames.batch import check_batch
from freezeframe.errors import BadInput, DuplicateKeyError, InvalidOption, MissingColumn, NullKeyError

ROWS = pa.table({"Id": ["1", "2", "1", "007", "7"], "row": [0, 1, 2, 3, 4]})
WITH_NULLS = pa.table({"Id": ["1", None, "2", None], "row": [0, 1, 2, 3]})


def test_the_last_row_of_a_key_stays_in_arrival_order():
    """Of rows that share a key the last one wins; "007" and "7" are two keys."""
    batch = check_batch(ROWS, "Id")
    assert batch.rows["row"].to_pylist() == [1, 2, 3, 4]
    assert (batch.key, batch.null_keys_dropped) == (("Id",), 0)


def test_a_batch_without_duplicates_is_passed_on_as_it_is():
    """Unique rows are not copied."""
    table = pa.table({"Id": [1, 2]})
    assert table is check_batch(table, ["Id"]).rows


def test_composite_keys_keep_their_order():
    """All columns of a key decide together."""
    table = pa.table({"a": [1, 1, 1], "b": ["x", "y", "x"], "row": [0, 1, 2]})
    batch = check_batch(table, ["b", "a"])
    assert batch.key == ("b", "a")
    assert batch.rows["row"].to_pylist() == [1, 2]


def test_duplicates_can_be_forbidden():
    """With drop_duplicates=False the message names at most ten keys."""
    table = pa.table({"Id": [f"k{n}" for n in range(12)] * 2})
    with pytest.raises(DuplicateKeyError, match="and more") as caught:
        check_batch(table, "Id", drop_duplicates=False)
    assert caught.value.details["count"] == 12
    assert [repr(f"k{n}") for n in range(10)] == caught.value.details["keys"]


def test_a_null_key_is_an_error_naming_column_count_and_rows():
    """A row without a key could never be found again."""
    with pytest.raises(NullKeyError) as caught:
        check_batch(WITH_NULLS, ["row", "Id"])
    details = caught.value.details
    assert (details["column"], details["count"], details["rows"]) == ("Id", 2, [1, 3])


def test_null_keys_can_be_dropped_and_are_counted():
    """null_keys="drop" leaves those rows out."""
    batch = check_batch(WITH_NULLS, "Id", null_keys="drop")
    assert batch.rows["row"].to_pylist() == [0, 2]
    assert batch.null_keys_dropped == 2


def test_null_keys_can_match_each_other():
    """null_keys="match" takes null for a key of its own."""
    batch = check_batch(WITH_NULLS, "Id", null_keys="match")
    assert batch.rows["row"].to_pylist() == [0, 2, 3]


def test_a_key_column_without_any_type_is_all_null():
    """A column of Arrow's null type holds no key."""
    with pytest.raises(NullKeyError, match="3 of 3"):
        check_batch(pa.table({"a": pa.nulls(3)}), "a")


def test_a_missing_key_column_names_the_others_and_the_nearest():
    """A slip of case is the usual reason, so the message suggests it."""
    with pytest.raises(MissingColumn, match="Did you mean 'Id'") as caught:
        check_batch(ROWS, "id")
    assert caught.value.details["columns"] == ["Id", "row"]


@pytest.mark.parametrize("key", [[], ["Id", "Id"], [1], ""], ids=repr)
def test_a_key_is_one_column_or_several_that_differ(key):
    """Anything else is refused before a row is looked at."""
    with pytest.raises((InvalidOption, MissingColumn)):
        check_batch(ROWS, key)


def test_an_unknown_rule_for_null_keys_is_refused():
    """The message lists the three that there are."""
    with pytest.raises(InvalidOption, match="match"):
        check_batch(ROWS, "Id", null_keys="ignore")


def test_columns_that_differ_in_case_only_are_refused():
    """Delta takes "Id" and "id" for one column."""
    with pytest.raises(BadInput, match="'Id' and 'id'"):
        check_batch(pa.table({"Id": [1], "id": [2]}), "Id")


def test_a_list_cannot_be_a_key():
    """Keys are text, numbers, dates and the like."""
    with pytest.raises(BadInput, match="cannot be compared"):
        check_batch(pa.table({"a": [[1]]}), "a")


def test_zero_and_minus_zero_are_one_key():
    """Spark joins them, so two rows would meet one stored row."""
    assert len(check_batch(pa.table({"a": [0.0, -0.0]}), "a").rows) == 1


KEY_VALUES = st.one_of(
    st.just(st.none() | st.integers(0, 3)),
    st.just(st.none() | st.sampled_from(["", "1", "01", "A", "a"])),
    st.just(st.none() | st.sampled_from([Decimal("1.10"), Decimal(2)])),
    st.just(st.none() | st.sampled_from([dt.date(2020, 1, 1), dt.date(2021, 1, 1)])),
    st.just(st.none() | st.booleans()),
)


@settings(max_examples=examples(80))
@given(st.data())
def test_deduplication_agrees_with_a_dictionary(data):
    """A dict filled in arrival order is the oracle, for keys of any type and number."""
    size = data.draw(st.integers(0, 12))
    names = ["row", "k0", "k1"][: data.draw(st.integers(1, 3))]
    columns = {
        name: data.draw(st.lists(data.draw(KEY_VALUES), min_size=size, max_size=size)) for name in names
    }
    table = pa.table({**columns, "number": list(range(size))})
    last = {key: number for number, key in enumerate(zip(*columns.values(), strict=True))}
    batch = check_batch(table, names, null_keys="match")
    assert sorted(last.values()) == batch.rows["number"].to_pylist()


@pytest.mark.parametrize(
    ("order", "last"),
    [
        ([1, 3, 2], "b"),
        ([None, 1, None], "b"),
        ([2, None, 2], "c"),
        ([0.5, float("nan"), None], "b"),
        (["2026-01-02", "2026-01-01", None], "a"),
        ([None, None, None], "c"),
        ([True, False, None], "a"),
        ([Decimal("1.5"), None, Decimal("1.50")], "c"),
        ([b"b", b"a", None], "a"),
    ],
)
def test_the_last_by_order_wins(order, last):
    """The largest value, of which null is the smallest and NaN the largest; ties as they arrived."""
    table = pa.table({"Id": ["1", "1", "1"], "v": ["a", "b", "c"], "at": order})
    assert [last] == check_batch(table, "Id", order_by=["at"]).rows["v"].to_pylist()


def test_rows_that_stay_keep_their_order():
    """Several columns decide in turn; the rows that stay are in order of arrival."""
    table = pa.table(
        {"Id": ["2", "1", "2", "1"], "day": [1, 1, 1, 0], "hour": [5, 0, 4, 9], "v": ["a", "b", "c", "d"]}
    )
    assert check_batch(table, "Id", order_by=["day", "hour"]).rows["v"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize(("name", "error"), [("nope", MissingColumn), ("tags", BadInput)])
def test_what_has_no_order_is_refused(name, error):
    """A column that is not there, and one of lists."""
    table = pa.table({"Id": ["1"], "tags": [["a"]]})
    with pytest.raises(error, match=repr(name)):
        check_batch(table, "Id", order_by=[name])


def test_a_nan_is_one_key_whatever_its_bits():
    """NaN has many bit patterns, and zero two: each is one key, the last row of which stays."""
    odd = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0, 0x8000000000000000], np.uint64)
    table = pa.table({"Id": pa.array(odd.view(np.float64)), "v": [1, 2, 3, 4]})
    assert check_batch(table, "Id").rows["v"].to_pylist() == [2, 4]
