"""Rows as JSON Lines, one object a line, and back, without loss where the types are known.

What JSON has no value for is text: decimals, dates, times, binary (base64), and the numbers that
are no numbers (``"NaN"``, ``"Infinity"``). A missing value is ``null``.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from freezeframe.engine.python_values import shown_rows
from freezeframe.errors import UnreadableInput
from freezeframe.script.typed_columns import typed_columns
from freezeframe.script.unpacking import UNLIMITED, Unpacking, UnpackLimits
from freezeframe.storage.passing_failures import reads_of

# What a cell takes at least, while rows become columns.
_CELL_BYTES = 8


def json_lines(rows: pa.Table, batch_rows: int) -> Iterator[bytes]:
    """The rows, some at a time."""
    for start in range(0, len(rows), batch_rows):
        batch = shown_rows(rows.slice(start, batch_rows))
        yield b"".join(
            json.dumps({name: _plain(value) for name, value in row.items()}, ensure_ascii=False).encode()
            + b"\n"
            for row in batch
        )


def read_json_lines(file: Path, columns: pa.Schema | None, limits: UnpackLimits = UNLIMITED) -> pa.Table:
    """The rows of a file; columns in the types of ``columns``, others as their JSON values are.

    A column that some lines lack is NULL there. An empty file has no columns.

    Raises:
        TooLarge: with NULL where lines lack a column, it is more than a limit.
        UnreadableInput: a line is no JSON object, or a column's values are of several kinds; the line or
            the column is named.
    """
    unpacking = Unpacking(file.name, file.stat().st_size, limits)
    return _table(file, list(_objects(file)), columns, unpacking)


def json_line_pieces(
    file: Path, columns: pa.Schema | None, batch_rows: int, limits: UnpackLimits = UNLIMITED
) -> Iterator[pa.Table]:
    """The rows that ``read_json_lines`` gives, so many at a time; each piece has the columns of its lines.

    Raises:
        TooLarge, UnreadableInput: as it does, when the reading comes to it.
    """
    objects = _objects(file)
    unpacking = Unpacking(file.name, file.stat().st_size, limits)
    while rows := list(itertools.islice(objects, batch_rows)):
        yield _table(file, rows, columns, unpacking)


def _table(
    file: Path, rows: list[dict[str, Any]], columns: pa.Schema | None, unpacking: Unpacking
) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if columns is not None:
        names += [name for name in columns.names if name not in names]
    unpacking.found(len(rows), len(rows) * len(names) * _CELL_BYTES)
    values = [_column(file, name, [row.get(name) for row in rows], columns) for name in names]
    try:
        return pa.table(values, names=names)
    except UnicodeEncodeError as error:
        raise _unreadable(file, f"A name cannot be written as UTF-8: {error.object!r}.") from error


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    with reads_of(str(file)), file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_constant=_refuse)
            except (ValueError, RecursionError) as error:
                raise _unreadable(file, f"Line {number} is no JSON: {error}.", line=number) from error
            if not isinstance(row, dict):
                raise _unreadable(file, f"Line {number} is no object.", line=number)
            yield row


def _column(file: Path, name: str, values: list[Any], columns: pa.Schema | None) -> pa.ChunkedArray:
    kind = columns.field(name).type if columns is not None and name in columns.names else None
    try:
        if kind is None or pa.types.is_nested(kind):
            return pa.chunked_array([pa.array(values, kind)])
        if pa.types.is_binary(kind):
            return pa.chunked_array([pa.array([_bytes(value) for value in values], kind)])
        if pa.types.is_floating(kind):
            return pa.chunked_array([pa.array([None if one is None else float(one) for one in values], kind)])
        if pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
            return pa.chunked_array([pa.array(values, kind)])
        text = pa.table({name: pa.array([None if one is None else str(one) for one in values], pa.string())})
        return typed_columns(text, pa.schema([pa.field(name, kind)])).column(0)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        ValueError,
        TypeError,
        OverflowError,
    ) as error:
        raise _unreadable(file, f"The column {name!r} cannot be read: {error}.", column=name) from error


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


def _bytes(value: Any) -> bytes | None:
    return None if value is None else base64.b64decode(value, validate=True)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _unreadable(file: Path, cause: str, **place: Any) -> UnreadableInput:
    return UnreadableInput(
        f"{str(file)!r} cannot be read as JSON Lines.",
        cause=cause,
        remedy="Write one JSON object a line, with one kind of value in each column.",
        file=str(file),
        **place,
    )
