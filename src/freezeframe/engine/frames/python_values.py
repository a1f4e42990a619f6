"""Arrow values as Python objects and as text, including dates and times that ``datetime`` cannot hold.

``datetime`` goes from the year 1 to 9999; Arrow, Parquet and Spark go far beyond. Values outside are
numpy's ``datetime64``, which holds and orders them.
"""

import itertools
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.nested_types import fold_array, is_list, pairs

_DAYS_OF_PYTHON = (-719162, 2932897)
"""0001-01-01 and the day after 9999-12-31, as days since 1970."""
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FAR_DATE = r"(?:[+-]\d{4,7}|\d{4})-\d\d-\d\d"
_FAR_TIME = _FAR_DATE + r"[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_MOMENT = re.compile(r"(-?)(\d+)(-\d\d-\d\d.*)")

Far = Callable[[np.datetime64, str], Any]
"""What is given for a moment of a column that ``datetime`` cannot hold; ``+00:00``, or no zone."""


def as_it_is(value: np.datetime64, _: str) -> Any:
    """Return the value unchanged."""
    return value


def moment_text(value: np.datetime64, zone: str = "") -> str:
    """Return the moment in ISO 8601, as Spark writes it; a year beyond 9999 or before 0 has a sign.

    ``+10000-01-01``, ``-0221-09-04``, ``+10000-01-01T00:00:00.000001``.
    """
    found = _MOMENT.fullmatch(str(value))
    assert found is not None  # noqa: S101 - the format of every non-null value
    year = int(found[2])
    sign = found[1] or ("+" if year > 9999 else "")  # noqa: PLR2004 - four digits
    return f"{sign}{year:04}{found[3]}{zone}"


def python_values(column: pa.Array | pa.ChunkedArray, far: Far = as_it_is) -> list[Any]:
    """Return what ``to_pylist`` gives, with ``numpy.datetime64`` for moments that ``datetime`` cannot hold.

    Values of one column stay comparable with each other: if ``datetime`` cannot hold one of them, all are
    ``datetime64[D]``, or for times ``datetime64[us]``, those with a zone in UTC; or what ``far`` makes of
    these.
    """
    try:
        return list(column.to_pylist())
    except OverflowError:
        return nested_values(column, far)


def nested_values(
    column: pa.Array | pa.ChunkedArray, far: Far = as_it_is, as_list: Callable[[list[Any]], Any] = list
) -> list[Any]:
    """Return what ``python_values`` does, each list in it as ``as_list`` makes it of its items."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return fold_array(whole, lambda array, inside: _values(array, inside, far, as_list))


def shown_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows as dictionaries for printing: times beyond ``datetime`` are text."""
    columns = [python_values(column, moment_text) for column in table.columns]
    rows = zip(*columns, strict=True) if columns else (() for _ in range(len(table)))
    return [dict(zip(table.column_names, row, strict=True)) for row in rows]


def exact_texts(values: Any) -> Any:
    """Return an array or column as text: of dates, times and decimals what Spark's cast gives, too.

    ``2026-01-02``, ``2026-01-02 03:04:05``, ``2026-01-02 03:04:05.678900+00:00`` (six or no digits of a
    fraction, and the offset of an instant), ``0.0000001``; years as ``moment_text`` has them.
    """
    kind = values.type
    if kinds.is_decimal(kind):  # Arrow would write a small one with an exponent
        return _texts(values, lambda value: format(value, "f"), values.to_pylist())
    if not kinds.is_date(kind) and not kinds.is_timestamp(kind):
        return values.cast(pa.string())
    is_date = kinds.is_date(kind)
    unit: Any = "D" if is_date else kind.unit
    numbers = values.cast(pa.date32()).cast(pa.int32()) if is_date else values.cast(pa.int64())
    zone = "" if is_date or kind.tz is None else "+00:00"
    ends = pc.min_max(numbers).as_py()
    low, end = (day * (1 if is_date else 86_400 * _UNITS[unit]) for day in _DAYS_OF_PYTHON)
    if ends["min"] is None or (low <= ends["min"] and ends["max"] < end):
        text = pc.replace_substring_regex(values.cast(pa.string()), r"\.0+(Z?)$", r"\1")
        return pc.replace_substring_regex(text, "Z$", "+00:00")

    def written(number: int) -> str:
        moment = moment_text(np.datetime64(number, unit))
        return moment.replace("T", " ").removesuffix(".000000") + zone

    return _texts(values, written, numbers.to_pylist())


def _texts(values: Any, write: Callable[[Any], str], items: list[Any]) -> Any:
    texts = pa.array([None if item is None else write(item) for item in items], pa.string())
    return pa.chunked_array([texts]) if isinstance(values, pa.ChunkedArray) else texts


def far_moments(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Parse dates or times (microseconds) beyond the range of ``datetime``; None if a text is none of them.

    The texts are those of ``exact_texts``.
    """
    is_date, has_zone = kinds.is_date32(kind), kinds.is_timestamp(kind) and kind.tz is not None
    pattern = _FAR_DATE if is_date else _FAR_TIME + (r"\+00:00" if has_zone else "")
    is_like = pc.match_substring_regex(text, f"^{pattern}$")
    if not (is_date or kinds.is_timestamp(kind)) or not pc.all(is_like, min_count=0).as_py():
        return None
    unit: Any = "D" if is_date else "us"
    numbers = [
        None if item is None else _number(item.removesuffix("+00:00"), unit) for item in text.to_pylist()
    ]
    if sum(number is None for number in numbers) > text.null_count:
        return None
    whole = pa.array(numbers, pa.int32() if is_date else pa.int64())
    return pa.chunked_array([whole.cast(kind) if is_date else whole.cast(pa.timestamp("us")).cast(kind)])


def _number(text: str, unit: Any) -> int | None:
    """Return days or microseconds since 1970; None if numpy refuses the text, or overflows."""
    plain = text.removeprefix("+")
    try:
        number = int(np.datetime64(plain, unit).astype(np.int64))
        day = int(np.datetime64(re.split("[T ]", plain)[0], "D").astype(np.int64))
    except ValueError:
        return None
    per_day, bits = (1, 31) if unit == "D" else (86_400_000_000, 63)
    return number if abs(number) < 2**bits and number // per_day == day else None


def _values(
    array: pa.Array, inside: list[list[Any]], far: Far, as_list: Callable[[list[Any]], Any]
) -> list[Any]:
    kind = array.type
    if kinds.is_struct(kind):
        names = [field.name for field in kind]
        rows = zip(*inside, strict=True) if inside else itertools.repeat((), len(array))
        found: Iterable[Any] = (dict(zip(names, row, strict=True)) for row in rows)
    elif is_list(kind) or kinds.is_map(kind):
        lists = pairs(array) if kinds.is_map(kind) else array
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_pylist()
        items = list(zip(*inside, strict=True)) if kinds.is_map(kind) else inside[0]
        bounds = itertools.pairwise(itertools.accumulate(lengths, initial=0))
        entries = (items[begin:end] for begin, end in bounds)
        found = entries if kinds.is_map(kind) else map(as_list, entries)
    else:
        return _leaf_values(array, far)
    return [
        item if is_held else None for item, is_held in zip(found, array.is_valid().to_pylist(), strict=True)
    ]


def _leaf_values(array: pa.Array, far: Far) -> list[Any]:
    try:
        return list(array.to_pylist())
    except OverflowError:
        is_date = kinds.is_date(array.type)
        if not is_date and not kinds.is_timestamp(array.type):
            raise
        numbers = array.cast(pa.date32()).cast(pa.int32()) if is_date else array.cast(pa.int64())
        unit: Any = "D" if is_date else array.type.unit
        zone = "" if is_date or array.type.tz is None else "+00:00"
        items = numbers.to_pylist()
        return [None if item is None else far(np.datetime64(item, unit), zone) for item in items]
