"""Conversion of numbers and booleans between Arrow and NumPy by their buffers.

The first call of ``pa.array`` or ``Array.to_numpy`` imports pandas, which costs most of a second
and tens of megabytes: more than reading a whole log. These functions convert the primitive types
that replay needs without pandas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def to_arrow_ints(values: npt.NDArray[Any]) -> pa.Array:
    """An int64 array of the values."""
    exact = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(exact), [None, pa.py_buffer(exact)])


def to_arrow_offsets(values: npt.NDArray[Any]) -> pa.Array:
    """An int32 array of the values: offsets of lists and maps."""
    exact = np.ascontiguousarray(values, dtype=np.int32)
    return pa.Array.from_buffers(pa.int32(), len(exact), [None, pa.py_buffer(exact)])


def to_arrow_flags(values: Bools) -> pa.Array:
    """A boolean array of the values."""
    packed = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(packed)])


def to_ints(values: pa.Array | pa.ChunkedArray) -> Ints:
    """The values of an integer array as int64; values under nulls are undefined."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [_chunk_ints(chunk) for chunk in chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def to_flags(values: pa.Array | pa.ChunkedArray) -> Bools:
    """The values of a boolean array; nulls are False."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [_chunk_flags(chunk) for chunk in chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)


def is_valid(values: pa.Array | pa.ChunkedArray) -> Bools:
    """Mask of the values that are not null."""
    if values.null_count == 0:
        return np.ones(len(values), dtype=np.bool_)
    return to_flags(pc.is_valid(values))


def _chunk_ints(chunk: pa.Array) -> Ints:
    if chunk.type != pa.int64():
        chunk = chunk.cast(pa.int64())
    buffer = chunk.buffers()[1]
    if len(chunk) == 0 or buffer is None:
        return np.zeros(len(chunk), dtype=np.int64)
    return np.frombuffer(buffer, dtype=np.int64, count=len(chunk), offset=8 * chunk.offset)


def _chunk_flags(chunk: pa.Array) -> Bools:
    found = _bits(chunk.buffers()[1], chunk)
    validity = chunk.buffers()[0]
    if validity is not None and chunk.null_count:
        found = found & _bits(validity, chunk)
    return found


def _bits(buffer: Any, chunk: pa.Array) -> Bools:
    if len(chunk) == 0 or buffer is None:
        return np.zeros(len(chunk), dtype=np.bool_)
    end = chunk.offset + len(chunk)
    raw = np.frombuffer(buffer, dtype=np.uint8, count=(end + 7) // 8)
    return np.unpackbits(raw, count=end, bitorder="little")[chunk.offset :].astype(np.bool_)
