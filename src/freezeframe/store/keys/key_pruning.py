"""Data skipping by key: files whose statistics exclude every key of a batch (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.log.primitives.arrow_numbers import Bools
from freezeframe.log.statistics.column_bounds import ColumnBounds, column_bounds


def may_hold(
    statistics: pa.ChunkedArray | Sequence[str | None],
    keys: pa.Table,
    stored: pa.Schema,
    names: Mapping[str, str],
) -> list[bool]:
    """For each file, by its statistics' JSON text, whether it may hold one of the keys.

    ``stored`` has the types in which the files hold the key's columns, ``names`` their names there.
    A file without usable statistics may hold anything.
    """
    texts = (
        statistics
        if isinstance(statistics, pa.ChunkedArray)
        else pa.chunked_array([pa.array(statistics, pa.string())])
    )
    held = np.ones(len(texts), np.bool_)
    for name in keys.column_names:
        column = keys[name]
        # Bounds exclude nulls and NaN, and another type may sort its values differently.
        if column.null_count or kinds.is_floating(column.type) or column.type != stored.field(name).type:
            continue
        bounds = column_bounds(texts, stored.field(name), names[name])
        values = column.combine_chunks().unique()
        held &= _meet(values.take(pc.sort_indices(values)), bounds)
    found: list[bool] = held.tolist()
    return found


def _meet(values: pa.Array, bounds: ColumnBounds) -> Bools:
    """Mask of the files with one of the sorted ``values`` within their bounds."""
    if not len(values):
        return np.zeros(len(bounds.low), np.bool_)
    # Most files are before or after all keys, or around the first or last one, as comparisons decide. Of
    # those that begin and end between two keys a binary search decides.
    near = ~_true(pc.greater(bounds.low, values[-1])) & ~_true(pc.less(bounds.high, values[0]))
    inner = near & _true(pc.greater(bounds.low, values[0])) & _true(pc.less(bounds.high, values[-1]))
    if inner.any():
        places = pa.array(np.flatnonzero(inner))
        first = _places(values, bounds.low.take(places), pc.less)
        end = _places(values, bounds.high.take(places), pc.less_equal)
        near[inner] = first < end
    return near


def _true(flags: pa.ChunkedArray) -> Bools:
    found: Bools = pc.fill_null(flags, False).to_numpy()  # noqa: FBT003 - Arrow's signature
    return found


def _places(
    values: pa.Array,
    bounds: pa.ChunkedArray,
    is_before: Callable[[pa.Array, pa.ChunkedArray], pa.ChunkedArray],
) -> npt.NDArray[np.int64]:
    """The number of sorted ``values`` before each bound, by a vectorised binary search."""
    low = np.zeros(len(bounds), np.int64)
    high = np.full(len(bounds), len(values), np.int64)
    for _ in range(len(values).bit_length()):
        middle = (low + high) // 2
        is_open = low < high
        at = values.take(pa.array(np.minimum(middle, len(values) - 1)))
        before = _true(is_before(at, bounds))
        low = np.where(is_open & before, middle + 1, low)
        high = np.where(is_open & ~before, middle, high)
    return low
