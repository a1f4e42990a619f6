"""Type widening: the type changes for which scans convert the values of older files.

Tables record each change in the field's metadata (protocol, section "Type Widening"). A change
outside the protocol's list has no defined conversion, so such a table is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from freezeframe.errors import UnsupportedTable
from freezeframe.log.schema.column_mapping import every_field

CHANGES_KEY = "delta.typeChanges"

_WHOLE = ("byte", "short", "integer", "long")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}  # as decimals, by the protocol


def is_widening(before: str, after: str) -> bool:
    """Whether the protocol lists the change from ``before`` to ``after`` as widening."""
    if before in _WHOLE and after in _WHOLE:
        return _WHOLE.index(before) <= _WHOLE.index(after)
    if (before, after) in {("float", "double"), ("date", "timestamp_ntz")}:
        return True
    if after == "double":
        return before in _WHOLE[:3]
    wide = _DECIMAL.fullmatch(after)
    narrow = _DECIMAL.fullmatch(before)
    if wide is None:
        return False
    if narrow is not None:
        return _holds(int(narrow[1]), int(narrow[2]), wide)
    return before in _DIGITS and _holds(_DIGITS[before], 0, wide)


def _holds(precision: int, scale: int, wide: re.Match[str]) -> bool:
    more_scale = int(wide[2]) - scale
    return 0 <= more_scale <= int(wide[1]) - precision


def require_known_changes(schema: Mapping[str, Any]) -> None:
    """Refuse a table with a type change that Delta does not allow."""
    for field in every_field(schema):
        for change in (field.get("metadata") or {}).get(CHANGES_KEY) or ():
            before, after = str(change.get("fromType")), str(change.get("toType"))
            if not is_widening(before, after):
                raise UnsupportedTable(
                    f"The rows cannot be read: the type of {field['name']!r} was changed from "
                    f"{before} to {after}.",
                    cause="This change of type is none that Delta's type widening allows.",
                    remedy="Read a version of the table before the change.",
                    code="DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
                    column=field["name"],
                )
