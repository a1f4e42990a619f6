"""Snapshot: one version of a table; immutable, with a lazily loaded state.

Protocol and metadata are loaded eagerly, so that an unsupported table is refused at once. Files,
tombstones, transactions and domains come from the segment, or incrementally from the previous
snapshot and the new commits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from typing import Protocol as TypingProtocol

import pyarrow as pa

from freezeframe.errors import InvalidOption, ReportDamage
from freezeframe.log.format.action_columns import FILE_SCHEMA, TOMBSTONE_SCHEMA, no_rows
from freezeframe.log.format.actions import CommitInfo, DomainMetadata, Metadata, Protocol, Txn
from freezeframe.log.format.protocol import in_commit_timestamps
from freezeframe.log.primitives.arrow import milliseconds, select_rows
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.scan import rows
from freezeframe.log.scan.data_skipping import Predicate
from freezeframe.log.scan.rows import dataset_of
from freezeframe.log.segments.commit import require_in_commit_timestamp
from freezeframe.log.segments.replay import LISTED_COLUMNS, TableState, younger_than
from freezeframe.log.segments.segment import EMPTY_VERSION, LogSegment
from freezeframe.storage import Storage

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

_log = logging.getLogger(__name__)

DELETED_FILE_RETENTION = "delta.deletedFileRetentionDuration"
TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
DELETED_FILE_RETENTION_DEFAULT = "interval 7 days"


@dataclass(frozen=True, slots=True)
class VersionHead:
    """Protocol, metadata and commit info of a version."""

    protocol: Protocol
    metadata: Metadata
    commit_info: CommitInfo | None = None


class StateLoader(TypingProtocol):
    """Reads the state of a version."""

    def __call__(self, oldest: int | None, *, complete: bool = False) -> TableState:
        """Without tombstones deleted at or before ``oldest`` (ms; ``None``: with all).

        The statistics in a large checkpoint are read on first use, unless ``complete``.
        """


class Snapshot:
    """A table at ``version``; -1 is an empty table that does not exist yet.

    Data files are named relative to the folder ``table`` of ``storage``.
    """

    def __init__(
        self,
        storage: Storage,
        table: str,
        segment: LogSegment,
        head: VersionHead,
        *,
        load_state: StateLoader,
        options: LogOptions,
    ) -> None:
        self.storage = storage
        self.table = table
        self.segment = segment
        self.version = segment.version
        self.protocol = head.protocol
        self.metadata = head.metadata
        self.commit_info = head.commit_info
        self._load_state = load_state
        self.time_zone = options.time_zone
        self.options = options
        self._state: TableState | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        checkpoint = self.segment.checkpoint_version
        return f"Snapshot(path={self.path}, version={self.version}, checkpoint={checkpoint})"

    @cached_property
    def path(self) -> str:
        """The location of the table, for messages."""
        return self.storage.uri(self.table) if self.table else self.storage.root

    @property
    def timestamp(self) -> int:
        """The in-commit timestamp where enabled, else the commit file's modification time (ms); -1: none.

        Raises:
            CorruptLog: a required in-commit timestamp is missing (protocol, section "In-Commit Timestamps").
        """
        since = in_commit_timestamps(self.metadata)
        if self.exists and since is not None and self.version >= since[0]:
            return require_in_commit_timestamp(self.commit_info, self.version)
        return -1 if self.segment.last_commit is None else self.segment.last_commit.modified_ms

    @property
    def identity(self) -> str:
        """Text that only this commit of this table has: a table made anew counts its versions anew."""
        return f"{self.metadata.id} {self.version} {self.timestamp}"

    @property
    def exists(self) -> bool:
        """Whether the table exists."""
        return self.version > EMPTY_VERSION

    @property
    def schema(self) -> pa.Schema:
        """The columns of ``to_arrow``; a table that does not exist has none."""
        return rows.schema_of(self) if self.exists else pa.schema([])

    @property
    def delta_schema(self) -> dict[str, Any]:
        """The schema as Delta's JSON, ``metadata.schema``; a table without one has no fields."""
        return self.metadata.schema

    @property
    def state(self) -> TableState:
        """The whole state, read once.

        Raises:
            CorruptLog: a file of the log is damaged and no alternative has its content.
        """
        state = self._state
        if state is None:
            with self._lock:
                state = self._state
                if state is None:
                    state = self._state = self._load_state(
                        oldest_tombstone(self.metadata, self.options.clock())
                    )
        return state

    @property
    def is_loaded(self) -> bool:
        """Whether the whole state is in memory."""
        return self._state is not None

    @property
    def files(self) -> pa.Table:
        """The live files, one row each: see ``action_columns.FILE_SCHEMA``.

        Statistics that were lost with their checkpoint are null, with a warning: they are optional.
        """
        if not self.exists:
            return no_rows(FILE_SCHEMA)
        state = self.state
        try:
            return state.files.files
        except ReportDamage as error:
            try:
                # An update keeps that checkpoint's files; the segment may name a later one.
                state = self._load_state(oldest_tombstone(self.metadata, self.options.clock()), complete=True)
            except ReportDamage:
                _log.warning("The statistics of %s are lost, so reads skip fewer files: %s", self, error)
                return state.files.live
            self._state = state
            return state.files.files

    @property
    def file_list(self) -> pa.Table:
        """The live files as in ``files``, without their statistics, which may have to be read first."""
        return self.state.files.file_list if self.exists else no_rows(FILE_SCHEMA).select(LISTED_COLUMNS)

    @property
    def tombstones(self) -> pa.Table:
        """The removed files younger than the table's retention (section "Action Reconciliation")."""
        if self.exists and self.state.files.lacks_tombstones:
            self._state = self._load_state(oldest_tombstone(self.metadata, self.options.clock()))
        found = self.state.files.tombstones if self.exists else no_rows(TOMBSTONE_SCHEMA)
        oldest = self.options.clock() - self.deleted_file_retention_ms
        return select_rows(found, younger_than(found["deletion_timestamp"], oldest))

    @property
    def deleted_file_retention_ms(self) -> int:
        """The retention of removed files in ms."""
        configuration = self.metadata.configuration
        return milliseconds(configuration.get(DELETED_FILE_RETENTION, DELETED_FILE_RETENTION_DEFAULT))

    @property
    def transactions(self) -> dict[str, Txn]:
        """The latest unexpired transaction of each application (section "Action Reconciliation")."""
        found = dict(self.state.heads.transactions) if self.exists else {}
        retention = self.metadata.configuration.get(TRANSACTION_RETENTION)
        if retention is None:
            return found
        oldest = self.options.clock() - milliseconds(retention)
        return {
            app: txn
            for app, txn in found.items()
            if txn.last_updated is not None and txn.last_updated > oldest
        }

    @property
    def domains(self) -> dict[str, DomainMetadata]:
        """The configuration of each active domain."""
        found: Mapping[str, DomainMetadata] = self.state.heads.domains if self.exists else {}
        return {name: domain for name, domain in found.items() if not domain.removed}

    @property
    def count(self) -> int:
        """The number of live files."""
        return self.state.files.count if self.exists else 0

    @property
    def size(self) -> int:
        """The bytes of all live files."""
        return self.state.files.size if self.exists else 0

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        where: Predicate | None = None,
        *,
        verify: bool | None = None,
    ) -> pa.Table:
        """Return the rows as one Arrow table, restricted to ``columns`` and to rows matching ``where``.

        Raises:
            CorruptData: a data file or deletion vector is missing or damaged; see ``rows.read``.
        """
        return rows.read(self, columns, where, verify=verify)

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        where: Predicate | None = None,
        *,
        verify: bool | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the same rows as batches, for tables larger than memory; see ``rows.read_batches``."""
        return rows.read_batches(self, columns, where, verify=verify)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        where: Predicate | None = None,
        *,
        verify: bool | None = None,
    ) -> pd.DataFrame:
        """Return the same rows as pandas, by Arrow's conversion."""
        frame: pd.DataFrame = self.to_arrow(columns, where, verify=verify).to_pandas()
        return frame

    def to_dataset(self) -> ds.Dataset:
        """Return the rows as a PyArrow dataset, for engines with predicate pushdown; see ``scan.dataset``."""
        return dataset_of(self)

    def file_uris(self, where: Predicate | None = None) -> list[str]:
        """Return path or URL of each live file; with ``where`` only files that may hold a matching row."""
        return rows.file_uris(self, where)

    def partitions(self) -> list[dict[str, Any]]:
        """Return the distinct combinations of partition values of the live files, by column."""
        return rows.partitions(self)

    def uncache(self) -> None:
        """Release the state; the next access reads it again.

        Seed: ``StateCache.uncache``.
        """
        with self._lock:
            self._state = None

    def with_state(self, state: TableState) -> Snapshot:
        """This snapshot with its state already known."""
        self._state = state
        return self


def oldest_tombstone(metadata: Metadata, now_ms: int) -> int | None:
    """Return deletion timestamp (ms) up to which tombstones are expired; ``None`` for a garbled property."""
    try:
        return now_ms - milliseconds(
            metadata.configuration.get(DELETED_FILE_RETENTION, DELETED_FILE_RETENTION_DEFAULT)
        )
    except InvalidOption:
        return None
