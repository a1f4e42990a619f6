"""A Spark frame of an update's result before it is committed.

A preview deletes its files at its end, so their rows are copied into the frame. Stored files are read
lazily with the frame.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.engine.frames.untyped import spark_schema
from freezeframe.engine.plans.schema_ddl import spark_ddl
from freezeframe.engine.protocol.table_engine import TableEngine
from freezeframe.log import Snapshot
from freezeframe.storage import Storage
from freezeframe.store.table.reader import as_spark, read_rows
from freezeframe.store.table.row_shape import in_schema
from freezeframe.store.table.snapshot_part import part_of


def previewed_frame(
    given: Any, before: Snapshot, after: Snapshot, storage: Storage, folder: str, engine: TableEngine
) -> Any:
    """The rows of ``after`` in the session of the frame ``given``; only files that ``before`` lacks are read.

    Raises:
        CorruptData: a file is missing or damaged.
    """
    session = given.sparkSession
    files = after.files
    is_stored = pc.is_in(files["path"], before.files["path"]) if before.version >= 0 else None
    if is_stored is None or not pc.any(is_stored, min_count=0).as_py():
        table = _shown(read_rows(after))
        return session.createDataFrame(table, schema=spark_ddl(table.schema))
    stored = as_spark(part_of(after, files.filter(is_stored)), storage, folder, engine, None, like=given)
    new = _shown(read_rows(part_of(after, files.filter(pc.invert(is_stored)))))
    if not new.num_rows:
        return stored
    written = session.createDataFrame(new, schema=spark_ddl(new.schema))
    return stored.unionByName(written, allowMissingColumns=True)


def _shown(table: pa.Table) -> pa.Table:
    return in_schema(table, spark_schema(table.schema))
