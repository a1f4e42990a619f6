"""Errors about options in the words of the command line and of the service."""

import pytest

from freezeframe.asgi.routes.routing import update_options
from freezeframe.cli.places.update_flags import FLAGS
from freezeframe.errors import InvalidOption
from freezeframe.store.model.update_options import UpdateOptions, as_flag, as_parameter, say_options


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


def test_every_door_has_every_option():
    """What Python takes the command line and the service take, under the same names."""
    names = set(UpdateOptions.__annotations__)
    assert names == set(FLAGS)
    assert names == set(update_options.__annotations__) - {"return"}
