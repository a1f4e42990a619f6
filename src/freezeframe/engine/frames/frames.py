"""Conversion between pandas, Polars, Arrow and Spark frames; the product works with Arrow.

A frame has the types that its own library gives the data, except where that would change a value: there
the nearest type that keeps it. Frames that are read and written back therefore change nothing. A pandas or
Spark frame is recognised by its class's name, so that this module never imports pyspark, and imports pandas
only to create a pandas frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.arrow_columns import no_stored_type, stored_column
from freezeframe.engine.frames.batch import distinct_values, repeats
from freezeframe.engine.frames.pandas_columns import arrow_column, objects_column
from freezeframe.engine.frames.python_values import python_values
from freezeframe.errors import BadInput, CorruptData, InvalidOption, SetupError
from freezeframe.extras import require_release

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FrameKind = Literal["pandas", "arrow", "polars", "spark"]
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
_PYTHON_OF_POLARS = ("Object", "Int128", "UInt128")
"""Types of Polars that Arrow lacks; of objects Polars hands on their addresses in memory."""
_NO_ARROW = (pa.ArrowException, TypeError, ValueError)
NULLABLE_NAMES = frozenset({*_MASKED.values(), "UInt8", "UInt16", "UInt32", "UInt64"})
NULLABLE = b"freezeframe.nullable"
"""Marks a column that came as one of pandas' nullable types (``Int64``, ``boolean``, ``string`` ...)."""
_EXACT_IN_DOUBLE = 2**53
# From as many blocks on, pandas warns of a fragmented frame when a script adds a column.
_BLOCKS_MAX = 50


def kind_of(frame: Any) -> FrameKind:
    """Return the library of a frame; any object with ``__arrow_c_stream__`` is ``"arrow"``."""
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return "arrow"
    if _is_frame_of("pandas", frame):
        return "pandas"
    if is_spark(frame):
        return "spark"
    if _is_frame_of("polars", frame):
        return "polars"
    if hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, pa.RecordBatchReader):
        return "arrow"
    raise BadInput(
        f"Rows cannot be read from {type(frame).__module__}.{type(frame).__qualname__}.",
        cause="Rows come as a pandas, Polars or Spark DataFrame, or a PyArrow Table or RecordBatch.",
        remedy="Call collect() on a lazy frame."
        if hasattr(frame, "collect")
        else "Convert them first; most libraries have to_arrow() or to_pandas().",
        type=type(frame).__qualname__,
    )


def is_spark(frame: Any) -> bool:
    """Return whether it is a Spark frame, classic or Connect, without loading PySpark."""
    if type(frame).__module__.startswith("pyspark.pandas."):
        raise BadInput(
            "A pandas-on-Spark frame is not taken.",
            cause="It has an index beside its columns.",
            remedy="Pass frame.to_spark(), or frame.to_spark(index_col=...) to keep the index as a column.",
            type=type(frame).__qualname__,
        )
    return _is_frame_of("pyspark", frame)


def _is_frame_of(package: str, frame: Any) -> bool:
    kinds = type(frame).__mro__
    return any(kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == package for kind in kinds)


def to_arrow(frame: Any) -> pa.Table:
    """Convert a frame to an Arrow table of types that a stream can store, without changing a value.

    From pandas, NaN, None, NaT and ``pd.NA`` become NULL, a column without any value has the
    type ``null``, and the index is left out: it is a position, not data. From Arrow, NaN stays
    NaN and types stay as declared; encodings that Delta lacks are undone
    (``arrow_columns.stored_column``). Metadata is dropped, but for the mark of a nullable pandas type.
    """
    given = kind_of(frame)
    if given == "spark":
        raise BadInput(
            "A Spark DataFrame is not converted to an Arrow table.",
            cause="Its rows stay in Spark, whatever their number.",
            remedy="Call toArrow() on it if its rows fit this process.",
        )
    if given == "pandas":
        names = require_names(list(frame.columns))
        columns = [arrow_column(name, frame.iloc[:, index]) for index, name in enumerate(names)]
        marked = nullable_columns(frame)
    else:
        table = frame if isinstance(frame, pa.Table) else _handed_on(frame, given)
        names = require_names(arrow_names(table.schema))
        columns = [stored_column(name, table.column(index)) for index, name in enumerate(names)]
        marked = marked_columns(table.schema)
    return with_nullable(pa.table(columns, names=names), marked)


def nullable_columns(frame: pd.DataFrame) -> frozenset[str]:
    """Return the columns of pandas' nullable types; pandas 3's own ``str`` is none of them."""
    kinds = zip(frame.columns, frame.dtypes, strict=True)
    return frozenset(name for name, kind in kinds if kind.name in NULLABLE_NAMES)


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


def _handed_on(frame: Any, library: str) -> pa.Table:
    """Return the table of another library's frame; the error names the column that Arrow does not have."""
    if library == "polars":
        held = zip(frame.columns, frame.get_columns(), strict=True)
        columns = [_polars_column(name, series) for name, series in held]
        return pa.table(columns, names=frame.columns)
    try:
        return pa.table(frame)
    except _NO_ARROW as error:
        raise BadInput(
            f"Rows cannot be read from {type(frame).__module__}.{type(frame).__qualname__}.",
            cause=str(error).splitlines()[0] if str(error) else "It does not hand on a table.",
            remedy="Pass a frame of named columns, with types that Arrow has.",
            type=type(frame).__qualname__,
        ) from error


def _polars_column(name: str, series: Any) -> pa.ChunkedArray:
    import polars as pl  # noqa: PLC0415 - lazy: an optional package; a frame of it has come

    kind = str(series.dtype)
    if kind in _PYTHON_OF_POLARS:
        return objects_column(name, series.to_list())
    try:
        # PyArrow cannot cast the newer layouts (views) inside lists and structs.
        table = series.to_frame().to_arrow(compat_level=pl.CompatLevel.oldest())
    except _NO_ARROW as error:
        raise no_stored_type(name, kind) from error
    return table.column(0)


def arrow_names(schema: pa.Schema) -> list[str]:
    """Return the columns' names."""
    try:
        return list(schema.names)
    except UnicodeDecodeError as error:
        raise BadInput(
            "A column's name is not UTF-8.",
            cause=f"{error.object!r} cannot be decoded.",
            remedy="Rename the column before the rows are written.",
        ) from error


def require_names(names: Sequence[Any]) -> list[str]:
    """Return the columns' names; refuse what cannot be one, and names that are given twice."""
    strangers = [name for name in names if not isinstance(name, str)]
    if strangers:
        raise BadInput(
            f"Column names must be text; {', '.join(map(repr, strangers[:10]))} "
            f"{'is' if len(strangers) == 1 else 'are'} not.",
            remedy="Name every column: df.columns = [str(name) for name in df.columns], for example.",
            columns=[repr(name) for name in strangers],
        )
    halves = [name for name in names if not _is_utf8(name)]
    if halves:
        raise BadInput(
            f"The column names {', '.join(map(repr, halves[:10]))} cannot be written as UTF-8.",
            cause="They contain a lone UTF-16 surrogate.",
            remedy="Rename the columns.",
            columns=[repr(name) for name in halves],
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise BadInput(
            f"Several columns are named {', '.join(map(repr, twice[:10]))}.",
            cause="The names of a stream's columns must differ.",
            remedy="Rename or drop the duplicates.",
            columns=twice,
        )
    return [str(name) for name in names]


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_dtype_backend(given: str | None) -> None:
    """Refuse an unknown ``dtype_backend``; None stands for the setting."""
    known = get_args(DtypeBackend)
    if given is not None and given not in known:
        raise InvalidOption(
            f"dtype_backend cannot be {given!r}.",
            cause="It is pandas' own option: which types the columns of a frame have.",
            remedy=f'Use one of {", ".join(map(repr, known))}; "numpy" gives pandas\' ordinary types.',
        )


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
    columns = {
        name: _pandas_column(name, column, "numpy_nullable" if name in marked else dtype_backend)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    frame = pd.DataFrame(columns, index=pd.RangeIndex(len(table)), columns=table.column_names, copy=False)
    return frame if len(columns) < _BLOCKS_MAX else frame.copy()


def pandas_metadata(table: pa.Table) -> dict[bytes, bytes]:
    """Return metadata by which pandas reads nullable types from a file; none without marked columns."""
    if not marked_columns(table.schema):
        return {}
    columns = pa.Schema.from_pandas(to_pandas(table.slice(0, 0)), preserve_index=False)
    return dict(columns.metadata)


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


def _pandas_column(name: str, column: pa.ChunkedArray, dtype_backend: str) -> pd.Series[Any]:
    import pandas as pd  # noqa: PLC0415 - as above

    try:
        if dtype_backend == "pyarrow":
            for chunk in column.chunks:
                chunk.validate(full=True)
            return pd.Series(pd.arrays.ArrowExtensionArray(column))
        if dtype_backend == "numpy_nullable" and column.type in _MASKED:
            return _of_dtype(_MASKED[column.type], column)
        return _series(column)
    except (UnicodeDecodeError, pa.ArrowException) as error:
        raise CorruptData(
            f"The stored column {name!r} holds text that is not UTF-8.",
            cause="Another program wrote it; freezeframe refuses such text.",
            remedy='Read the column with as_="arrow", or restore a version from before.',
            column=name,
        ) from error


def _series(column: pa.ChunkedArray) -> pd.Series[Any]:
    """Return the column in pandas' ordinary type for it."""
    import pandas as pd  # noqa: PLC0415 - as above

    kind = column.type
    if pa.types.is_string(kind):
        return _text(column)
    if pa.types.is_timestamp(kind):
        numbers = _own_values(column.cast(pa.timestamp("us")))
        times = pd.Series(numbers.astype("datetime64[us]", copy=False))
        return times if kind.tz is None else times.dt.tz_localize("UTC")
    if pa.types.is_floating(kind):
        return pd.Series(_own_values(column))
    if pa.types.is_integer(kind):
        if column.null_count and not _exact_as_floats(column):
            return _of_dtype("Int64", column)
        return pd.Series(_own_values(column))
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        values = _own_values(column)
        return pd.Series(_with_nan(values.astype(object), column) if column.null_count else values)
    return pd.Series(_objects(column), dtype=object)


def _of_dtype(name: str, column: pa.ChunkedArray) -> pd.Series[Any]:
    import pandas as pd  # noqa: PLC0415 - as above

    dtype: Any = pd.api.types.pandas_dtype(name)
    return pd.Series(dtype.__from_arrow__(column))


def text_dtype() -> Any:
    """Return the type that pandas gives text: ``str``, or ``object`` on pandas 2 without an option."""
    import pandas as pd  # noqa: PLC0415 - as above

    return pd.Series([""]).dtype


def _text(column: pa.ChunkedArray) -> pd.Series[Any]:
    import pandas as pd  # noqa: PLC0415 - as above

    if isinstance(text_dtype(), pd.StringDtype):
        for chunk in column.chunks:
            chunk.validate(full=True)
        return _of_dtype("str", column)
    if len(column) and repeats(column):  # one Python text for each of the distinct values
        values, indexes = distinct_values(column)
        return pd.Series(np.array([*values.to_pylist(), np.nan], dtype=object)[indexes], dtype=object)
    texts = _own_values(column)
    return pd.Series(_with_nan(texts, column) if column.null_count else texts, dtype=object)


def _own_values(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Return the values, copied from Arrow's memory if need be, so that a caller can change the frame."""
    values: np.ndarray[Any, Any] = column.to_numpy()
    return values if values.flags.writeable else values.copy()


def _with_nan(values: np.ndarray[Any, Any], column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    values[column.is_null().to_numpy()] = np.nan
    return values


def _exact_as_floats(column: pa.ChunkedArray) -> bool:
    ends = pc.min_max(column).as_py()
    return ends["min"] is None or max(-ends["min"], ends["max"]) <= _EXACT_IN_DOUBLE


def _objects(column: pa.ChunkedArray) -> Any:
    """Return dates, decimals, bytes and nested values as Python objects, lists as numpy arrays.

    PyArrow, and so ``pandas.read_parquet``, turns integers beside a null in a nested value into floats, and
    takes the zone of times in lists away: both would change the column's type on the way back.
    """
    if pa.types.is_decimal(column.type):
        return column.to_numpy()  # half the time of ``to_pylist``
    if not pa.types.is_nested(column.type):
        return python_values(column)
    if not _lists_moments(column.type):
        try:
            return column.to_pandas(integer_object_nulls=True).to_numpy()
        except (OverflowError, ValueError, pa.ArrowNotImplementedError):
            pass  # dates that ``datetime`` does not have
    objects = np.empty(len(column), dtype=object)
    objects[:] = [_with_arrays(value, column.type) for value in python_values(column)]
    return objects


def _lists_moments(kind: pa.DataType) -> bool:
    """Return whether the type has a list of timestamps with a zone anywhere."""
    parts = [kind.field(index).type for index in range(kind.num_fields)]
    is_list = pa.types.is_list(kind) and not pa.types.is_map(kind)
    return (is_list and pa.types.is_timestamp(kind.value_type) and kind.value_type.tz is not None) or any(
        _lists_moments(part) for part in parts if pa.types.is_nested(part)
    )


def _with_arrays(value: Any, kind: pa.DataType) -> Any:
    """Return a nested Python value whose lists are numpy arrays of objects."""
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_struct(kind):
        return {part.name: _with_arrays(value[part.name], part.type) for part in kind}
    if pa.types.is_map(kind):
        return [(key, _with_arrays(item, kind.item_type)) for key, item in value]
    items = np.empty(len(value), dtype=object)
    items[:] = [_with_arrays(item, kind.value_type) for item in value]
    return items
