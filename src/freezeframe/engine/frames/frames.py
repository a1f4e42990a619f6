"""Conversion between pandas, Polars, Arrow and Spark frames; the product works with Arrow.

Round trips preserve values: a stored frame is returned with the same values, each column in the
nullable pandas type. A pandas or Spark frame is recognised by its class's name, so that this module
never imports pyspark, and imports pandas only to create a pandas frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from freezeframe.engine.frames.arrow_columns import stored_column
from freezeframe.engine.frames.pandas_columns import arrow_column
from freezeframe.engine.frames.python_values import python_values
from freezeframe.engine.frames.repeated_values import distinct_values, repeats
from freezeframe.errors import BadInput, CorruptData, SetupError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FrameKind = Literal["pandas", "arrow", "polars", "spark"]

_MASKED = {
    pa.bool_(): "boolean",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.string(): "string[python]",
}


def kind_of(frame: Any) -> FrameKind:
    """The library of a frame; any object with ``__arrow_c_stream__`` is ``"arrow"``.

    Raises:
        BadInput: an unknown kind of object.
    """
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
        remedy="Convert them first; most libraries have to_arrow() or to_pandas().",
        type=type(frame).__qualname__,
    )


def is_spark(frame: Any) -> bool:
    """Whether it is a Spark frame, classic or Connect, without loading PySpark."""
    return _is_frame_of("pyspark", frame)


def _is_frame_of(package: str, frame: Any) -> bool:
    kinds = type(frame).__mro__
    return any(one.__name__ == "DataFrame" and one.__module__.split(".")[0] == package for one in kinds)


def to_arrow(frame: Any) -> pa.Table:
    """Convert a frame to an Arrow table of types that a stream can store, without changing a value.

    From pandas, NaN, None, NaT and ``pd.NA`` become NULL, a column without any value has the
    type ``null``, and the index is left out: it is a position, not data. From Arrow, NaN stays
    NaN and types stay as declared; encodings that Delta lacks are undone
    (``arrow_columns.stored_column``). Schema metadata is dropped.

    Raises:
        BadInput: not a pandas, Polars or Arrow frame, or its column names are not text or not unique.
        SchemaDriftError: a column mixes kinds of values or holds what cannot be kept unchanged.
    """
    given = kind_of(frame)
    if given == "spark":
        raise BadInput(
            "A Spark DataFrame is not converted to an Arrow table.",
            cause="Its rows stay in Spark, whatever their number.",
            remedy="Call toArrow() on it if its rows fit this process.",
        )
    if given == "pandas":
        names = _check_names(list(frame.columns))
        columns = [arrow_column(name, frame.iloc[:, place]) for place, name in enumerate(names)]
    else:
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        names = _check_names(arrow_names(table.schema))
        columns = [stored_column(name, table.column(place)) for place, name in enumerate(names)]
    return pa.table(columns, names=names)


def arrow_names(schema: pa.Schema) -> list[str]:
    """The columns' names.

    Raises:
        BadInput: one of them is not UTF-8.
    """
    try:
        return list(schema.names)
    except UnicodeDecodeError as error:
        raise BadInput(
            "A column's name is not UTF-8.",
            cause=f"{error.object!r} cannot be decoded.",
            remedy="Rename the column before the rows are written.",
        ) from error


def _check_names(names: Sequence[Any]) -> list[str]:
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


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Convert to pandas, in nullable types that preserve every value.

    Integers are ``Int8`` to ``Int64``, booleans ``boolean``, text ``string``, timestamps
    ``datetime64[us, UTC]`` or, without a zone, ``datetime64[us]``. Floats are numpy floats
    with NaN for missing, so here a NaN and a NULL look the same. Decimals, dates
    (``datetime.date``), bytes, lists and dicts are Python objects with None for missing; a
    map is a list of pairs. Dates of which one is beyond the years 1 to 9999 are
    ``numpy.datetime64[D]``. The index is 0, 1, 2 ...

    Raises:
        CorruptData: a stored text is not UTF-8.
    """
    import pandas as pd  # noqa: PLC0415 - lazy: half a second

    columns = {
        name: _pandas_column(name, column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(table)), columns=table.column_names, copy=False)


def to_polars(table: pa.Table) -> pl.DataFrame:
    """Convert to Polars by its own types for Arrow's.

    Raises:
        SetupError: Polars is not installed.
    """
    try:
        import polars as pl  # noqa: PLC0415 - lazy: an optional package
    except ModuleNotFoundError as error:
        raise SetupError(
            "Rows cannot be given as Polars.",
            cause="The package polars is not installed.",
            remedy='Install it: pip install polars. as_="arrow" needs nothing more.',
        ) from error
    return pl.DataFrame(table)


def _pandas_column(name: str, column: pa.ChunkedArray) -> pd.Series[Any]:
    try:
        return _series(column)
    except (UnicodeDecodeError, pa.ArrowException) as error:
        raise CorruptData(
            f"The stored column {name!r} holds text that is not UTF-8.",
            cause="Another program wrote it; freezeframe refuses such text.",
            remedy='Read the column with as_="arrow", or restore a version from before.',
            column=name,
        ) from error


def _series(column: pa.ChunkedArray) -> pd.Series[Any]:
    import pandas as pd  # noqa: PLC0415 - as above

    kind = column.type
    if pa.types.is_string(kind) and repeats(column):
        return pd.Series(_convert_distinct_text(column))
    if kind in _MASKED:
        masked: Any = pd.api.types.pandas_dtype(_MASKED[kind])
        return pd.Series(masked.__from_arrow__(column))
    if pa.types.is_timestamp(kind):
        numbers = column.cast(pa.timestamp("us")).to_numpy()
        times = pd.Series(numbers.astype("datetime64[us]", copy=False))
        return times if kind.tz is None else times.dt.tz_localize("UTC")
    if pa.types.is_floating(kind):
        return pd.Series(column.to_numpy())
    # Decimals, dates and bytes, and nested values: PyArrow's own conversion would turn the
    # integers of a list that holds a null into floats; Python objects keep them.
    return pd.Series(python_values(column), dtype=object)


def _convert_distinct_text(column: pa.ChunkedArray) -> Any:
    """Convert a column by its distinct values, with one Python text for each."""
    import pandas as pd  # noqa: PLC0415 - as above

    values, places = distinct_values(column)
    texts = np.array([*values.to_pylist(), pd.NA], dtype=object)
    return pd.arrays.StringArray(texts[places])
