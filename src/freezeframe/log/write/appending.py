"""Appends rows: new data files, and the commit that adds them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from freezeframe.errors import BadInput
from freezeframe.log.actions.actions import Add
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.write.new_files import new_files
from freezeframe.log.write.transaction import Transaction, require_committed


def append_rows(transaction: Transaction, rows: Any) -> int:
    """Store the rows, commit their files and return the new version (the current one for no rows).

    Raises:
        BadInput: the rows are not Arrow data.
        MissingColumn, SchemaDriftError: the rows do not fit the table's columns.
        ConflictError: another writer changed the table's definition meanwhile.
    """
    snapshot = transaction.snapshot
    adds = store_rows(snapshot, as_table(rows))
    if not adds:
        return snapshot.version
    outcome = transaction.add(*adds).commit(
        operation="WRITE",
        parameters={"mode": "Append", "partitionBy": list(snapshot.metadata.partition_columns)},
        metrics={"numFiles": len(adds), "numOutputBytes": sum(add.size for add in adds)},
    )
    return require_committed(outcome)


def store_rows(snapshot: Snapshot, rows: pa.Table) -> list[Add]:
    """Store the rows as data files, not yet committed, and return their add actions."""
    clustering = _clustering_columns(snapshot)
    files = new_files(rows, snapshot.schema, snapshot.protocol, snapshot.metadata, clustering)
    folder = f"{snapshot.table}/" if snapshot.table else ""
    for file in files:
        snapshot.storage.put_if_absent(f"{folder}{file.name}", file.content)
    return [file.add for file in files]


def _clustering_columns(snapshot: Snapshot) -> list[tuple[str, ...]]:
    """Physical paths of the columns whose statistics writers must collect ("Clustered Table")."""
    if "clustering" not in (snapshot.protocol.writer_features or ()):
        return []
    domain = snapshot.domains.get("delta.clustering")
    columns = [] if domain is None else json.loads(domain.configuration).get("clusteringColumns", [])
    return [tuple(path) for path in columns]


def as_table(rows: Any) -> pa.Table:
    """Convert Arrow tables, batches, readers and frames with Arrow export (pandas, Polars, DuckDB)."""
    try:
        return rows if isinstance(rows, pa.Table) else pa.table(rows)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise BadInput(
            f"{type(rows).__name__} is not a source of rows.",
            cause=str(error),
            remedy="Pass an Arrow table, or a frame with Arrow export.",
        ) from error
