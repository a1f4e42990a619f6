"""Integer codes for a batch's keys, used to match stored rows (pure)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.batch import comparable_key

_Numbers = npt.NDArray[np.int64]


class KeyNumbers:
    """The distinct keys of a batch; the number of a key is its row.

    Equal is what is equal to Spark as well: NaN to NaN, 0.0 to -0.0, and null to null.
    """

    def __init__(self, keys: pa.Table) -> None:
        self.count = len(keys)
        self._values = [pc.unique(comparable_key(column)) for column in keys.columns]
        self._pairs: list[pa.Array] = []
        """For each column after the first: the pairs that keys have of the number so far and its own."""
        numbers = np.zeros(len(keys), np.int64)
        for place, (column, values) in enumerate(zip(keys.columns, self._values, strict=True)):
            _, numbers_of_column = _intersect(column, values)
            if not place:
                numbers = numbers_of_column
                continue
            pairs = _pairs(numbers, numbers_of_column, values)
            self._pairs.append(pc.unique(pairs))
            _, numbers = _intersect(pairs, self._pairs[-1])
        # Unique values keep their order of appearance, so the keys' own numbers are 0, 1, 2 and so on.

    def found_in(self, rows: pa.Table) -> tuple[_Numbers, _Numbers]:
        """(ascending indexes of the rows with one of the keys, the number of each row's key).

        ``rows`` have the key's columns, in the order of the keys.

        Raises:
            pa.ArrowInvalid: a value cannot be had in the type of the keys.
        """
        at, numbers = _intersect(rows.column(0), self._values[0])
        for column, values, known_pairs in zip(rows.columns[1:], self._values[1:], self._pairs, strict=True):
            here, own = _intersect(column.take(pa.array(at)), values)
            there, paired = _intersect(_pairs(numbers[here], own, values), known_pairs)
            at, numbers = at[here][there], paired
        return at, numbers


def _pairs(numbers: _Numbers, own: _Numbers, values: pa.Array) -> pa.Array:
    """One number per pair: both parts are less than the number of keys, so 64 bits suffice."""
    return pa.array(numbers * len(values) + own)


def _intersect(column: Any, values: pa.Array) -> tuple[_Numbers, _Numbers]:
    """(indexes of the column's values found in ``values``, their indexes in ``values``)."""
    # One call for all chunks, since each call builds a hash table of the values.
    found = pc.index_in(comparable_key(column.cast(values.type)), value_set=values)
    at = pc.indices_nonzero(pc.is_valid(found)).to_numpy().astype(np.int64)
    return at, found.drop_null().to_numpy().astype(np.int64)
