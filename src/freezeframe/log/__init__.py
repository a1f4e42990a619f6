"""Delta's transaction log in Python: its snapshots, its files, its commits. No Spark, no JVM."""

from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import (
    Add,
    Cdc,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
)
from freezeframe.log.primitives.options import LogEvent, LogOptions
from freezeframe.log.segments.management import SnapshotManagement
from freezeframe.log.segments.segment import LogSegment
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.table.transaction import Transaction
from freezeframe.log.table.upkeep import Upkeep

__all__ = [
    "Add",
    "Cdc",
    "CommitInfo",
    "DeletionVector",
    "DeltaLog",
    "DomainMetadata",
    "LogEvent",
    "LogOptions",
    "LogSegment",
    "Metadata",
    "Protocol",
    "Remove",
    "Snapshot",
    "SnapshotManagement",
    "Transaction",
    "Txn",
    "Upkeep",
]
