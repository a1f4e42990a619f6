"""Rows as a door takes them: a frame of any library, wrapped once; what is below asks for no library.

What a library hands on, and Arrow or PyArrow would take wrongly, is made safe here: lists of Java's Arrow
without offsets, objects of Polars, the nullable types of pandas. Frames are recognized by their class's name,
so that this module imports neither PySpark nor pandas.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.arrow_columns import no_stored_type, stored_column, with_offsets
from freezeframe.engine.frames.frames import NULLABLE_NAMES, Library, marked_columns, to_frame, with_nullable
from freezeframe.engine.frames.pandas_columns import arrow_column, objects_column
from freezeframe.errors import BadInput

_PYTHON_OF_POLARS = ("Object", "Int128", "UInt128")
"""Types of Polars that Arrow lacks; of objects Polars hands on their addresses in memory."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_ARROW = (pa.ArrowException, TypeError, ValueError)


class Rows:
    """The rows of a frame, or of a reader of record batches, that a door was given."""

    def __init__(self, frame: Any, nullable: Collection[str] | None = None) -> None:
        """Wrap a frame; ``nullable`` names the columns that came as nullable, where the frame does not."""
        self.frame = frame
        self._nullable = nullable

    @cached_property
    def library(self) -> Library:
        """The library of the frame; any object with ``__arrow_c_stream__`` is ``"arrow"``.

        Raises:
            BadInput: it is no frame.
        """
        library = library_of(self.frame)
        if library is None:
            raise _no_rows(
                self.frame,
                cause="Rows come as a pandas, Polars or Spark DataFrame, or a PyArrow Table or RecordBatch.",
                remedy="Call collect() on a lazy frame."
                if hasattr(self.frame, "collect")
                else "Convert them first; most libraries have to_arrow() or to_pandas().",
            )
        return library

    @property
    def is_spark(self) -> bool:
        """Whether the rows are in Spark."""
        return self.library == "spark"

    @property
    def is_reader(self) -> bool:
        """Whether the rows come in pieces, once."""
        return isinstance(self.frame, pa.RecordBatchReader)

    @property
    def is_lazy(self) -> bool:
        """Whether reading the rows may write files, as for a Spark frame or a reader."""
        return self.is_reader or _is_frame_of("pyspark", self.frame)

    @cached_property
    def nullable(self) -> frozenset[str]:
        """The columns that came in one of pandas' nullable types; pandas 3's own ``str`` is none of them."""
        if self._nullable is not None:
            return frozenset(self._nullable)
        if self.library == "pandas":
            types = zip(self.frame.columns, self.frame.dtypes, strict=True)
            return frozenset(name for name, dtype in types if dtype.name in NULLABLE_NAMES)
        is_arrow = isinstance(self.frame, pa.Table | pa.RecordBatch)
        return marked_columns(self.frame.schema) if is_arrow else frozenset()

    def to_arrow(self) -> pa.Table:
        """Convert the frame to an Arrow table of types that a stream can store, without changing a value.

        From pandas, NaN, None, NaT and ``pd.NA`` become NULL, a column without any value has the
        type ``null``, and the index is left out: it is a position, not data. From Arrow, NaN stays
        NaN and types stay as declared; encodings that Delta lacks are undone
        (``arrow_columns.stored_column``). Metadata is dropped, but for the mark of a nullable pandas type.
        """
        if self.is_spark:
            raise BadInput(
                "A Spark DataFrame is not converted to an Arrow table.",
                cause="Its rows stay in Spark, whatever their number.",
                remedy="Call toArrow() on it if its rows fit this process.",
            )
        frame = self.frame
        if self.library == "pandas":
            names = require_names(list(frame.columns))
            columns = [arrow_column(name, frame.iloc[:, index]) for index, name in enumerate(names)]
            return with_nullable(pa.table(columns, names=names), self.nullable)
        table = frame if isinstance(frame, pa.Table) else self._table()
        names = require_names(arrow_names(table.schema))
        columns = [stored_column(name, table.column(index)) for index, name in enumerate(names)]
        marked = marked_columns(table.schema) if self._nullable is None else self.nullable
        return with_nullable(pa.table(columns, names=names), marked)

    def like_given(
        self, table: pa.Table, dtype_backend: str | None = None, default: str | None = None
    ) -> Any:
        """Return a table as a frame of the same library, what came as nullable so; see ``to_frame``."""
        return to_frame(with_nullable(table, self.nullable), self.library, dtype_backend, default)

    def pieces(self) -> Iterator[pa.Table]:
        """Return the pieces of a reader, which can be read once."""
        return map(with_offsets, self.frame)

    def _table(self) -> pa.Table:
        """Return the table that the frame hands on; the error names the column that Arrow does not have."""
        if self.library == "polars":
            series = zip(self.frame.columns, self.frame.get_columns(), strict=True)
            columns = [_polars_column(name, column) for name, column in series]
            return pa.table(columns, names=self.frame.columns)
        try:
            return pa.table(self.frame)
        except _NO_ARROW as error:
            raise _no_rows(
                self.frame,
                cause=str(error).splitlines()[0] if str(error) else "It does not hand on a table.",
                remedy="Pass a frame of named columns, with types that Arrow has.",
            ) from error


def library_of(frame: Any) -> Library | None:
    """Return the library of a frame, without loading it; None for what is no frame.

    Raises:
        BadInput: it is a frame of pandas on Spark.
    """
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return "arrow"
    if type(frame).__module__.startswith("pyspark.pandas."):
        raise BadInput(
            "A pandas-on-Spark frame is not taken.",
            cause="It has an index beside its columns.",
            remedy="Pass frame.to_spark(), or frame.to_spark(index_col=...) to keep the index as a column.",
            type=type(frame).__qualname__,
        )
    if _is_frame_of("pandas", frame):
        return "pandas"
    if _is_frame_of("pyspark", frame):
        return "spark"
    if _is_frame_of("polars", frame):
        return "polars"
    hands_on = hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, pa.RecordBatchReader)
    return "arrow" if hands_on else None


def _is_frame_of(package: str, frame: Any) -> bool:
    classes = type(frame).__mro__
    return any(item.__name__ == "DataFrame" and item.__module__.split(".")[0] == package for item in classes)


def _no_rows(frame: Any, *, cause: str, remedy: str) -> BadInput:
    name = type(frame).__qualname__
    return BadInput(
        f"Rows cannot be read from {type(frame).__module__}.{name}.", cause=cause, remedy=remedy, type=name
    )


def _polars_column(name: str, series: Any) -> pa.ChunkedArray:
    import polars as pl  # noqa: PLC0415 - lazy: an optional package; a frame of it has come

    dtype = str(series.dtype)
    if dtype in _PYTHON_OF_POLARS:
        return objects_column(name, series.to_list())
    try:
        # PyArrow cannot cast the newer layouts (views) inside lists and structs.
        table = series.to_frame().to_arrow(compat_level=pl.CompatLevel.oldest())
    except _NO_ARROW as error:
        raise no_stored_type(name, dtype) from error
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
    halves = [name for name in names if _SURROGATE.search(name)]
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
