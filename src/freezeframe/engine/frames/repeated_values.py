"""Conversion of columns with few distinct values through a dictionary."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SAMPLE_ROWS = 1_000
_REPEATED_TIMES = 10


def repeats(column: pa.ChunkedArray) -> bool:
    """Whether the column has few distinct values, by a sample."""
    sample = column.slice(len(column) // 2, _SAMPLE_ROWS)
    return len(column) > _SAMPLE_ROWS and len(sample.unique()) * _REPEATED_TIMES < len(sample)


def distinct_values(column: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The distinct values, and each row's index into them; for a null the number of values."""
    chunks = column.dictionary_encode().unify_dictionaries().chunks
    values = chunks[0].dictionary
    return values, np.concatenate([chunk.indices.fill_null(len(values)).to_numpy() for chunk in chunks])
