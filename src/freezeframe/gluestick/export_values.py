"""Values as exports write them: those of JSON, and those of which gluestick knows the type.

gluestick looks at the type of each cell: a numpy array is no list to it, and becomes a text without its
middle; bytes become ``b'..'``. A frame is therefore given to it in Python's own lists, dicts and numbers.
"""

import base64
import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import infer_dtype, is_object_dtype

from freezeframe.engine.frames.frames import to_pandas
from freezeframe.engine.frames.pandas_columns import are_maps, is_missing, of_maps
from freezeframe.engine.frames.python_values import moment_text, python_values
from freezeframe.engine.frames.rows import require_names
from freezeframe.errors import BadInput
from freezeframe.store.model.json_fields import json_scalar
from freezeframe.store.table.written_rows import PIECE_ROWS, json_form, json_line

Leaf = Callable[[Any], Any]
"""What makes of a value that is neither a list nor an object the one that is written."""

_NESTED = (Mapping, list, tuple, np.ndarray)
_BYTES = (bytes, bytearray, memoryview)
_EXACT_IN_DOUBLE = 2**53


def shaped(value: Any, leaf: Leaf) -> Any:
    """Return the value with Python's own lists and dicts, at any depth; a list of pairs is a map."""
    if isinstance(value, Mapping):
        return {
            name if isinstance(name, str) else str(name): shaped(item, leaf) for name, item in value.items()
        }
    if isinstance(value, _NESTED) and not (isinstance(value, np.ndarray) and not value.ndim):
        if not _are_maps([value]):
            return [shaped(item, leaf) for item in value]
        named = {name: shaped(item, leaf) for name, item in value if isinstance(name, str)}
        # As ``json_form`` has it: a list of pairs holds what an object does not.
        return (
            named if len(named) == len(value) else [[shaped(part, leaf) for part in pair] for pair in value]
        )
    return leaf(value)


def _are_maps(values: Iterable[Any]) -> bool:
    lists = [value for value in values if not is_missing(value)]
    return are_maps(lists) and any(lists)


def json_leaf(value: Any) -> Any:
    """Return a value of a pandas cell in the form of ``json_form``; what is missing to pandas is None."""
    if type(value) in (str, int, bool):
        return value
    if is_missing(value):
        return None
    if isinstance(value, _BYTES):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, np.datetime64):
        return moment_text(value)
    if isinstance(value, dt.timedelta | np.timedelta64):
        return pd.Timedelta(value).isoformat()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    plain = value.item() if isinstance(value, np.generic | np.ndarray) else value
    return json_scalar(plain) if isinstance(plain, bool | int | float | str) else str(plain)


def singer_leaf(value: Any) -> Any:
    """Return a value as gluestick's Singer writer needs it, which formats times and decimals itself."""
    if type(value) in (str, int, bool):
        return value
    if is_missing(value):
        return None
    if isinstance(value, _BYTES):
        return base64.b64encode(value).decode()
    if isinstance(value, np.datetime64):
        is_day = np.datetime_data(value.dtype)[0] == "D"
        plain = (value if is_day else value.astype("datetime64[us]")).item()
        return plain if isinstance(plain, dt.date) else moment_text(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)  # gluestick writes a Z, whatever the zone
    return value.item() if isinstance(value, np.generic | np.ndarray) else value


def _cells(series: "pd.Series[Any]") -> list[Any]:
    is_arrow = isinstance(series.dtype, pd.ArrowDtype)
    return python_values(pa.array(series)) if is_arrow else series.tolist()


def _holds_objects(kind: Any) -> bool:
    return is_object_dtype(kind) or _is_arrow_nested(kind)


def _is_arrow_nested(kind: Any) -> bool:
    return isinstance(kind, pd.ArrowDtype) and (
        pa.types.is_nested(kind.pyarrow_dtype) or pa.types.is_binary(kind.pyarrow_dtype)
    )


def _form_of(values: list[Any], leaf: Leaf) -> Leaf:
    """Return the form of a column's values: where others are maps of text, ``[]`` is one as well."""
    if _are_maps(values):
        pairs = (pair for value in values if not is_missing(value) for pair in value)
        if all(isinstance(name, str) for name, _ in pairs):
            return lambda value: {} if isinstance(value, list) and not value else shaped(value, leaf)
    return lambda value: shaped(value, leaf)


def _with_columns(frame: pd.DataFrame, change: "Callable[[pd.Series[Any]], pd.Series[Any]]") -> pd.DataFrame:
    if not frame.shape[1]:
        return frame
    changed = pd.concat([change(frame.iloc[:, index]) for index in range(frame.shape[1])], axis=1)
    changed.columns = frame.columns
    return changed


def csv_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with text in place of lists, objects (JSON) and bytes (base64)."""
    return _with_columns(frame, _csv_column)


def _csv_column(series: "pd.Series[Any]") -> "pd.Series[Any]":
    if not _holds_objects(series.dtype):
        return series
    values = _cells(series)
    if not any(isinstance(value, (*_NESTED, *_BYTES)) for value in values):
        return series
    form = _form_of(values, json_leaf)
    texts = [
        json.dumps(form(value), ensure_ascii=False)
        if isinstance(value, _NESTED)
        else json_leaf(value)
        if isinstance(value, _BYTES)
        else value
        for value in values
    ]
    return pd.Series(texts, index=series.index, dtype=object)


def json_lines_of(frame: pd.DataFrame) -> Iterator[bytes]:
    """Yield the rows of a pandas frame as JSON Lines, some at a time, as ``json_lines`` has them.

    Raises:
        BadInput: two columns share a name, or a text is no text.
    """
    names = [str(name) for name in frame.columns]
    require_names(names)
    columns = [frame.iloc[:, index] for index in range(len(names))]
    objects = [_cells(series) if _holds_objects(series.dtype) else [] for series in columns]
    forms = [_form_of(values, json_leaf) for values in objects]
    for start in range(0, len(frame), PIECE_ROWS):
        parts = [
            map(form, _cells(series.iloc[start : start + PIECE_ROWS]))
            for form, series in zip(forms, columns, strict=True)
        ]
        rows = zip(*parts, strict=True)
        try:
            yield b"".join(json_line(dict(zip(names, row, strict=True))) for row in rows)
        except UnicodeEncodeError as error:
            raise BadInput(
                f"The text {error.object[:100]!r} cannot be written as UTF-8.",
                cause="It contains a lone UTF-16 surrogate.",
                remedy="Decode the text from the encoding that it has.",
            ) from error


def parquet_options(frame: pd.DataFrame) -> dict[str, Any]:
    """Return what ``to_parquet`` needs to be told: which columns are maps, which Arrow takes for lists."""
    if not frame.columns.is_unique:
        return {}  # pandas refuses such a frame
    columns = {name: frame[name] for name in frame.columns if is_object_dtype(frame.dtypes[name])}
    maps = {
        name: of_maps(str(name), [None if is_missing(value) else value for value in series])
        for name, series in columns.items()
        if _are_maps(series)
    }
    if not maps:
        return {}
    others = pa.Schema.from_pandas(frame.drop(columns=list(maps)))
    fields = [
        pa.field(name, maps[name].type) if name in maps else others.field(name) for name in frame.columns
    ]
    index = [field for field in others if field.name not in frame.columns]
    return {"schema": pa.schema([*fields, *index])}


# The Singer schema of a column is that of all its rows. gluestick looks at the first value only, and so gets
# one row that has the parts of all: each value stands for its type, and none is empty.

_TEXT = "1"  # readable as JSON too: gluestick parses text in a column that the catalog has as an object
_STANDS_FOR: dict[type, Any] = {bool: True, int: 1, float: 0.5}


def singer_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame in types that gluestick recognizes, each value as it was.

    Objects that all are booleans, integers or floats beside missing values get the nullable type; times with
    a zone are in UTC.
    """
    return _with_columns(frame, _singer_column)


_NULLABLE = {
    pa.bool_(): pd.BooleanDtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.float32(): pd.Float32Dtype(),
    pa.float64(): pd.Float64Dtype(),
}


def _singer_column(series: "pd.Series[Any]") -> "pd.Series[Any]":
    if isinstance(series.dtype, pd.ArrowDtype) and not _is_arrow_nested(series.dtype):
        array = pa.chunked_array(pa.array(series))
        flat: pd.Series[Any] = array.to_pandas(types_mapper=_NULLABLE.get)
        series = pd.Series(flat.array, index=series.index)
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        times: pd.Series[Any] = series.dt.tz_convert("UTC")  # gluestick writes a Z, whatever the zone
        return times
    if not _holds_objects(series.dtype):
        return series
    values = _cells(series)
    form = _form_of(values, singer_leaf)
    plain = pd.Series([form(value) for value in values], index=series.index, dtype=object)
    kind = infer_dtype(plain, skipna=True)
    if kind == "boolean":
        return plain.astype("boolean")
    try:
        if kind == "integer":
            return plain.astype("Int64")
    except (OverflowError, TypeError, ValueError):
        return plain  # beyond 64 bits
    is_exact = all(abs(value) <= _EXACT_IN_DOUBLE for value in plain if isinstance(value, int))
    return plain.astype("float64") if kind in ("floating", "mixed-integer-float") and is_exact else plain


def singer_frame_of(table: pa.Table) -> pd.DataFrame:
    """Return the rows of a table as ``singer_frame`` does."""
    flat = to_pandas(table, "numpy_nullable")
    nested = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            form = json_form(column.type, lambda _: singer_leaf)
            values = [form(value) for value in python_values(column, moment_text)]
            nested[name] = pd.Series(values, dtype=object)
    return flat.assign(**nested) if nested else flat


class SchemaSample:
    """One row with the type of each column of all rows seen, and of each part of its objects and lists."""

    def __init__(self) -> None:
        """Begin without rows."""
        self._columns: dict[int, pd.Series[Any]] = {}
        self._objects: dict[int, Any] = {}
        self._names: pd.Index[Any] = pd.Index([])
        self._has_rows = False

    def add(self, frame: pd.DataFrame) -> None:
        """Look at rows of ``singer_frame``."""
        self._names = frame.columns
        self._has_rows |= bool(len(frame))
        for index in range(frame.shape[1]):
            series = frame.iloc[:, index]
            known = self._columns.get(index)
            if is_object_dtype(series.dtype):
                self._objects[index] = _merged(self._objects.get(index), series.tolist())
            elif known is None or not known.notna().any():
                held = series[series.notna().to_numpy()]
                self._columns[index] = held.iloc[:1] if len(held) else series.iloc[:1]

    def row(self) -> pd.DataFrame:
        """Return the row; none where no rows were seen."""
        columns = [
            pd.Series([self._objects[index]], dtype=object)
            if index in self._objects
            else self._columns[index].reset_index(drop=True)
            for index in range(len(self._names))
        ]
        if not columns:
            return pd.DataFrame()
        sample = pd.concat(columns, axis=1)
        sample.columns = self._names
        return sample if self._has_rows else sample.iloc[:0]


def _merged(sample: Any, values: Iterable[Any]) -> Any:
    for value in values:
        sample = _merge(sample, value)
    return sample


def _merge(sample: Any, value: Any) -> Any:
    """Return what stands for the type of both; numbers of two types are floats, other mixtures text."""
    if is_missing(value):
        return sample
    if isinstance(value, dict):
        if sample is not None and not isinstance(sample, dict):
            return _TEXT
        known: dict[str, Any] = {} if sample is None else sample
        for name, item in value.items():
            known[name] = _merge(known.get(name), item)
        return known
    if isinstance(value, list):
        if sample is not None and not isinstance(sample, list):
            return _TEXT
        item = _merged(sample[0] if sample else None, value)
        return [] if item is None else [item]
    stands_for = _STANDS_FOR.get(type(value), _TEXT)
    if sample is None or type(sample) is type(stands_for):
        return stands_for
    return 0.5 if {type(sample), type(stands_for)} == {int, float} else _TEXT
