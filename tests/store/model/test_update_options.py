"""What callers ask, as a value that contradicts nothing."""

from pathlib import Path

import pytest

from freezeframe.cli.options import FLAGS
from freezeframe.errors import InvalidOption
from freezeframe.store.model.update_options import (
    UpdateOptions,
    as_flag,
    as_parameter,
    say_options,
    update_from,
)


def test_names_may_be_one_text_or_several():
    assert update_from(key="Id").key == ("Id",)
    assert update_from(key=["Id", "Line"], drop_column="x").key == ("Id", "Line")
    assert update_from(key="Id", drop_column="x").drop_columns == ("x",)


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
        {"key": None, "mode": "full"},
        {"key": "Id", "mode": "partial"},
        {"key": "Id", "mode": "overwrite"},
        {"key": "Id", "mode": "full", "override": True},
        {"key": "Id", "mode": "full", "replace_where": "a = 1"},
        {"key": "Id", "deletes": "remove"},
        {"key": "Id", "mode": "full", "deletes": "hide"},
        {"key": "Id", "max_delete_ratio": 1.0},
        {"key": "Id", "mode": "full", "max_delete_ratio": 1.1},
        {"key": "Id", "mode": "full", "max_delete_ratio": True},
        {"key": "Id", "mode": "full", "max_delete_ratio": "all"},
        {"key": "Id", "history": "scd1"},
        {"key": "Id", "history": "none"},
        {"key": "Id", "history": "scd2", "mode": "full", "deletes": "flag"},
        {"key": "Id", "order_by": ["at", "at"]},
        {"key": "Id", "order_by": "at", "drop_duplicates": False},
        {"key": "Id", "null": "keep"},
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
        ({"key": "Id", "mode": "full", "max_delete_ratio": 1}, "full"),
    ],
)
def test_the_mode_follows_from_the_options(options, mode):
    assert mode == update_from(**options).mode


def test_an_option_that_there_is_not_is_named_with_the_one_meant():
    with pytest.raises(InvalidOption, match="Did you mean 'replace_where'") as caught:
        update_from(key="Id", replace_were="a = 1")

    assert caught.value.details["option"] == "replace_were"


def test_options_may_be_none():
    """None is as if the option were not given, where there is something to leave out."""
    options = ("replace_where", "deletes", "max_delete_ratio", "history", "order_by", "drop_column")

    assert update_from(key="Id") == update_from(key="Id", **dict.fromkeys(options))


def test_each_option_is_documented():
    """The one list of options and the page of the reference name the same ones."""
    page = (Path(__file__).parents[3] / "docs/reference/semantics.md").read_text(encoding="utf-8")
    rows = page.partition("## Options")[2].partition("\n## ")[0].splitlines()

    documented = {row.split("`")[1] for row in rows if row.startswith("| `")}

    assert UpdateOptions.__annotations__.keys() == documented - {"key"}


@pytest.mark.parametrize(
    ("text", "flag", "parameter"),
    [
        ("pass on_drift='string'", "pass --on-drift string", "pass on_drift=string"),
        ("by override=True.", "by --override.", "by override=true."),
        ("drop_duplicates=False", "--no-drop-duplicates", "drop_duplicates=false"),
        ("max_delete_ratio=0.75;", "--max-delete-ratio 0.75;", "max_delete_ratio=0.75;"),
        ("key=['Id'].", "--key Id.", "key=Id."),
        ("order_by and null_keys", "--order-by and --null-keys", "order_by and null_keys"),
        ("pass order_by= to say", "pass --order-by to say", "pass order_by to say"),
        ("replace_where=\"D >= '1'\"", "--replace-where \"D >= '1'\"", "replace_where=\"D >= '1'\""),
        ("the column 'order_by', its mode, dtype=str", *2 * ("the column 'order_by', its mode, dtype=str",)),
    ],
)
def test_an_option_is_named_as_the_door_names_it(text, flag, parameter):
    """Names with a value, and bare names that cannot be English words; columns in quotes stay."""
    told = [say_options(InvalidOption("x", cause="", remedy=text), say) for say in (as_flag, as_parameter)]
    assert [flag, parameter] == [error.remedy for error in told]


def test_the_command_line_has_every_option():
    """What Python takes the command line takes, under the same names; for the service see `asgi/`."""
    assert set(UpdateOptions.__annotations__) == set(FLAGS)
