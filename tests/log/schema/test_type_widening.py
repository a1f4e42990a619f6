"""Type changes that a reader may undo, and those that it must refuse."""

import pytest

from freezeframe.errors import UnsupportedTable
from freezeframe.log.format.schema import is_widening, require_known_changes


@pytest.mark.parametrize(
    "change",
    [
        ("byte", "short"),
        ("byte", "long"),
        ("integer", "long"),
        ("float", "double"),
        ("integer", "double"),
        ("date", "timestamp_ntz"),
        ("decimal(5,2)", "decimal(7,4)"),
        ("decimal(5,2)", "decimal(10,2)"),
        ("byte", "decimal(10,0)"),
        ("integer", "decimal(12,2)"),
        ("long", "decimal(20,0)"),
    ],
)
def test_the_protocols_list_is_allowed(change):
    """Every change on the protocol's list keeps every value."""
    assert is_widening(*change)


@pytest.mark.parametrize(
    "change",
    [
        ("long", "integer"),
        ("long", "double"),
        ("byte", "decimal(4,1)"),
        ("long", "decimal(10,0)"),
        ("decimal(5,2)", "decimal(6,4)"),
        ("decimal(5,2)", "decimal(5,1)"),
        ("string", "long"),
        ("date", "timestamp"),
        ("double", "float"),
    ],
)
def test_everything_else_is_not(change):
    """A change that could lose a digit, or is not on the list, is none to undo."""
    assert not is_widening(*change)


def test_a_nested_change_is_found_and_named():
    """A change inside a struct is refused with the field's name and both types."""
    change = {"delta.typeChanges": [{"fromType": "string", "toType": "long"}]}
    inner = {"name": "deep", "type": "long", "nullable": True, "metadata": change}
    kind = {"type": "array", "elementType": {"type": "struct", "fields": [inner]}, "containsNull": True}
    outer = {"name": "o", "type": kind, "nullable": True, "metadata": {}}
    with pytest.raises(UnsupportedTable, match="'deep' was changed from string to long") as caught:
        require_known_changes({"type": "struct", "fields": [outer]})
    assert caught.value.error_code == "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA"
