"""Conversion of columns with few distinct values, by way of these values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SAMPLE_ROWS = 1_000
_REPEATED_TIMES = 10


def repeats(column: pa.ChunkedArray) -> bool:
    """Whether a sample says that the column has few different values."""
    sample = column.slice(len(column) // 2, _SAMPLE_ROWS)
    return len(column) > _SAMPLE_ROWS and len(sample.unique()) * _REPEATED_TIMES < len(sample)


def distinct_values(column: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The column's different values, and for each row the place of its own; for a null their number."""
    chunks = column.dictionary_encode().unify_dictionaries().chunks
    values = chunks[0].dictionary
    return values, np.concatenate([chunk.indices.fill_null(len(values)).to_numpy() for chunk in chunks])
