"""Writes rows as JSON Lines without loss of typed values; ``json_rows`` reads them.

What JSON has no value for is text: decimals, dates, times, binary (base64), and the numbers that
are not numbers (``"NaN"``, ``"Infinity"``). A missing value is ``null``.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.python_values import shown_rows


def json_lines(rows: pa.Table, batch_rows: int) -> Iterator[bytes]:
    """The rows, some at a time."""
    for start in range(0, len(rows), batch_rows):
        batch = shown_rows(rows.slice(start, batch_rows))
        yield b"".join(
            json.dumps({name: _plain(value) for name, value in row.items()}, ensure_ascii=False).encode()
            + b"\n"
            for row in batch
        )


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value)
