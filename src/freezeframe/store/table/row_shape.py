"""Projects rows to given columns and types (pure)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from freezeframe.engine.frames.untyped import fit


def in_schema(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of ``schema``: cast where they differ, null where there are none.

    Columns that ``schema`` lacks are left out.

    Raises:
        pa.ArrowException: a value cannot be cast.
    """
    names = set(rows.schema.names)
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    columns = [
        fit(table.column(field.name), field.type) if field.name in names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def with_columns(table: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """The table with other columns in place of those of the same names, all of them at once."""
    if not columns:
        return table
    given = {name: pa.field(name, column.type) for name, column in columns.items()}
    fields = [given.get(one.name, one) for one in table.schema]
    held = [columns.get(name, column) for name, column in zip(table.column_names, table.columns, strict=True)]
    return pa.table(held, schema=pa.schema(fields, table.schema.metadata))
