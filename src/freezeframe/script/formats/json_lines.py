"""Writes rows as JSON Lines without loss of typed values; ``json_rows`` reads them.

What JSON has no value for is text: decimals, dates, times, binary (base64), and the numbers that
are not numbers (``"NaN"``, ``"Infinity"``). A missing value is ``null``, a map an object, or a list of pairs
where its keys are no texts.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.python_values import shown_rows

Form = Callable[[Any], Any]
"""A value of a column, as Python has it, in the form that is written."""


def json_lines(rows: pa.Table, batch_rows: int) -> Iterator[bytes]:
    """The rows, some at a time."""
    forms = {field.name: json_form(field.type) for field in rows.schema}
    for start in range(0, len(rows), batch_rows):
        batch = shown_rows(rows.slice(start, batch_rows))
        yield b"".join(
            json.dumps({name: forms[name](value) for name, value in row.items()}, ensure_ascii=False).encode()
            + b"\n"
            for row in batch
        )


def json_form(kind: pa.DataType) -> Form:
    """What makes a value of JSON of a value of the type."""
    form = _form(kind)
    return lambda value: None if value is None else form(value)


def _form(kind: pa.DataType) -> Form:
    if pa.types.is_floating(kind):
        return _number
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return lambda value: base64.b64encode(value).decode()
    if pa.types.is_decimal(kind):
        return lambda value: format(value, "f")
    if pa.types.is_temporal(kind):
        return lambda value: value if isinstance(value, str) else value.isoformat()
    if pa.types.is_struct(kind):
        parts = {field.name: json_form(field.type) for field in kind}
        return lambda value: {name: form(value.get(name)) for name, form in parts.items()}
    if pa.types.is_map(kind):
        return _map_form(kind)
    if pa.types.is_nested(kind):
        item = json_form(kind.value_type)
        return lambda value: [item(element) for element in value]
    return lambda value: value


def _map_form(kind: pa.DataType) -> Form:
    key, item = json_form(kind.key_type), json_form(kind.item_type)

    def form(pairs: Any) -> Any:
        named = {name: item(value) for name, value in pairs} if pa.types.is_string(kind.key_type) else None
        # A list of pairs holds what an object does not: other keys than texts, and a key twice.
        if named is not None and len(named) == len(pairs):
            return named
        return [[key(name), item(value)] for name, value in pairs]

    return form


def _number(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
