"""Which files may hold a key of a batch, told by the statistics of the key's columns (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.log.skipping import value_bounds


def may_hold(
    statistics: Sequence[str | None], keys: pa.Table, stored: pa.Schema, names: Mapping[str, str]
) -> list[bool]:
    """For each file, by its statistics' JSON text, whether a row of it can have one of the keys.

    ``stored`` has the types in which the files hold the key's columns, ``names`` their names there.
    A file without usable statistics may hold anything.
    """
    held = [True] * len(statistics)
    for name in keys.column_names:
        column = keys[name]
        # No bound speaks of nulls or of NaN, and another type may order its values differently.
        if column.null_count or kinds.is_floating(column.type) or column.type != stored.field(name).type:
            continue
        field = stored.field(name)
        for index, text in enumerate(statistics):
            held[index] = held[index] and _overlaps(column, *value_bounds(field, names[name], text))
    return held


def _overlaps(column: pa.ChunkedArray, low: pa.Scalar | None, high: pa.Scalar | None) -> bool:
    within = None
    if low is not None:
        within = pc.greater_equal(column, low)
    if high is not None:
        below = pc.less_equal(column, high)
        within = below if within is None else pc.and_(within, below)
    return True if within is None else bool(pc.any(within).as_py())
