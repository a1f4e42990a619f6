"""Conversion from Arrow, with which the product works, to pandas and Polars frames.

A frame has the types that its own library gives the data, except where that would change a value: there
the nearest type that keeps it. Frames that are read and written back (``rows``) therefore change nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.batch import distinct_values, repeats
from freezeframe.engine.frames.python_values import nested_values, python_values
from freezeframe.errors import CorruptData, InvalidOption, SetupError
from freezeframe.extras import require_release
from freezeframe.nested_types import every_type
from freezeframe.settings import load_settings

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Library = Literal["pandas", "arrow", "polars", "spark"]
DtypeBackend = Literal["numpy", "numpy_nullable", "pyarrow"]
"""pandas' own word, and ``"numpy"`` for pandas' ordinary types."""

_MASKED = {
    pa.bool_(): "boolean",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.string(): "string",
}
NULLABLE_NAMES = frozenset({*_MASKED.values(), "UInt8", "UInt16", "UInt32", "UInt64"})
NULLABLE = b"freezeframe.nullable"
"""Marks a column that came as one of pandas' nullable types (``Int64``, ``boolean``, ``string`` ...)."""
_EXACT_IN_DOUBLE = 2**53
# From as many blocks on, pandas warns of a fragmented frame when a script adds a column.
_BLOCKS_MAX = 50


def marked_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the columns that have the mark of a nullable type."""
    return frozenset(field.name for field in schema if NULLABLE in (field.metadata or {}))


def with_nullable(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the table with the mark of a nullable type on these columns as well."""
    added = set(names).intersection(table.column_names) - marked_columns(table.schema)
    if not added:
        return table
    fields = [
        field.with_metadata({**(field.metadata or {}), NULLABLE: b"true"}) if field.name in added else field
        for field in table.schema
    ]
    return pa.table(table.columns, schema=pa.schema(fields, table.schema.metadata))


def require_library(library: str, dtype_backend: str | None = None) -> None:
    """Refuse an unknown ``as_``, and a ``dtype_backend`` that is unknown or does not go with it."""
    libraries, backends = get_args(Library), get_args(DtypeBackend)
    if library not in libraries:
        raise InvalidOption(
            f"as_ cannot be {library!r}.", remedy=f"Use one of {', '.join(libraries)}.", as_=repr(library)
        )
    if dtype_backend not in (None, *backends):
        raise InvalidOption(
            f"dtype_backend cannot be {dtype_backend!r}.",
            cause="It is pandas' own option: which types the columns of a frame have.",
            remedy=f'Use one of {", ".join(map(repr, backends))}; "numpy" gives pandas\' ordinary types.',
        )
    if dtype_backend is not None and library != "pandas":
        raise InvalidOption(
            f"dtype_backend cannot be used with {library} frames.",
            cause="It is pandas' option; the columns of other frames have the stored types.",
            remedy="Leave it out.",
        )


def to_frame(
    table: pa.Table, library: str, dtype_backend: str | None = None, default: str | None = None
) -> Any:
    """Convert to a frame of ``"pandas"`` or ``"polars"``; else return the table.

    ``dtype_backend`` is pandas' own option; None stands for ``default``, or the setting of that name, and for
    the nullable types in which columns came.
    """
    require_library(library, dtype_backend)
    if library == "pandas":
        rows = pa.table(table.columns, names=table.column_names) if dtype_backend == "numpy" else table
        return to_pandas(rows, dtype_backend or default or load_settings().dtype_backend)
    return to_polars(table) if library == "polars" else table


def to_pandas(table: pa.Table, dtype_backend: str = "numpy") -> pd.DataFrame:
    """Convert to pandas, in its ordinary types, or in those of another ``dtype_backend``.

    Text is pandas' ``str``, on pandas 2 ``object`` of ``str`` (there ``str`` where ``future.infer_string`` is
    on), with NaN for missing.
    Integers and booleans are numpy's; beside missing values integers are ``float64``, or ``Int64`` where
    one of them is beyond 2**53, and booleans ``object``. Floats have NaN for NULL as well as for NaN.
    Timestamps are ``datetime64[us, UTC]`` or, without a zone, ``datetime64[us]``. Dates
    (``datetime.date``), decimals, bytes, lists (numpy arrays), structs (dicts) and maps (lists of pairs) are
    Python objects with None for missing. A column without any value is ``object``. Dates of which one is
    beyond the years 1 to 9999 are ``numpy.datetime64[D]``. The index is 0, 1, 2 ...

    ``"numpy_nullable"`` gives ``Int64``, ``boolean``, ``Float64`` and ``string`` in place of these, as have
    columns that came in such a type;
    ``"pyarrow"`` gives columns backed by Arrow, of exactly the stored types.
    """
    require_release("pandas")
    import pandas as pd  # noqa: PLC0415 - lazy: half a second

    marked = marked_columns(table.schema) if dtype_backend == "numpy" else ()
    columns: dict[str, pd.Series[Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            if dtype_backend == "pyarrow":
                for chunk in column.chunks:
                    chunk.validate(full=True)
                columns[name] = pd.Series(pd.arrays.ArrowExtensionArray(column))
            elif column.type in _MASKED and (dtype_backend == "numpy_nullable" or name in marked):
                columns[name] = _of_dtype(_MASKED[column.type], column)
            else:
                columns[name] = _series(column)
        except (UnicodeDecodeError, pa.ArrowException) as error:
            raise CorruptData(
                f"The stored column {name!r} holds text that is not UTF-8.",
                cause="Another program wrote it; freezeframe refuses such text.",
                remedy='Read the column with as_="arrow", or restore a version from before.',
                column=name,
            ) from error
    frame = pd.DataFrame(columns, index=pd.RangeIndex(len(table)), columns=table.column_names, copy=False)
    return frame if len(columns) < _BLOCKS_MAX else frame.copy()


def pandas_metadata(table: pa.Table) -> dict[bytes, bytes]:
    """Return metadata by which pandas reads nullable types from a file; none without marked columns."""
    if not marked_columns(table.schema):
        return {}
    columns = pa.Schema.from_pandas(to_pandas(table.slice(0, 0)), preserve_index=False)
    return dict(columns.metadata)


def nullable_in_pandas(schema: pa.Schema) -> frozenset[str]:
    """Return the columns that had a nullable type in the pandas frame of which a file was made."""
    columns = (schema.pandas_metadata or {}).get("columns", ())
    return frozenset(column["name"] for column in columns if column.get("numpy_type") in NULLABLE_NAMES)


def to_polars(table: pa.Table) -> pl.DataFrame:
    """Convert to Polars by its own types for Arrow's."""
    try:
        import polars as pl  # noqa: PLC0415 - lazy: an optional package
    except ModuleNotFoundError as error:
        raise SetupError(
            "Rows cannot be given as Polars.",
            cause="The package polars is not installed.",
            remedy='Install it (pip install polars), or use as_="arrow".',
        ) from error
    frame = pl.DataFrame(table)
    frame.columns = table.column_names  # Polars gives a column of the empty name another one
    return frame


def _series(column: pa.ChunkedArray) -> pd.Series[Any]:
    """Return the column in pandas' ordinary type for it."""
    import pandas as pd  # noqa: PLC0415 - as above

    kind = column.type
    if pa.types.is_string(kind):
        text = text_dtype()
        if isinstance(text, pd.StringDtype):
            for chunk in column.chunks:
                chunk.validate(full=True)
            return _of_dtype(text, column)  # "str" is numpy's before pandas 2.3
        if len(column) and repeats(column):  # one Python text for each of the distinct values
            values, indexes = distinct_values(column)
            return pd.Series(np.array([*values.to_pylist(), np.nan], dtype=object)[indexes], dtype=object)
        texts = _own_values(column)
        return pd.Series(_with_nan(texts, column) if column.null_count else texts, dtype=object)
    if pa.types.is_timestamp(kind):
        numbers = _own_values(column.cast(pa.timestamp("us")))
        times = pd.Series(numbers.astype("datetime64[us]", copy=False))
        return times if kind.tz is None else times.dt.tz_localize("UTC")
    if pa.types.is_floating(kind):
        return pd.Series(_own_values(column))
    if pa.types.is_integer(kind):
        ends = pc.min_max(column).as_py() if column.null_count else {"min": None}
        if ends["min"] is not None and max(-ends["min"], ends["max"]) > _EXACT_IN_DOUBLE:
            return _of_dtype("Int64", column)
        return pd.Series(_own_values(column))
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        codes: Any = pc.fill_null(column.cast(pa.int8()), 2).to_numpy() if column.null_count else None
        cells = np.array([False, True, np.nan], dtype=object)
        return pd.Series(_own_values(column) if codes is None else cells[codes])
    return pd.Series(_objects(column), dtype=object)


def _of_dtype(name: Any, column: pa.ChunkedArray) -> pd.Series[Any]:
    import pandas as pd  # noqa: PLC0415 - as above

    dtype: Any = pd.api.types.pandas_dtype(name)
    return pd.Series(dtype.__from_arrow__(column))


def text_dtype() -> Any:
    """Return the type that pandas gives text: ``str``, or ``object`` on pandas 2 without an option."""
    import pandas as pd  # noqa: PLC0415 - as above

    return pd.Series([""]).dtype


def _own_values(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Return the values, copied from Arrow's memory if need be, so that a caller can change the frame."""
    values: np.ndarray[Any, Any] = column.to_numpy()
    return values if values.flags.writeable else values.copy()


def _with_nan(values: np.ndarray[Any, Any], column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    values[column.is_null().to_numpy()] = np.nan
    return values


def _objects(column: pa.ChunkedArray) -> Any:
    """Return dates, decimals, bytes and nested values as Python objects, lists as numpy arrays.

    PyArrow, and so ``pandas.read_parquet``, turns integers beside a null in a nested value into floats, and
    takes the zone of times in lists away: both would change the column's type on the way back.
    """
    if pa.types.is_decimal(column.type):
        return column.to_numpy()  # half the time of ``to_pylist``
    if not pa.types.is_nested(column.type):
        return python_values(column)
    if not any(map(_lists_moments, every_type(column.type))):
        try:
            return column.to_pandas(integer_object_nulls=True).to_numpy()
        except (OverflowError, ValueError, pa.ArrowNotImplementedError):
            pass  # dates that ``datetime`` does not have
    return _object_array(nested_values(column, as_list=_object_array))


def _lists_moments(kind: pa.DataType) -> bool:
    """Return whether values are lists of timestamps with a zone."""
    is_time = pa.types.is_list(kind) and pa.types.is_timestamp(kind.value_type)
    return is_time and kind.value_type.tz is not None


def _object_array(items: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
