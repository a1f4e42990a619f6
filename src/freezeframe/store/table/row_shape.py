"""Projects rows to given columns and types (pure)."""

from __future__ import annotations

import pyarrow as pa


def in_schema(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of ``schema``: cast where they differ, null where there are none.

    Columns that ``schema`` lacks are left out.

    Raises:
        pa.ArrowException: a value cannot be cast.
    """
    names = set(rows.schema.names)
    columns = [
        pa.nulls(rows.num_rows, field.type)
        if field.name not in names or rows.column(field.name).null_count == rows.num_rows
        else rows.column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
