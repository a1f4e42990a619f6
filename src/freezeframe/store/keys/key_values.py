"""Keys of a stream converted to the types of its key at a version (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from freezeframe.errors import BadInput, InvalidOption
from freezeframe.store.schema.comparison import exact_cast
from freezeframe.store.schema.type_compatibility import cast_to


def keys_as(keys: pa.Table, columns: pa.Schema) -> pa.Table:
    """The keys cast to the types of ``columns``, without keys that these types cannot hold."""
    kinds = [columns.field(name).type for name in keys.column_names]
    keeps = np.ones(len(keys), np.bool_)
    for column, kind in zip(keys.columns, kinds, strict=True):
        if column.type != kind and exact_cast(column, kind) is None:
            keeps &= [exact_cast(column.slice(row, 1), kind) is not None for row in range(len(column))]
    kept = keys.filter(pa.array(keeps))
    cast = [cast_to(column, kind) for column, kind in zip(kept.columns, kinds, strict=True)]
    return pa.table(cast, names=keys.column_names)


def key_of_row(columns: pa.Schema, key: Sequence[str], given: Any) -> pa.Table:
    """The key of one row as a table of the key's columns: a value, a sequence of them, or values by name.

    Raises:
        InvalidOption: the stream has no key.
        BadInput: the values are not a key of the stream.
    """
    if not key:
        raise InvalidOption(
            "The stream has no key, so single rows cannot be told apart.",
            remedy="Compare two versions of the whole stream instead.",
        )
    if isinstance(given, Mapping):
        values = [given[name] for name in key] if set(given) == set(key) else None
    else:
        whole = given if isinstance(given, list | tuple) else (given,)
        values = list(whole) if len(whole) == len(key) else None
    try:
        if values is not None:
            cells = zip(key, values, strict=True)
            return pa.table({name: pa.array([value], columns.field(name).type) for name, value in cells})
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    raise BadInput(
        f"{given!r} is not a key of the stream.",
        cause=f"Its key has the columns {', '.join(f'{name} ({columns.field(name).type})' for name in key)}.",
        remedy="Pass one value of its type for each of them.",
    )
