"""Rows as the text of a CSV file, as pandas' ``to_csv(index=False)`` writes it, but without its losses.

A missing value is an empty field and the empty text a quoted one, so that both come back; times are
ISO 8601 with their offset. Values without a text of their own (lists, structs) are JSON.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.python_values import date_texts, moment_text, python_values

_NEEDS_QUOTES = r'[",\r\n]'


def csv_text(rows: pa.Table) -> str:
    """The rows below a header, each line ended by a newline."""
    header = ",".join(_quote(pa.chunked_array([pa.array(rows.column_names)])).to_pylist())
    if not rows.num_columns or not rows.num_rows:
        return f"{header}\n"
    fields = [pc.fill_null(_field(column), "") for column in rows.columns]
    lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*fields, ","), "\n", "")
    return f"{header}\n{''.join(map(_join_texts, lines.chunks))}"


def _join_texts(lines: pa.Array) -> str:
    """The concatenated texts, as the array holds them."""
    offsets = np.frombuffer(lines.buffers()[1], np.int32)
    first, last = (int(offsets[lines.offset + at]) for at in (0, len(lines)))
    return str(lines.buffers()[2].slice(first, last - first).to_pybytes(), "utf-8")


def _field(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    text = _as_text(column)
    # No number has a comma, a quote or a newline, nor is its text empty.
    return text if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else _quote(text)


def _quote(text: pa.ChunkedArray) -> pa.ChunkedArray:
    quotes = pc.or_(pc.match_substring_regex(text, _NEEDS_QUOTES), pc.equal(text, ""))
    if not pc.any(quotes, min_count=0).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(quotes, pc.binary_join_element_wise('"', doubled, '"', ""), text)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "True", "False")
    if pa.types.is_floating(kind):
        text = pc.if_else(pc.is_nan(column), None, column).cast(pa.string())
        return pc.replace_substring_regex(text, r"^(-?\d+)$", r"\1.0")
    if pa.types.is_timestamp(kind):
        text = pc.replace_substring_regex(column.cast(pa.string()), r"\.0+(Z?)$", r"\1")
        return pc.replace_substring_regex(text, "Z$", "+00:00")
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        texts = list(map(_json, python_values(column, moment_text)))
        return pa.chunked_array([pa.array(texts, pa.string())])
    return date_texts(column) if pa.types.is_date(kind) else column.cast(pa.string())


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)
