"""Conversion of a pandas column to Arrow without loss; missing values become NULL.

Pandas keeps the same values in many ways: numpy arrays with NaN for missing, masked arrays,
Arrow-backed arrays, categories, and plain Python objects. PyArrow converts most of them, and
some of them wrongly for our purpose: in a column of objects it turns a datetime beside a date
into that date, ``True`` beside 1.5 into 1.0, text beside bytes into bytes, and cuts the
nanoseconds off. Object columns are therefore checked by the kinds of their values first.
"""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.arrow_columns import DECIMAL_DIGITS_MAX, ROWS_NAMED_MAX, stored_column
from freezeframe.errors import SchemaDriftError

if TYPE_CHECKING:
    import pandas as pd

# PyArrow infers these types only from objects of one kind, so no further check is needed.
_UNMISTAKABLE = frozenset({pa.null(), pa.bool_(), pa.int64(), pa.string()})
_MISSING = frozenset({"NAType", "NaTType"})
_DAYS = frozenset({"date", "datetime64[D]"})
_TOGETHER = (frozenset({"integer", "float"}), frozenset({"integer", "decimal"}), _DAYS)
_EXACT_IN_DOUBLE = 2**53
_PAIR = 2
_ORDINARY = frozenset({str, int, bool, float, NoneType})
_NUMPYS_OWN = (np.number, np.bool_, np.character)
_CANNOT_BE_KEPT = (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeError)


def arrow_column(name: str, series: pd.Series[Any]) -> pa.ChunkedArray:
    """Return the column as Arrow: NaN, None, NaT and ``pd.NA`` are NULL, all else is exactly as it was.

    A column of at least one row without any value has the type ``null``: pandas cannot say
    what it was meant to hold. Floats that are all whole beside missing ones are integers, of which pandas
    made floats. Naive datetimes are timestamps without a zone, others are UTC,
    both in microseconds. UUIDs become their text, dicts one struct (an absent key is NULL).
    """
    kind = series.dtype
    if _is_named(kind, "CategoricalDtype"):
        column = _of_categories(name, series)
    elif isinstance(kind, np.dtype) and kind.hasobject:
        column = _to_chunked(_of_objects(name, series.to_numpy(dtype=object)))
    else:
        # Of text that is Python objects pandas' own conversion makes a copy first.
        is_objects = _is_named(kind, "StringDtype") and getattr(kind, "storage", "") == "python"
        is_sparse = _is_named(kind, "SparseDtype")
        values: Any = series.to_numpy(object if is_objects else None) if is_objects or is_sparse else series
        try:
            found = pa.array(values, pa.string() if is_objects else None, from_pandas=True)
            column = _to_chunked(found)
        except _CANNOT_BE_KEPT as error:
            if not _is_named(series.dtype, "StringDtype"):
                raise _not_kept(name, str(series.dtype), [], error) from error
            column = _to_chunked(_of_objects(name, series.to_numpy(dtype=object)))
    column = stored_column(name, column)
    # A masked or Arrow-backed float column can hold NaN beside NA; in pandas both mean missing.
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    if len(column) and column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column))])
    # Nullable and Arrow-backed floats were never integers.
    is_numpy = isinstance(kind, np.dtype) and pa.types.is_float64(column.type)
    return _whole_numbers(column) if is_numpy and column.null_count else column


def _is_named(kind: Any, name: str) -> bool:
    # Recognised by name, without an import of pandas; its classes are in "pandas" itself from pandas 3 on.
    return any(
        item.__name__ == name and item.__module__.split(".")[0] == "pandas" for item in type(kind).__mro__
    )


def _of_categories(name: str, series: pd.Series[Any]) -> pa.ChunkedArray:
    used = series.cat.remove_unused_categories()
    codes = used.cat.codes.to_numpy()
    try:
        categories = arrow_column(name, used.cat.categories.to_series())
    except SchemaDriftError:  # of the values it names the rows
        return _to_chunked(_of_objects(name, series.to_numpy(dtype=object)))
    return categories.take(pa.array(codes, mask=codes < 0))


def objects_column(name: str, values: Sequence[Any]) -> pa.ChunkedArray:
    """Return Python objects as Arrow, as those of a pandas column of objects."""
    return stored_column(name, _to_chunked(_of_objects(name, values)))


def _of_objects(name: str, values: Sequence[Any] | np.ndarray[Any, Any]) -> pa.Array:
    """Convert objects of one kind; parts of dicts and lists follow the same rules, each part on its own."""
    if _ORDINARY.issuperset(map(type, values)):
        try:
            column = pa.array(values, from_pandas=True)
        except _CANNOT_BE_KEPT:
            pass
        else:
            if column.type in _UNMISTAKABLE:
                return column
    # Kinds come first: PyArrow makes 0 of a half beside 1, and crashes at a datetime64 beside a number.
    kinds = _check_kinds(name, values)
    present = [None if is_missing(value) else value for value in values]
    try:
        if kinds == {"struct"}:
            return _of_structs(name, present)
        if kinds == {"list"}:
            return _of_lists(name, present)
        return _of_scalars(kinds, present)
    except _CANNOT_BE_KEPT as error:
        rows = _rows_refused(present) if kinds <= {"text", "integer", "decimal"} else []
        raise _not_kept(name, " and ".join(sorted(kinds)), rows, error) from error


def _of_scalars(kinds: frozenset[str], present: list[Any]) -> pa.Array:
    if kinds == {"uuid"}:
        return pa.array([value and str(value) for value in present], pa.string())
    if len({type(value) for value in present}) > 1:
        # PyArrow takes the type of a numpy number for all others.
        present = [value.item() if isinstance(value, _NUMPYS_OWN) else value for value in present]
    if "datetime64[D]" in kinds:
        # Beyond the year 9999 only numpy has dates; PyArrow accepts them only as an array.
        return pa.array(np.array(present, "datetime64[D]"))
    try:
        column = pa.array(present)
    except _CANNOT_BE_KEPT:
        if kinds != {"integer"}:
            raise
        return pa.array(present, pa.decimal128(DECIMAL_DIGITS_MAX, 0))
    if pa.types.is_decimal128(column.type):
        # Objects say their digits behind the point; how many the largest value has is chance.
        return column.cast(pa.decimal128(DECIMAL_DIGITS_MAX, column.type.scale))
    return column


def _of_structs(name: str, structs: list[Any]) -> pa.Array:
    names = list(dict.fromkeys(key for value in structs if value is not None for key in value))
    if not all(isinstance(key, str) for key in names):
        raise TypeError("The name of an object's members is text.")
    if not names:
        return pa.array(structs, pa.struct([]))
    parts = [
        _of_objects(f"{name}.{key}", [None if value is None else value.get(key) for value in structs])
        for key in names
    ]
    return pa.StructArray.from_arrays(parts, names, mask=pa.array([value is None for value in structs]))


def _of_lists(name: str, lists: list[Any]) -> pa.Array:
    arrays = [value for value in lists if value is not None]
    kinds = {value.dtype if isinstance(value, np.ndarray) else None for value in arrays}
    try:
        if len(kinds) == 1 and (kind := kinds.pop()) is not None and not kind.hasobject:
            items = pa.array(np.concatenate(arrays), from_pandas=True)
        else:
            items = _of_objects(f"{name}[]", list(itertools.chain.from_iterable(arrays)))
    except SchemaDriftError:
        if not are_maps(arrays):
            raise
        return of_maps(name, lists)
    return pa.ListArray.from_arrays(_offsets(lists), items, mask=pa.array([value is None for value in lists]))


def _offsets(lists: list[Any]) -> pa.Array:
    lengths = (0 if value is None else len(value) for value in lists)
    return pa.array(itertools.accumulate(lengths, initial=0), pa.int32())


def are_maps(lists: Iterable[Any]) -> bool:
    """Return whether they are lists of pairs, as which pandas has maps."""
    return all(
        isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == _PAIR for pair in value)
        for value in lists
    )


def of_maps(name: str, lists: list[Any]) -> pa.Array:
    """Return lists of pairs, or None, as maps."""
    pairs = [pair for value in lists for pair in value or ()]
    keys, items = (
        _of_objects(f"{name}[{part}]", [pair[index] for pair in pairs])
        for index, part in enumerate(("key", "value"))
    )
    mask = pa.array([value is None for value in lists])
    return pa.MapArray.from_arrays(_offsets(lists), keys, items, mask=mask)


def _to_chunked(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the floats as integers if all of them are whole, within 2**53 and none is -0.0."""
    ends = pc.min_max(column).as_py()
    if not -_EXACT_IN_DOUBLE <= ends["min"] <= ends["max"] <= _EXACT_IN_DOUBLE:
        return column
    if not pc.all(pc.equal(column, pc.round(column))).as_py():
        return column
    is_zero = pc.equal(column, 0.0)
    negative = pc.less(pc.divide(1.0, column), 0.0)  # only 1 / -0.0 tells the two zeros apart
    return column if pc.any(pc.and_(is_zero, negative)).as_py() else column.cast(pa.int64())


def is_missing(value: Any) -> bool:
    """Return whether pandas treats this value as missing: None, NaN (Decimal too), NaT, ``pd.NA``."""
    if value is None or type(value).__name__ in _MISSING:
        return True
    if isinstance(value, Decimal):
        return value.is_qnan()  # a signalling NaN must not be compared
    if isinstance(value, (float, np.floating)):
        return bool(value != value)  # noqa: PLR0124 - only a NaN differs from itself
    return isinstance(value, (np.datetime64, np.timedelta64)) and bool(np.isnat(value))


def _check_kinds(name: str, values: Iterable[Any]) -> frozenset[str]:
    """Return the kinds of values in the column; refuses mixed and unsupported kinds."""
    classes = {
        kind for kind in set(map(type, values)) if kind is not NoneType and kind.__name__ not in _MISSING
    }
    sure = frozenset(_SURE.get(kind, "") for kind in classes)
    if "" not in sure and (len(sure) == 1 or sure in _TOGETHER):
        return sure
    first_rows: dict[str, list[int]] = {}
    for row, value in enumerate(values):
        rows = [] if is_missing(value) else first_rows.setdefault(_kind(value), [])
        if len(rows) < ROWS_NAMED_MAX:
            rows.append(row)
    kinds = frozenset(first_rows)
    unknown = sorted(kind for kind in kinds if kind.startswith("?"))
    if unknown:
        raise _not_kept(name, unknown[0][1:], first_rows[unknown[0]], None)
    if len(kinds) > 1 and kinds not in _TOGETHER:
        raise SchemaDriftError(
            f"Column {name!r} mixes {_with_rows(first_rows)}.",
            cause="A stream's column has one type, and none holds all of them unchanged.",
            remedy="Convert the column to one type before the update.",
            column=name,
            rows=first_rows,
        )
    return kinds


def _kind(value: Any) -> str:
    # The order matters: a bool is an int, a datetime is a date, a Timestamp is a datetime.
    if isinstance(value, dt.datetime):
        if getattr(value, "nanosecond", 0):
            return "?a datetime with nanoseconds"
        return "naive datetime" if value.tzinfo is None else "zoned datetime"
    if isinstance(value, np.datetime64):
        return str(value.dtype)
    if isinstance(value, Decimal) and not value.is_finite():
        return "?an infinite decimal" if value.is_infinite() else "?a signalling NaN"
    if isinstance(value, np.ndarray) and value.ndim != 1:
        return f"?an array of {value.ndim} dimensions"
    for types, kind in _KINDS:
        if isinstance(value, types):
            return kind
    return f"?{type(value).__module__}.{type(value).__qualname__}"


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (str, "text"),
    ((bool, np.bool_), "boolean"),
    ((dt.timedelta, np.timedelta64), "?a duration"),
    ((int, np.integer), "integer"),
    ((float, np.floating), "float"),
    (Decimal, "decimal"),
    (dt.date, "date"),
    (dt.time, "?a time of day"),
    ((bytes, bytearray, memoryview), "bytes"),
    (uuid.UUID, "uuid"),
    (Mapping, "struct"),
    ((list, tuple, np.ndarray), "list"),
)

# Classes of which every value has one kind.
_SURE = {
    str: "text",
    bool: "boolean",
    int: "integer",
    float: "float",
    bytes: "bytes",
    uuid.UUID: "uuid",
    dt.date: "date",
    dict: "struct",
    list: "list",
    tuple: "list",
}


def _rows_refused(values: list[Any]) -> list[int]:
    rows = []
    for row, value in enumerate(values):
        try:
            pa.array([value], pa.decimal128(DECIMAL_DIGITS_MAX, 0) if isinstance(value, int) else None)
        except _CANNOT_BE_KEPT:
            rows.append(row)
    return rows[:ROWS_NAMED_MAX]


def _with_rows(first_rows: Mapping[str, list[int]]) -> str:
    parts = [f"{kind} (rows {', '.join(map(str, rows))})" for kind, rows in sorted(first_rows.items())]
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def _not_kept(name: str, kind: str, rows: list[int], error: Exception | None) -> SchemaDriftError:
    where = f" (rows {', '.join(map(str, rows))})" if rows else ""
    return SchemaDriftError(
        f"Column {name!r} holds {kind}{where}, which a stream cannot keep unchanged.",
        cause=str(error).splitlines()[0] if error and str(error) else "No type of a Delta table can hold it.",
        remedy="Turn the column into text or into a type with the same values, or leave it out.",
        column=name,
        type=kind,
        rows=rows,
    )
