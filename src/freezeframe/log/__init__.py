"""Delta's transaction log in Python: its snapshots, its files, its commits. No Spark, no JVM."""

from freezeframe.log.actions.actions import (
    Add,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    parse_line,
    to_json_line,
)
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.segments.management import SnapshotManagement
from freezeframe.log.segments.segment import LogSegment
from freezeframe.log.table.delta_log import DeltaLog
from freezeframe.log.table.snapshot import Snapshot

__all__ = [
    "Add",
    "CommitInfo",
    "DeletionVector",
    "DeltaLog",
    "DomainMetadata",
    "LogOptions",
    "LogSegment",
    "Metadata",
    "Protocol",
    "Remove",
    "Snapshot",
    "SnapshotManagement",
    "Txn",
    "parse_line",
    "to_json_line",
]
