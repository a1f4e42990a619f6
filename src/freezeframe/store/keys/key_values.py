"""Keys of a stream in the types that its key has, or had at another version (pure)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from freezeframe.store.schema.comparison import exact_cast
from freezeframe.store.schema.type_compatibility import cast_to


def keys_as(keys: pa.Table, columns: pa.Schema) -> pa.Table:
    """The keys in the types of ``columns``, without those that are no values of these types."""
    kinds = [columns.field(name).type for name in keys.column_names]
    keeps = np.ones(len(keys), np.bool_)
    for column, kind in zip(keys.columns, kinds, strict=True):
        if column.type != kind and exact_cast(column, kind) is None:
            keeps &= [exact_cast(column.slice(row, 1), kind) is not None for row in range(len(column))]
    kept = keys.filter(pa.array(keeps))
    cast = [cast_to(column, kind) for column, kind in zip(kept.columns, kinds, strict=True)]
    return pa.table(cast, names=keys.column_names)
