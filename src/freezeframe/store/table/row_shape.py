"""Projects rows to given columns and types (pure)."""

from __future__ import annotations

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
