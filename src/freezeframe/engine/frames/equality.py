"""Which cells are equal: the one definition, for updates, comparisons and keys, in Arrow and numpy alone.

Two nulls are equal, NaN equals NaN whatever its bits, -0.0 differs from 0.0, and the entries of a map have no
order (``docs/reference/semantics.md``). Cells of two types always differ, unless both are null. In a key both
zeros are one (``key_codes``). ``store`` compares with these functions, and tasks of Spark can import them.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.nested_types import fold_array, is_list, pairs

Codes = npt.NDArray[np.int64]
"""A number for each cell; null is -1, and the others are less than the number of cells."""


def cells_differ(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a mask of the differing cells of two columns of the same length."""
    if old.type != new.type:
        return _as_column(pc.or_(pc.is_valid(old), pc.is_valid(new)))
    if kinds.is_nested(old.type) or kinds.is_null(old.type):
        left, right = cell_codes(old, new)
        return pa.chunked_array([pa.array(left != right)])
    left, right = (_bits(column) if kinds.is_floating(column.type) else column for column in (old, new))
    if left.equals(right):  # at once, as most columns of most rows are
        return pa.chunked_array([np.zeros(len(old), np.bool_)])
    same = pc.equal(left, right)
    if kinds.is_floating(old.type):
        same = pc.or_kleene(same, pc.and_(pc.is_nan(old), pc.is_nan(new)))
    same = pc.fill_null(same, fill_value=False)
    if old.null_count and new.null_count:
        same = pc.or_(same, pc.and_(pc.is_null(old), pc.is_null(new)))
    return _as_column(pc.invert(same))


def cell_codes(*columns: pa.ChunkedArray) -> list[Codes]:
    """Return a number for each cell of columns of one type; equal cells, whatever column, have the same."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    codes = fold_array(pa.concat_arrays(chunks) if chunks else pa.array([], columns[0].type), _codes)
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def joined_codes(codes: Iterable[Codes], count: int) -> Codes:
    """Return a number for each of ``count`` rows, equal for rows with equal codes in every column."""
    joined = np.zeros(count, np.int64)
    for column in codes:
        # Both numbers are less than the number of rows, so that their pair fits into 64 bits.
        joined = _codes(pa.array(joined * (int(column.max(initial=-1)) + 2) + column + 1))
    return joined


def comparable_key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column in a form with equal bits for equal keys, for grouping and joining in Arrow.

    Spark joins 0.0 with -0.0, and NaN with NaN whatever its bits.
    """
    if not kinds.is_floating(column.type):
        return column
    unsigned = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(unsigned), pa.scalar(math.nan, column.type), unsigned)


def key_codes(keys: pa.Table) -> Codes:
    """Return a number for each key, from 0 on in the order of their first row; equal keys have the same."""
    codes = [code for column in keys.columns for code in cell_codes(comparable_key(column))]
    return joined_codes(codes, len(keys))


def are_distinct(keys: pa.Table) -> bool:
    """Return whether no two rows of the table have the same key; a null is one, too."""
    return int(key_codes(keys).max(initial=-1)) + 1 == len(keys)


def _codes(array: pa.Array, inside: Sequence[Codes] = ()) -> Codes:
    """Return the codes of an array by those of the arrays inside."""
    kind = array.type
    if kinds.is_struct(kind):
        codes = joined_codes(inside, len(array))
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), codes, -1)
    if kinds.is_map(kind):
        return _list_codes(pairs(array), joined_codes(inside, len(inside[0])), has_order=False)
    if is_list(kind):
        return _list_codes(array, *inside, has_order=True)
    if kinds.is_floating(kind):
        array = pc.if_else(pc.is_nan(array), pa.scalar(math.nan, kind), array)
        array = array.view(_BITS[kind.bit_width])
    indices = pc.dictionary_encode(array).indices
    return np.asarray(pc.fill_null(indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False))


def _list_codes(lists: pa.Array, items: Codes, *, has_order: bool) -> Codes:
    """Return the codes of lists by those of their items: the items' numbers are the bytes of one text."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not has_order:
        items = items[np.lexsort((items, np.repeat(np.arange(len(lists)), lengths)))]
    offsets = np.concatenate([[0], np.cumsum(lengths)]) * items.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(items))]
    codes = _codes(pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lists), buffers))
    return np.where(lists.is_valid().to_numpy(zero_copy_only=False), codes, -1)


_BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the bits of floats as integers, which tell zeros of both signs apart."""
    bits = _BITS[column.type.bit_width]
    return pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits)


def _as_column(mask: pa.ChunkedArray | pa.BooleanArray) -> pa.ChunkedArray:
    return mask if isinstance(mask, pa.ChunkedArray) else pa.chunked_array([mask])
