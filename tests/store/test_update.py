"""What callers ask, as a value that contradicts nothing."""

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.store.update import update_from


def test_names_may_be_one_text_or_several():
    """A key is given as text, a list or a tuple."""
    assert ("Id",) == update_from(key="Id").key
    assert ("Id", "Line") == update_from(key=["Id", "Line"], drop_column="x").key
    assert ("x",) == update_from(key="Id", drop_column="x").drop_columns


@pytest.mark.parametrize(
    "options",
    [
        {"key": None},
        {"key": []},
        {"key": [1]},
        {"key": ["Id", "Id"]},
        {"key": "Id", "override": True, "replace_where": "a = 1"},
        {"key": "Id", "replace_where": "  "},
        {"key": "Id", "nulls": "maybe"},
        {"key": "Id", "null_keys": "maybe"},
        {"key": "Id", "drop_column": ["Id"]},
    ],
)
def test_contradictions_are_refused(options):
    """An impossible call is refused before any row is looked at, with what to do instead."""
    with pytest.raises(InvalidOption) as caught:
        update_from(**options)

    assert caught.value.remedy


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({"key": "Id"}, "upsert"),
        ({"key": None, "override": True}, "overwrite"),
        ({"key": None, "replace_where": "a"}, "replace_where"),
    ],
)
def test_the_mode_follows_from_the_options(options, mode):
    """Override and window need no key."""
    assert mode == update_from(**options).mode
