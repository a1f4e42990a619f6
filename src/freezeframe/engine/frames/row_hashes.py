"""A hash of a row's values that does not depend on the types they came in.

Each cell is written as text with a tag for its kind; names and cells carry their lengths, so that
no two different rows run together. A missing cell is left out with its name: a column that is
added without values changes no row. Numbers count by value: 7, 7.0 and ``Decimal("7")`` are one,
so an integer column that pandas turns into floats beside a missing value changes no row either.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.engine.frames.pandas_columns import is_missing
from freezeframe.engine.frames.python_values import exact_texts, moment_text, python_values

if TYPE_CHECKING:
    import pandas as pd

DIGEST_BYTES = 16


def row_hash(values: Mapping[str, Any]) -> str:
    """Return the hash of one row, 32 hexadecimal digits; the order of its columns does not count."""
    cells = ((name, canonical_cell(values[name])) for name in sorted(values))
    return _digest(_part(name.encode(*_LENIENT)) + _part(cell) for name, cell in cells if cell is not None)


def frame_hashes(frame: pd.DataFrame) -> list[str]:
    """Return the hash of each row of a pandas frame, in its order; the index does not count."""
    names = [str(name) for name in frame.columns]
    return _column_hashes(names, [frame.iloc[:, index].tolist() for index in range(len(names))], len(frame))


def table_hashes(table: pa.Table) -> list[str]:
    """Return the hash of each row of an Arrow table; it equals that of the same row in pandas."""
    columns = [python_values(column, _as_alone) for column in table.columns]
    return _column_hashes(table.column_names, columns, len(table))


def content_hashes(table: pa.Table) -> list[str]:
    """Return the hash of each row of a table in stored types; quicker, by columns, and another hash.

    A null is no cell, and integers, floats and decimals count by value, as above. Cells that differ in a
    stream have different hashes: a NaN is no null, at any depth, and -0.0 is not 0.0.
    """
    # Not on import: Arrow loads pandas with the first value that is made.
    colon, nothing = (pa.scalar(text, pa.large_binary()) for text in (b":", b""))
    parts = []
    for name in sorted(table.column_names):
        tag, cells = _tagged_cells(table[name])
        lengths = pc.binary_length(cells).cast(pa.string()).cast(pa.large_binary())
        label = pa.scalar(_part(name.encode(*_LENIENT)) + tag, pa.large_binary())
        parts.append(pc.binary_join_element_wise(label, lengths, colon, cells, nothing))
    rows = pc.binary_join_element_wise(*parts, nothing, null_handling="replace", null_replacement="")
    return [hashlib.blake2b(row, digest_size=DIGEST_BYTES).hexdigest() for row in rows.to_pylist()]


def _tagged_cells(column: pa.ChunkedArray) -> tuple[bytes, pa.ChunkedArray]:
    """Return a mark of the type, and the cells as bytes."""
    kind = column.type
    if kinds.is_nested(kind):
        cells = [
            None if value is None else (canonical_cell(value) or b"") + _nan_places(value)
            for value in python_values(column, _as_alone)
        ]
        return b"o", pa.chunked_array([pa.array(cells, pa.large_binary())])
    if kinds.is_date(kind):
        column, tag = column.cast(pa.date32()).cast(pa.int32()), b"d"
    elif kinds.is_timestamp(kind):
        column, tag = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()), b"t" if kind.tz else b"l"
    elif kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
        tag = b"n"
    else:
        tag = str(kind).encode()
    if kinds.is_decimal(kind):
        texts = exact_texts(column)
        texts = pc.replace_substring_regex(texts, r"^(-?\d+)\.0+$", r"\1")
        column = pc.replace_substring_regex(texts, r"^(-?\d+\.\d*[1-9])0+$", r"\1")
    elif not kinds.is_binary(kind) and not kinds.is_large_binary(kind):
        column = column.cast(pa.string())
    return tag, column.cast(pa.large_binary())


def _nan_places(value: Any) -> bytes:
    """Return what tells a nested cell with NaN from one with null; nothing for other cells."""
    if "nan" not in repr(value):
        return b""
    text = repr(_without_moments(value))
    return text.encode(*_LENIENT) if "nan" in text else b""


def _without_moments(value: Any) -> Any:
    """Return a nested value without its moments: a time zone's object is another in another installation."""
    if isinstance(value, dict):
        return {name: _without_moments(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_without_moments, value))
    return None if isinstance(value, (dt.date, np.datetime64, _Instant)) else value


def canonical_cell(value: Any) -> bytes | None:
    """Return one value as tagged text; None for a missing one (None, NaN, NaT, ``pd.NA``)."""
    # The common types first: a frame has millions of cells.
    quick = _QUICK.get(type(value))
    if quick is not None:
        return quick(value)
    if isinstance(value, (Mapping, list, tuple, set, frozenset, np.ndarray)):
        if isinstance(value, Mapping):
            cells = ((str(name), canonical_cell(inner)) for name, inner in value.items())
            # Arrow does not distinguish a struct's absent field from a null one, so neither does this.
            present = sorted((name, cell) for name, cell in cells if cell is not None)
            return b"m" + b"".join(_part(name.encode(*_LENIENT)) + _part(cell) for name, cell in present)
        items = [canonical_cell(item) for item in value]
        if isinstance(value, (set, frozenset)):
            items.sort(key=lambda item: item or b"")
        return b"a" + b"".join(b"-" if item is None else _part(item) for item in items)
    if is_missing(value):
        return None
    for types, encode in _ENCODERS:
        if isinstance(value, types):
            return encode(value)
    return b"o" + f"{type(value).__qualname__}:{value}".encode(*_LENIENT)


# Text from outside may hold lone surrogates, which strict UTF-8 refuses.
_LENIENT = ("utf-8", "surrogatepass")


def _column_hashes(names: Sequence[str], columns: Sequence[list[Any]], rows: int) -> list[str]:
    order = sorted(range(len(names)), key=lambda index: names[index])
    parts = [_column_parts(names[index], columns[index]) for index in order]
    return [_digest(row) for row in zip(*parts, strict=True)] if parts else [_digest(())] * rows


def _column_parts(name: str, values: Iterable[Any]) -> list[bytes]:
    label = _part(name.encode(*_LENIENT))
    cells = map(canonical_cell, values)
    return [b"" if cell is None else b"%b%d:%b" % (label, len(cell), cell) for cell in cells]


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.blake2b(b"".join(parts), digest_size=DIGEST_BYTES).hexdigest()


def _part(content: bytes) -> bytes:
    return b"%d:%b" % (len(content), content)


def _text(value: str) -> bytes:
    return b"s" + value.encode(*_LENIENT)


def _integer(value: Any) -> bytes:
    return b"n%d" % int(value)


def _float(value: Any) -> bytes | None:
    number = float(value)
    if number.is_integer():
        is_negative_zero = number == 0 and math.copysign(1, number) < 0
        return b"n-0" if is_negative_zero else b"n%d" % int(number)
    if math.isnan(number):
        return None
    text = repr(number)
    return _decimal(Decimal(text)) if "e" in text else b"n" + text.encode()


def _boolean(value: Any) -> bytes:
    return b"b1" if value else b"b0"


def _decimal(value: Decimal) -> bytes:
    if not value.is_finite():
        return b"n" + repr(float(value)).encode()
    text = format(value, "f")
    whole = text.rstrip("0").rstrip(".") if "." in text else text
    return b"n" + (b"0" if whole in ("-0", "") else whole.encode())


def _moment(value: dt.datetime) -> bytes:
    if value.tzinfo is None:
        return b"l" + value.isoformat().encode()
    return b"t" + value.astimezone(dt.UTC).isoformat().encode()


def _numpy_moment(value: Any) -> bytes:
    if np.datetime_data(value.dtype)[0] == "D":
        # A date beyond the year 9999, or one in the same column: in the form that the column has elsewhere.
        return b"d" + moment_text(value).encode()
    try:
        # The service shares this module, and starts without pandas: few rows hold such values.
        import pandas as pd  # noqa: PLC0415

        return _moment(pd.Timestamp(value))
    except (OverflowError, ValueError):
        return b"l" + moment_text(value).encode()


@dataclass(frozen=True, slots=True)
class _Instant:
    """A moment in UTC beyond ``datetime``."""

    moment: np.datetime64

    def encode(self) -> bytes:
        return b"t" + str(self.moment).removesuffix(".000000").encode() + b"+00:00"


def _as_alone(moment: np.datetime64, zone: str) -> Any:
    """Return a moment as it is in a column without moments beyond ``datetime``: they change no other hash."""
    near = moment.item()
    if isinstance(near, dt.datetime):
        return near.replace(tzinfo=dt.UTC) if zone else near
    if isinstance(near, dt.date):
        return near
    return _Instant(moment) if zone else moment


_Encode = Callable[[Any], bytes | None]
_QUICK: dict[type, _Encode] = {
    str: _text,
    int: _integer,
    float: _float,
    bool: _boolean,
    type(None): lambda _: None,
}
_ENCODERS: tuple[tuple[type | tuple[type, ...], _Encode], ...] = (
    ((bool, np.bool_), _boolean),
    ((int, np.integer), _integer),
    ((float, np.floating), _float),
    (str, _text),
    (Decimal, _decimal),
    (dt.datetime, _moment),
    (np.datetime64, _numpy_moment),
    (_Instant, _Instant.encode),
    (dt.date, lambda value: b"d" + value.isoformat().encode()),
    ((bytes, bytearray, memoryview), lambda value: b"y" + bytes(value)),
)
