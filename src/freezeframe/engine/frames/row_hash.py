"""An order-independent hash of rows, equal for every kind of frame.

Each cell has a 64-bit hash; the cells of a row are combined by the rank of their column's name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.repeated_values import repeats
from freezeframe.engine.frames.xxhash64 import SEED, Hashes, Integers, hash_bytes, hash_longs, rotate_left

NULL_CELL = int(SEED)
"""The hash of a null cell, as Spark's ``xxhash64`` has it."""
NEGATIVE_ZERO_CELL = 43
"""The hash of -0.0, which Spark's ``xxhash64`` does not tell from 0.0."""
LONG_VALUE_BYTES = 512
"""Text and bytes that are longer are hashed by way of their SHA-256."""
ROTATIONS = 64
"""How many columns are combined by rotations of their own before the sum so far is hashed once more."""
LONG_DECIMAL_DIGITS = 18
"""Decimals of more digits are hashed by the bytes of their unscaled value, others as 64-bit integers."""

# Rows per pass, to fit the processor's cache.
_BLOCK_ROWS = 1 << 16


def rotation(place: int) -> int:
    """The rotation in bits for the cells of the column at ``place``."""
    return place * 11 % ROTATIONS


def hashed_columns(schema: pa.Schema) -> list[str]:
    """The hashed columns in order; an untyped column has no values and is left out."""
    return sorted(field.name for field in schema if not pa.types.is_null(field.type))


def row_hashes(table: pa.Table) -> Iterator[Hashes]:
    """The hashes of the rows of a table, in blocks; its columns have types that a stream can store."""
    columns = {name: _Column(table.column(name)) for name in hashed_columns(table.schema)}
    encoded = pa.table({name: column.encoded for name, column in columns.items()}) if columns else table
    for batch in encoded.to_batches(max_chunksize=_BLOCK_ROWS):
        combined = np.zeros(len(batch), np.uint64)
        for place, (column, values) in enumerate(zip(columns.values(), batch.columns, strict=False)):
            if place and place % ROTATIONS == 0:
                combined = hash_longs(combined)
            combined ^= rotate_left(column.cells(values), rotation(place))
        yield hash_longs(combined)


class _Column:
    """A column to hash; repeated values are hashed once."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.encoded = column
        self._of_values: Hashes | None = None
        if pa.types.is_string(column.type) and repeats(column):
            self.encoded = column.dictionary_encode().unify_dictionaries()
            values = self.encoded.chunk(0).dictionary
            self._of_values = np.append(_cells(values), np.uint64(NULL_CELL))

    def cells(self, values: pa.Array) -> Hashes:
        if self._of_values is None:
            return _cells(values)
        places: Hashes = pc.fill_null(values.indices, len(values.dictionary)).to_numpy(zero_copy_only=False)
        return self._of_values[places]


def _cells(array: pa.Array) -> Hashes:
    """The hash of each value; the bytes under a null are ignored."""
    cells = _values(array)
    if array.null_count:
        cells[pc.is_null(array).to_numpy(zero_copy_only=False)] = NULL_CELL
    return cells


def _values(array: pa.Array) -> Hashes:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _texts(array)
    if pa.types.is_floating(kind):
        return _floats(array)
    if pa.types.is_decimal(kind):
        return _decimals(array)
    if pa.types.is_struct(kind):
        return _fields([array.field(place) for place in range(kind.num_fields)], len(array))
    if pa.types.is_map(kind):
        start, length = array.offsets[0].as_py(), array.offsets[-1].as_py() - array.offsets[0].as_py()
        pairs = [side.slice(start, length) for side in (array.keys, array.items)]
        return _lists(array.offsets, _fields(pairs, length))
    if pa.types.is_list(kind):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return _lists(array.offsets, _cells(array.values.slice(start, end - start)))
    return hash_longs(_longs(array).view(np.uint64))


def _longs(array: pa.Array) -> Integers:
    """Integers, booleans, days since 1970 and microseconds since 1970 as 64-bit integers."""
    kind = array.type
    filled = array
    if pa.types.is_date(kind):
        filled = array.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        filled = array.view(pa.int64())
    if filled.null_count:
        filled = pc.fill_null(filled, pa.scalar(0).cast(filled.type))
    return np.ascontiguousarray(filled.to_numpy(zero_copy_only=False), np.int64)


def _floats(array: pa.Array) -> Hashes:
    values = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False).astype(np.float64)
    values[np.isnan(values)] = np.nan  # one bit pattern for every NaN
    cells = hash_longs(values.view(np.uint64))
    cells[(values == 0.0) & np.signbit(values)] = NEGATIVE_ZERO_CELL
    return cells


def _decimals(array: pa.Array) -> Hashes:
    data = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset :][: 2 * len(array)].reshape(-1, 2)
    if array.type.precision <= LONG_DECIMAL_DIGITS:
        return hash_longs(np.ascontiguousarray(data[:, 0]))
    # Java's BigInteger.toByteArray: big-endian, no more leading bytes than the sign needs.
    unscaled = np.ascontiguousarray(data).view(np.uint8).reshape(-1, 16)[:, ::-1]
    is_negative = unscaled.view(np.int8)[:, 0] < 0
    is_needed = unscaled != np.where(is_negative, 0xFF, 0)[:, np.newaxis]
    first = np.where(is_needed.any(axis=1), is_needed.argmax(axis=1), 15)
    rows = np.arange(len(array))
    lacks_sign = (unscaled.view(np.int8)[rows, first] < 0) != is_negative
    first = np.maximum(first - lacks_sign, 0)
    return hash_bytes(np.ascontiguousarray(unscaled).reshape(-1), rows * 16 + first, 16 - first)


def _texts(array: pa.Array) -> Hashes:
    _, offsets, buffer = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset :][: len(array) + 1].astype(np.int64)
    data = np.frombuffer(buffer if buffer is not None else b"", np.uint8)
    starts, lengths = ends[:-1], np.diff(ends)
    if array.null_count:
        lengths = np.where(pc.is_valid(array).to_numpy(zero_copy_only=False), lengths, 0)
    is_long = lengths > LONG_VALUE_BYTES
    if not is_long.any():
        return hash_bytes(data, starts, lengths)
    cells = np.empty(len(array), np.uint64)
    cells[~is_long] = hash_bytes(data, starts[~is_long], lengths[~is_long])
    digests = [
        hashlib.sha256(data[start : start + length].data).hexdigest()
        for start, length in zip(starts[is_long], lengths[is_long], strict=True)
    ]
    cells[is_long] = _texts(pa.array(digests, pa.string()))
    return cells


def _fields(fields: list[pa.Array], count: int) -> Hashes:
    hashes = np.full(count, SEED)
    for field in fields:
        hashes = hash_longs(_cells(field), hashes)
    return hashes


def _lists(offsets: pa.Array, cells: Hashes) -> Hashes:
    """The hash of each list: its length, then the ``cells`` of its values in order."""
    ends = offsets.to_numpy().astype(np.int64)
    ends -= ends[0]
    starts, lengths = ends[:-1], np.diff(ends)
    hashes = hash_longs(lengths.view(np.uint64))
    order = np.argsort(-lengths, kind="stable")
    ordered = hashes[order]
    for place in range(int(lengths.max(initial=0))):
        rows = order[: np.searchsorted(-lengths[order], -place, side="left")]
        ordered[: len(rows)] = hash_longs(cells[starts[rows] + place], ordered[: len(rows)])
    hashes[order] = ordered
    return hashes
