"""The ``read_csv`` options of pandas that apply to typed rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from freezeframe.engine.frames.frames import to_pandas
from freezeframe.errors import InvalidOption, MissingColumn
from freezeframe.store.table.reader import as_kind


def with_read_options(rows: pa.Table, options: Mapping[str, Any]) -> pd.DataFrame:
    """The rows as pandas: ``usecols``, ``dtype``, ``dtype_backend``, ``parse_dates``, ``index_col`` applied.

    Raises:
        MissingColumn: an option names a column that is not there.
        InvalidOption: a value cannot be taken as the ``dtype`` asked for, or as a date.
    """
    frame = as_kind(rows, "pandas", options.get("dtype_backend"))
    usecols = options.get("usecols")
    if usecols is not None:
        frame = frame[_select_columns(frame, usecols)]
    try:
        frame = _with_types(frame, options.get("dtype"), rows)
        for name in _date_columns(frame, options.get("parse_dates")):
            frame = frame.assign(**{name: pd.to_datetime(frame[name])})
    except (ValueError, TypeError) as error:
        raise InvalidOption(
            "The snapshot's rows cannot take the types asked for.",
            cause=str(error),
            remedy="Leave dtype and parse_dates out: the values have the types that they were kept with.",
        ) from error
    index = options.get("index_col")
    if index is None or index is False:
        return frame
    columns = [index] if isinstance(index, str | int) else list(index)
    names = [frame.columns[column] if isinstance(column, int) else column for column in columns]
    return frame.set_index(_require_columns(frame, "index_col", names))


def _with_types(frame: pd.DataFrame, dtype: Any, rows: pa.Table) -> pd.DataFrame:
    if dtype is None:
        return frame
    if not isinstance(dtype, Mapping):
        dtype = dict.fromkeys(frame.columns, dtype)
    wanted = {name: kind for name, kind in dtype.items() if name in frame}
    # As text, integers beside missing ones have no ".0", and what is missing stays so (str would say "nan").
    as_text = [name for name, kind in wanted.items() if kind in (str, "str")]
    exact = to_pandas(rows.select(as_text), "numpy_nullable").astype("string").astype(object)
    texts = {name: exact[name].where(exact[name].notna(), np.nan) for name in as_text}
    others = {name: kind for name, kind in wanted.items() if name not in texts}
    return frame.assign(**texts).astype(others)


def _select_columns(frame: pd.DataFrame, usecols: Any) -> list[str]:
    if callable(usecols):
        return [name for name in frame.columns if usecols(name)]
    chosen = {frame.columns[usecol] if isinstance(usecol, int) else usecol for usecol in usecols}
    _require_columns(frame, "usecols", sorted(chosen))
    # As in read_csv, the order is that of the columns.
    return [name for name in frame.columns if name in chosen]


def _date_columns(frame: pd.DataFrame, parse_dates: Any) -> list[str]:
    if not parse_dates or parse_dates is True:
        return []
    columns = [frame.columns[date] if isinstance(date, int) else date for date in parse_dates]
    return _require_columns(frame, "parse_dates", columns)


def _require_columns(frame: pd.DataFrame, option: str, names: list[str]) -> list[str]:
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise MissingColumn(
            f"{option} names the column {absent[0]!r}, which the snapshot does not have.",
            cause=f"Its columns are {', '.join(map(repr, frame.columns))}.",
            remedy="Name one of them.",
            column=absent[0],
        )
    return names
