"""UTF-8 validation of text: Arrow, Parquet and Spark accept any bytes.

A stream with such bytes would be unreadable for every reader.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from freezeframe.engine.frames.python_values import python_values
from freezeframe.errors import BadInput

_ROWS_NAMED_MAX = 3


def require_valid(name: str, column: pa.ChunkedArray) -> None:
    """Check that the column's buffers are valid for its type: text, decimals, offsets.

    Raises:
        BadInput: they do not; the first rows are named.
    """
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise BadInput(
                f"Column {name!r} ({column.type}) is damaged.",
                cause=str(error).splitlines()[0],
                remedy="Create the rows again from their source.",
                column=name,
            ) from error
        # The check also covers bytes outside of a slice and under nulls, which are not values.
        rows = [row for row, _ in zip(_undecodable(column), range(_ROWS_NAMED_MAX), strict=False)]
        if rows:
            raise not_utf8(name, rows) from error


def may_hold_text(kind: pa.DataType) -> bool:
    """Whether values of a stored type can hold text, at any depth."""
    if pa.types.is_nested(kind):
        return any(may_hold_text(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pa.types.is_string(kind))


def not_utf8(name: str, rows: list[int]) -> BadInput:
    """The error for a column with text that is not UTF-8; ``rows`` are the first of them, where known."""
    where = f" (row {', '.join(map(str, rows))})" if rows else ""
    return BadInput(
        f"Column {name!r} holds text that is not UTF-8{where}.",
        cause="No reader could read the stream with such a value in it.",
        remedy="Decode the text from the encoding that it has, or pass the column as binary.",
        column=name,
        rows=rows,
    )


def _undecodable(column: pa.ChunkedArray) -> Iterator[int]:
    pending = [(0, len(column))]
    while pending:
        start, length = pending.pop()
        if _decodes(column.slice(start, length)):
            continue
        if length == 1:
            yield start
            continue
        half = length // 2
        pending += [(start + half, length - half), (start, half)]


def _decodes(column: pa.ChunkedArray) -> bool:
    try:
        python_values(column)
    except UnicodeDecodeError:
        return False
    return True
