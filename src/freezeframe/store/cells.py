"""Whether two columns differ cell by cell, by the rule that every comparison of rows goes by (pure).

A null equals a null, NaN equals NaN, and the entries of a map have no order
(``docs/reference/semantics.md``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds


def cells_differ(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """For each pair of cells whether they differ; both columns have the same length."""
    if old.type != new.type or kinds.is_nested(old.type) or kinds.is_null(old.type):
        return _values_differ(old, new)
    same = pc.fill_null(pc.equal(old, new), fill_value=False)
    if kinds.is_floating(old.type):
        nans = pc.and_(pc.is_nan(old), pc.is_nan(new))
        same = pc.or_(same, pc.fill_null(nans, fill_value=False))
    if old.null_count and new.null_count:
        same = pc.or_(same, pc.and_(pc.is_null(old), pc.is_null(new)))
    return _chunked(pc.invert(same))


def _values_differ(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    pairs = zip(old.to_pylist(), new.to_pylist(), strict=True)
    differ = [_plain(before, old.type) != _plain(after, new.type) for before, after in pairs]
    return pa.chunked_array([pa.array(differ, pa.bool_())])


def _plain(value: Any, kind: pa.DataType) -> Any:
    """The value in a form that is equal exactly where the value is the same."""
    if value is None:
        return None
    if kinds.is_map(kind):
        entries = [(_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in value]
        return sorted(entries, key=repr)
    if kinds.is_struct(kind) and isinstance(value, Mapping):
        return [(field.name, _plain(value.get(field.name), field.type)) for field in kind]
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _chunked(column: Any) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
