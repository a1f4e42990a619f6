"""A snapshot restricted to some of its files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import pyarrow as pa

from freezeframe.log.actions.actions import Metadata, Protocol
from freezeframe.log.scan.rows import ReadableSnapshot
from freezeframe.storage import Storage


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A ``ReadableSnapshot`` of some files only; ``files`` has the columns of ``Snapshot.files``."""

    storage: Storage
    table: str
    version: int
    protocol: Protocol
    metadata: Metadata
    time_zone: tzinfo
    schema: dict[str, Any]
    files: pa.Table


def part_of(one: ReadableSnapshot, files: pa.Table) -> SnapshotPart:
    """The part of a snapshot that ``files`` (rows of its ``files``) are."""
    return SnapshotPart(
        one.storage, one.table, one.version, one.protocol, one.metadata, one.time_zone, one.schema, files
    )
