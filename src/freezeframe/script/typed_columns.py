"""A table of text as a table of types: what is known about a column wins over what can be inferred."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from freezeframe.script.inference import inferred
from freezeframe.script.text_values import exact_values
from freezeframe.store.evolution import is_undecided

_LONGEST_INTEGER = pa.decimal128(38, 0)


def typed_columns(
    text: pa.Table, stored: pa.Schema | None, declared: Mapping[str, pa.DataType] | None = None
) -> pa.Table:
    """The columns in the types of ``stored``, else in the ``declared`` ones, else as inferred.

    A type is taken only if every value of the column is exact in it; no letter is ever lost.
    """
    known = {field.name: field.type for field in stored or () if not is_undecided(field)}
    columns = {}
    for name in text.column_names:
        column = text.column(name)
        if name in known and not pa.types.is_null(known[name]):
            exact = exact_values(column, known[name])
            # Values that do not fit the stored type are told as they are: the update then
            # refuses or widens, and names the rows.
            columns[name] = inferred(column) if exact is None else exact
        elif declared and name in declared:
            columns[name] = _as_declared(column, declared[name])
        else:
            columns[name] = inferred(column)
    return pa.table(columns)


def _as_declared(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    values = exact_values(text, kind, naive_is_utc=True)
    if values is None and pa.types.is_integer(kind):
        values = exact_values(text, _LONGEST_INTEGER)
    return text if values is None else values
