"""A key is a value or a word of a text; digits of other figures, hashes and names of files are none."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from freezeframe.store.maintenance.erased_keys import ErasedKeys

ID = "3f2b1c1010704711bead0123456789ab"


def keys(*values, **columns):
    given = columns or {"Id": list(values)}
    return ErasedKeys.of(given, {name: f"col-{name}" for name in given})


@pytest.mark.parametrize(
    "record",
    [
        {"receipt": {"seconds": 0.0411010750}},
        {"size": 10107, "timestamp": 1010700010107, "version": 10107},
        {"stats": json.dumps({"numRecords": 10107, "minValues": {"col-n": 10107}})},
        {"minValues": {"col-Id": 101070}, "path": f"{ID}-10107/rows-{ID}-10107.parquet"},
        {"sha256": "10107" * 12 + "1010", "text": "2026-10107 0.10107 1.10107 x10107 10107.5 10:10107"},
    ],
)
@pytest.mark.parametrize("key", [10107, 10107.0, Decimal(10107), "10107"])
def test_digits_of_figures_are_no_key(record, key):
    """Neither of a duration, a size, another column's bound, a path nor a hash."""
    assert not keys(key).in_json(json.dumps(record).encode())


@pytest.mark.parametrize(
    "record",
    [
        {"stats": json.dumps({"numRecords": 1, "minValues": {"col-Id": 10107}})},
        {"maxValues": {"col-Id": 10107}},
        {"partitionValues": {"col-Id": "10107"}},
        {"partitionValues": [["col-Id", "10107"]]},
        {"content": '{"commitInfo":{}}\n{"add":{"stats":"{\\"maxValues\\":{\\"col-Id\\":10107}}"}}\n'},
        {"message": "customer 10107 asked", "size": 1},
        {"jobs": {"10107": 1}},
    ],
)
@pytest.mark.parametrize("key", [10107, Decimal(10107)])
def test_a_number_is_found_where_it_may_stand(record, key):
    """In its column's bounds, however deep they are written, and as a word of a text."""
    assert keys(key).in_json(json.dumps(record).encode())


@pytest.mark.parametrize(
    "key", ["erase-me-4711", ID, "0d9c3a52-8f53-4b6c-9c83-0a4b7b1d2f3e", "a10107b", "ä/ö-x"]
)
def test_text_is_found_anywhere(key):
    """Within other text, in names and in bytes; ids as well, which are like ours."""
    found = keys(key)

    assert found.in_json(json.dumps({"a": [{f"x{key}y": 1}]}).encode())
    assert found.in_bytes(f"before {key} after".encode())
    assert found.in_value({"mail": f"{key}@example.org"})
    assert not found.in_json(json.dumps({"a": "b" * 40, "c": ID[::-1]}).encode())


def test_a_moment_is_found_as_it_is_written():
    """With a T or a space, and with what follows it."""
    found = keys(datetime(2026, 10, 1, 8, tzinfo=UTC).replace(tzinfo=None))

    assert found.in_json(json.dumps({"minValues": {"col-Id": "2026-10-01T08:00:00.000Z"}}).encode())
    assert not found.in_json(json.dumps({"minValues": {"col-Id": "2026-10-01T09:00:00.000Z"}}).encode())


def test_a_part_of_a_key_is_no_key():
    """Rows that stay may share it, so a column's bound tells nothing; a record of ours neither."""
    parts = keys(a=[10107], b=["xy"])

    assert not parts.in_json(json.dumps({"minValues": {"col-a": 10107}}).encode())
    assert not keys(1000).in_record({"message": "erase 1000 keys of A"}, ours="erase 1000 keys of A")


def test_numbers_of_other_streams_are_compared_as_numbers():
    """A mention is an equal number, not one that has its digits."""
    found = keys(10107)

    assert found.in_value([{"by": 10107}])
    assert not found.in_value([{"by": 101070}, 1.10107, "101071"])
