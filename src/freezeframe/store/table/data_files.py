"""Data files of a stream: row counts and deleted positions, from the log."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import UnsupportedTable
from freezeframe.log import Snapshot
from freezeframe.log.format.actions import DeletionVector
from freezeframe.log.format.protocol import has_reader_feature
from freezeframe.log.scan.file_rows import deleted_rows
from freezeframe.log.scan.rows import ReadableSnapshot
from freezeframe.log.table.row_deletion import VECTORS_KEY
from freezeframe.store.schema.columns import VECTORS_FEATURE


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A live file: its path in the log, bytes, rows, and number of deleted rows."""

    path: str
    size: int
    rows: int
    deleted: int = 0


def live_files(files: pa.Table) -> tuple[LiveFile, ...]:
    """``files`` (rows of ``snapshot.files``), in their order."""
    columns = ["path", "size", "stats", "deletion_vector"]
    return tuple(
        LiveFile(
            row["path"],
            row["size"],
            _rows(row["path"], row["stats"]),
            row["deletion_vector"]["cardinality"] if row["deletion_vector"] else 0,
        )
        for row in files.select(columns).to_pylist()
    )


def deleted_positions(snapshot: ReadableSnapshot, files: pa.Table) -> dict[str, npt.NDArray[np.int64]]:
    """For each of ``files`` (rows of ``snapshot.files``) with deleted rows their positions, by path."""
    marked = files.filter(pc.is_valid(files["deletion_vector"])).select(["path", "deletion_vector"])
    return {
        row["path"]: deleted_rows(
            snapshot.storage, snapshot.table, DeletionVector.from_json(row["deletion_vector"])
        ).astype(np.int64)
        for row in marked.to_pylist()
    }


def has_vectors(snapshot: Snapshot) -> bool:
    """Whether the table enables deletion vectors."""
    is_on = snapshot.metadata.configuration.get(VECTORS_KEY, "").lower() == "true"
    return is_on and has_reader_feature(snapshot.protocol, VECTORS_FEATURE)


def _rows(path: str, statistics: str | None) -> int:
    found = (json.loads(statistics) if statistics else {}).get("numRecords")
    if not isinstance(found, int):
        raise UnsupportedTable(
            f"It is not known how many rows {path!r} has.",
            cause="Another writer left the statistics out.",
            remedy="Replace the stream's content with override=True.",
        )
    return found
