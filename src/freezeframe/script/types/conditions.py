"""``--where "COLUMN OP VALUE"``: conditions as text become one predicate, typed as the columns are (pure)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.script.types.written_values import exact_values

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "==": operator.eq,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON = re.compile(r"\s*(<=|>=|!=|==|=|<|>)\s*(.*)", re.DOTALL)
_NULLNESS = re.compile(r"\s+is\s+(not\s+)?null\s*", re.IGNORECASE)


def predicate(conditions: Sequence[str], columns: pa.Schema) -> pc.Expression:
    """All conditions as one expression; a row must meet every one of them.

    A value is compared in its column's own type; quotes around it are optional. ``is null`` and
    ``is not null`` ask for missing values, which no comparison ever meets.
    """
    return reduce(operator.and_, (_condition(text, columns) for text in conditions))


def _condition(text: str, columns: pa.Schema) -> pc.Expression:
    field, rest = _column(text.strip(), columns)
    asked = _NULLNESS.fullmatch(rest)
    if asked is not None:
        is_null = pc.field(field.name).is_null()
        return ~is_null if asked[1] else is_null
    compared = _COMPARISON.fullmatch(rest)
    if compared is None:
        raise InvalidOption(
            f"{text!r} is not a condition.",
            remedy='Write "COLUMN OP VALUE" with one of = != < <= > >=, or "COLUMN is null".',
        )
    return _OPERATORS[compared[1]](pc.field(field.name), _value(compared[2], field))


def _column(text: str, columns: pa.Schema) -> tuple[pa.Field, str]:
    # Names may contain spaces and operators: the longest matching name wins.
    for name in sorted(columns.names, key=len, reverse=True):
        rest = text.removeprefix(name)
        if text.startswith(name) and (_COMPARISON.fullmatch(rest) or _NULLNESS.fullmatch(rest)):
            return columns.field(name), rest
    for name in sorted(columns.names, key=len, reverse=True):
        if text.startswith(name) and not text.removeprefix(name)[:1].isalnum():
            return columns.field(name), text.removeprefix(name)
    raise MissingColumn(
        f"The condition {text!r} begins with no column's name.",
        cause=f"The columns are {', '.join(columns.names)}.",
        remedy='Write it as "COLUMN OP VALUE", for example "City = Bern".',
    )


def _value(text: str, field: pa.Field) -> pa.Scalar:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    plain = text[1:-1] if quoted else text.strip()
    values = exact_values(pa.chunked_array([pa.array([plain], pa.string())]), field.type, naive_is_utc=True)
    if values is None:
        raise InvalidOption(
            f"{plain!r} is not a value of the column {field.name!r}.",
            cause=f"The column is of type {field.type}.",
            remedy="Write it as the stream's rows show it.",
        )
    return values[0]
