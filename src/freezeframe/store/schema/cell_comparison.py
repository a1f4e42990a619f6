"""Cell-by-cell comparison of two columns, used by every comparison of rows (pure).

A null equals a null, NaN equals NaN, -0.0 is not 0.0, and the entries of a map have no order
(``docs/reference/semantics.md``). Values of two types are never the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from freezeframe.engine.frames.python_values import python_values

# Types whose Python values compare exactly as they are.
_PLAIN = (kinds.is_string, kinds.is_large_string, kinds.is_integer, kinds.is_boolean, kinds.is_decimal)


def cells_differ(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """Mask of the differing cells of two columns of the same length."""
    if old.type != new.type or kinds.is_nested(old.type) or kinds.is_null(old.type):
        return _values_differ(old, new)
    same = pc.equal(old, new)
    if kinds.is_floating(old.type):
        same = pc.and_(same, pc.equal(_signs(old), _signs(new)))
        same = pc.or_kleene(same, pc.and_(pc.is_nan(old), pc.is_nan(new)))
    same = pc.fill_null(same, fill_value=False)
    if old.null_count and new.null_count:
        same = pc.or_(same, pc.and_(pc.is_null(old), pc.is_null(new)))
    return _to_chunked(pc.invert(same))


def _signs(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Mask of the negative numbers, -0.0 included; the sign of NaN is ignored."""
    bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[column.type.bit_width]
    return pc.less(pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits), 0)


def _values_differ(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    # Values of two different types are never equal.
    pairs = zip(plain_values(old), plain_values(new), strict=True)
    has_one_type = old.type == new.type
    differ = [(before != after) if has_one_type else not (before is after is None) for before, after in pairs]
    return pa.chunked_array([pa.array(differ, pa.bool_())])


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """The values in a form with exact equality; all have one type."""
    values = python_values(column)
    if any(is_plain(column.type) for is_plain in _PLAIN):
        return values
    return [_plain(value, column.type) for value in values]


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if kinds.is_temporal(kind):
        # The form must not depend on other values of the column beyond the range of ``datetime``.
        held = value.item() if isinstance(value, np.datetime64) else value
        return held.replace(tzinfo=None) if isinstance(held, datetime) else held
    if kinds.is_map(kind):
        entries = [(_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in value]
        return sorted(entries, key=repr)
    if kinds.is_struct(kind) and isinstance(value, Mapping):
        return [(field.name, _plain(value.get(field.name), field.type)) for field in kind]
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    # The text distinguishes -0.0 from 0.0 and is unique to the number.
    return repr(value) if isinstance(value, float) else value


def _to_chunked(column: Any) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
