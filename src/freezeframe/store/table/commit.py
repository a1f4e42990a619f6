"""Builds the exact bytes of a table's next commit, which the tenant log contains (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log import Snapshot
from freezeframe.log.actions.action_columns import to_adds
from freezeframe.log.actions.actions import Action, Add, CommitInfo, Remove
from freezeframe.log.commits.commit_digest import sign_content
from freezeframe.log.primitives.engine_info import engine_info
from freezeframe.log.scan.data_files import SHA256_TAG
from freezeframe.log.scan.deletion_vectors import VectorFile
from freezeframe.log.write.row_deletion import removal
from freezeframe.store.model.row_counts import Counts
from freezeframe.store.schema.column_mapping import DeltaSchema
from freezeframe.store.schema.table_properties import (
    Notes,
    Properties,
    guarded_protocol,
    join_protocols,
    table_metadata,
)
from freezeframe.store.table.staging import DataFile


@dataclass(frozen=True, slots=True)
class TableChange:
    """What an update does to a table: its new columns (None: as they are), and its files.

    With ``replaces_files`` all live files go and ``added`` are the whole new content; without it
    those go that ``removed`` names (as the log does). ``marks`` are the actions that put the deletion
    vectors of ``vector_file`` in force. ``notes`` and ``properties`` are written with ``schema`` only.
    ``plan`` says in a few words how the update was carried out and why.
    """

    operation: str
    key: tuple[str, ...]
    schema: DeltaSchema | None
    added: tuple[DataFile, ...]
    replaces_files: bool
    counts: Counts
    notes: Notes = ()
    properties: Properties = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    marks: tuple[Action, ...] = ()
    vector_file: VectorFile | None = None
    plan: str = ""

    @property
    def new_paths(self) -> tuple[str, ...]:
        """The files new in this commit, relative to the table's folder."""
        vectors = (self.vector_file.name,) if self.vector_file else ()
        return (*(file.path for file in self.added), *vectors)

    @property
    def new_bytes(self) -> int:
        """Total bytes of the new files."""
        vectors = len(self.vector_file.content) if self.vector_file else 0
        return sum(file.size for file in self.added) + vectors

    @property
    def with_vectors(self) -> bool:
        """Whether readers need deletion vector support after the commit."""
        return bool(self.marks)


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """Identity of a commit: the attempt's unique id, the job id, if any, and the time."""

    write_id: str
    timestamp_ms: int
    job_id: str | None = None


def commit_text(base: Snapshot, rewrite: TableChange, identity: CommitIdentity) -> str:
    """The text of ``_delta_log/N.json`` for version ``base.version + 1``, one action a line."""
    # In-commit timestamps require commitInfo as the first action (protocol, "In-Commit Timestamps").
    parameters = {"key": ",".join(rewrite.key), "plan": rewrite.plan}
    metrics = {**row_metrics(rewrite.counts), "numTargetFilesAdded": str(len(rewrite.added))}
    info = CommitInfo(commit_info(rewrite.operation, parameters, identity, metrics))
    return sign_content(info, tuple(_actions(base, rewrite, identity))).decode()


def _actions(base: Snapshot, rewrite: TableChange, identity: CommitIdentity) -> Iterator[Action]:
    is_new = base.version < 0
    if rewrite.schema is not None:
        needed = guarded_protocol(rewrite.schema, with_vectors=rewrite.with_vectors)
        protocol = needed if is_new else join_protocols(base.protocol, needed)
        if is_new or protocol != base.protocol:
            yield protocol
        stored = None if is_new else base.metadata
        yield table_metadata(
            rewrite.schema, rewrite.key, stored, identity.timestamp_ms, rewrite.notes, rewrite.properties
        )
    if not is_new:
        yield from _removes(base, rewrite, identity.timestamp_ms)
    yield from rewrite.marks
    yield from map(file_action, rewrite.added)


def file_action(file: DataFile) -> Add:
    """The add action of a data file."""
    return Add(
        path=quote(file.path),
        size=file.size,
        modification_time=file.modified_ms,
        stats=file.statistics,
        tags={SHA256_TAG: file.sha256},
    )


def _removes(base: Snapshot, rewrite: TableChange, timestamp_ms: int) -> Iterator[Remove]:
    files = base.files
    if not rewrite.replaces_files:
        files = files.filter(pc.is_in(files["path"], pa.array(rewrite.removed, pa.string())))
    for add in to_adds(files):
        yield removal(add, timestamp_ms)


def commit_info(
    operation: str,
    parameters: Mapping[str, str],
    identity: CommitIdentity,
    metrics: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The fields of the ``commitInfo`` of a commit; without ``metrics`` it moves no rows."""
    return {
        "timestamp": identity.timestamp_ms,
        "inCommitTimestamp": identity.timestamp_ms,
        "operation": operation,
        "operationParameters": dict(parameters),
        **({} if metrics is None else {"operationMetrics": dict(metrics)}),
        "isBlindAppend": False,
        "engineInfo": engine_info(),
        "txnId": identity.write_id,
        "writeId": identity.write_id,
        "jobId": identity.job_id,
    }


def row_metrics(counts: Counts) -> dict[str, str]:
    """Counts under the names that Delta's own ``MERGE`` gives them."""
    return {
        "numTargetRowsInserted": str(counts.inserted),
        "numTargetRowsUpdated": str(counts.updated),
        "numTargetRowsDeleted": str(counts.deleted),
        "numTargetRowsCopied": str(counts.unchanged),
    }
