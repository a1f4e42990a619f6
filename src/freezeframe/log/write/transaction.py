"""Optimistic transaction on one Delta table.

Optimistic concurrency control takes no locks. A transaction whose version is taken checks the
winning commits. Where it would have read and written the same after them, it is rebased onto them;
otherwise the outcome is a ``Conflict`` with Delta's error class. A lost race is a return value, not
an exception.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from freezeframe.clock import now_ms
from freezeframe.errors import ConflictError, CorruptLog, InvalidOption, OutcomeUnknown
from freezeframe.log.actions.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    parse_line,
)
from freezeframe.log.actions.features import is_listed
from freezeframe.log.actions.protocol import in_commit_timestamps
from freezeframe.log.commits.commit import Committed, Conflict, Outcome, Unknown, commit_name, write_commit
from freezeframe.log.commits.commit_digest import sign_content
from freezeframe.log.primitives.canonical_paths import canonical_path
from freezeframe.log.primitives.engine_info import engine_info
from freezeframe.log.primitives.events import report
from freezeframe.log.scan.rows import files_matching
from freezeframe.log.schema.column_mapping import mapping_mode
from freezeframe.log.schema.partition_values import PartitionColumns
from freezeframe.log.schema.schema import fields_of
from freezeframe.log.statistics.data_skipping import Predicate, as_expression
from freezeframe.log.table.table_log import TableLog
from freezeframe.log.write import row_tracking
from freezeframe.log.write.conflicts import CommitAttempt, Isolation, Reads, clash
from freezeframe.log.write.legality import require_legal
from freezeframe.log.write.post_commit import Upkeep, after_commit
from freezeframe.log.write.writability import require_writable

TRIES_MAX = 20

_Stamped = tuple[CommitInfo, tuple[Action, ...]]

_EMPTY_SCHEMA: dict[str, Any] = {"type": "struct", "fields": []}


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """The application's progress (``Txn``) is already in the table at ``version``; nothing was written."""

    version: int


class Transaction:
    """A transaction on the version that is newest when it begins.

    ``own_features`` are writer features that the caller implements. Each instance allows one
    ``commit``.
    """

    def __init__(
        self,
        log: TableLog,
        *,
        isolation: Isolation = Isolation.WRITE_SERIALIZABLE,
        tries_max: int = TRIES_MAX,
        upkeep: Upkeep | None = None,
        own_features: Collection[str] = (),
    ) -> None:
        self.snapshot = log.update()
        self._log = log
        self._isolation = isolation
        self._tries_max = tries_max
        self._upkeep = upkeep
        self._own_features = own_features
        self._reads = Reads()
        self._write_id = str(uuid.uuid4())
        self._staged: list[Action] = []
        self._sent: tuple[int, _Stamped] | None = None

    def add(self, *files: Add) -> Transaction:
        """Stage stored data files; the commit makes them live."""
        self._staged += files
        return self

    def remove(self, *files: Remove) -> Transaction:
        """Stage the removal of live files; ``row_deletion.removal`` creates the action from an ``Add``."""
        self._staged += files
        return self

    def set_metadata(self, metadata: Metadata) -> Transaction:
        """Stage the table's new schema, partition columns and properties."""
        self._staged.append(metadata)
        return self

    def set_protocol(self, protocol: Protocol) -> Transaction:
        """Stage the protocol (required reader and writer features) from this commit on."""
        self._staged.append(protocol)
        return self

    def read_whole_table(self) -> pa.Table:
        """All live files; any concurrent change of rows conflicts."""
        self._reads = replace(self._reads, whole_table=True)
        return self.snapshot.files

    def files_matching(self, where: Predicate) -> pa.Table:
        """The live files that may hold rows matching ``where``; concurrent changes of such rows conflict.

        Raises:
            MissingColumn: the predicate names a column that the table does not have.
            InvalidOption: not a valid predicate for this table.
        """
        found = files_matching(self.snapshot, where)
        paths = {canonical_path(path) for path in found["path"].to_pylist()}
        self._reads = replace(
            self._reads,
            files=self._reads.files | paths,
            predicates=(*self._reads.predicates, as_expression(where)),
        )
        return found

    def transaction_version(self, app_id: str) -> int | None:
        """The last version of an application in this table; concurrent progress of it conflicts."""
        self._reads = replace(self._reads, applications=self._reads.applications | {app_id})
        found = self.snapshot.transactions.get(app_id)
        return None if found is None else found.version

    def commit(
        self,
        actions: Sequence[Action] = (),
        operation: str = "WRITE",
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, int] | None = None,
    ) -> Outcome | AlreadyDone:
        """Commit the staged actions and ``actions`` as the next version, rebased onto compatible winners.

        ``Committed(version)``: durable. ``Conflict``: nothing is visible and ``code`` has the reason
        (``DELTA_CONCURRENT_APPEND``, ...; ``CONFLICT`` after the last attempt). ``AlreadyDone``: a
        ``Txn`` among the actions is in the table already. ``Unknown``: call ``resolve``, and retain
        every file.

        Raises:
            InvalidOption: the actions contradict each other, the table or its properties.
            UnsupportedTable: the table requires an unsupported writer feature.
            StorageUnavailable: the storage refused; nothing of this commit is visible.
        """
        with report(self._log.options.listener, "deltaLog.commit", self._log.path) as metrics_told:
            outcome = self._commit((*self._staged, *actions), _description(operation, parameters, metrics))
            told_version = {"version": outcome.version, "outcome": type(outcome).__name__}
            metrics_told |= {**told_version, "operation": operation}
            return outcome

    def _commit(self, listed: tuple[Action, ...], description: dict[str, Any]) -> Outcome | AlreadyDone:
        self._require_sound(listed)
        done = self._is_done(listed, self.snapshot.transactions)
        if done:
            return AlreadyDone(self.snapshot.version)
        attempt = self._attempt(listed)
        version, floor = self.snapshot.version + 1, self.snapshot.timestamp
        refused = Conflict(version, b"", "CONFLICT", "Others were quicker too many times.")
        domains = dict(self.snapshot.domains)
        for _ in range(self._tries_max):
            stamped = self._stamp(self._with_row_ids(listed, domains, version), version, floor, description)
            outcome = self._land(version, stamped)
            if not isinstance(outcome, Conflict):
                return outcome
            for taken, content in self._winners(version):
                winner = tuple(_actions(content))
                if self._is_done(listed, {a.app_id: a for a in winner if isinstance(a, Txn)}):
                    return AlreadyDone(taken)
                found = clash(attempt, winner)
                if found is not None:
                    return Conflict(taken, content, found.code, found.explanation)
                refused = replace(refused, version=taken, winner=content)
                floor = max(floor, _time(winner))
                domains |= {one.domain: one for one in winner if isinstance(one, DomainMetadata)}
                version = taken + 1
        return refused

    def resolve(self) -> Outcome:
        """Look up the outcome of a commit that returned ``Unknown``; idempotent.

        Raises:
            InvalidOption: no commit was sent yet.
        """
        if self._sent is None:
            raise InvalidOption("This transaction has not sent a commit yet.", remedy="Call commit first.")
        return self._land(*self._sent)

    def _land(self, version: int, stamped: _Stamped) -> Outcome:
        self._sent = (version, stamped)
        info, actions = stamped
        outcome = write_commit(self._log.storage, self._log.table, version, sign_content(info, actions))
        if isinstance(outcome, Committed):
            after_commit(self._log, version, (info, *actions), self._upkeep)
        return outcome

    def _attempt(self, actions: tuple[Action, ...]) -> CommitAttempt:
        snapshot = self.snapshot
        schema = snapshot.schema if snapshot.exists else _EMPTY_SCHEMA
        mode = mapping_mode(snapshot.protocol, snapshot.metadata)
        names = snapshot.metadata.partition_columns
        partition = [field for field in fields_of(schema) if field["name"] in names]
        return CommitAttempt(
            schema,
            PartitionColumns.of(partition, mode, snapshot.time_zone),
            mode,
            self._reads,
            actions,
            self._isolation,
        )

    def _winners(self, version: int) -> Iterator[tuple[int, bytes]]:
        """The existing commits from ``version`` on."""
        while True:
            try:
                content = self._log.storage.read(commit_name(self._log.table, version))
            except FileNotFoundError:
                return
            yield version, content
            version += 1

    def _is_done(self, actions: Sequence[Action], known: Mapping[str, Txn]) -> bool:
        ours = [action for action in actions if isinstance(action, Txn)]
        return any(one.app_id in known and known[one.app_id].version >= one.version for one in ours)

    def _stamp(
        self, actions: tuple[Action, ...], version: int, floor: int, description: dict[str, Any]
    ) -> _Stamped:
        """The commitInfo and the actions, with in-commit timestamp and its enablement properties."""
        metadata = next((a for a in actions if isinstance(a, Metadata)), None)
        effective = metadata or self.snapshot.metadata
        timestamp = now_ms()
        fields: dict[str, Any] = {"timestamp": timestamp}
        if in_commit_timestamps(effective) is not None:
            # Greater than in every earlier commit, regardless of the writers' clocks.
            timestamp = max(timestamp, floor + 1)
            fields = {"inCommitTimestamp": timestamp, "timestamp": timestamp}
            if metadata is not None and self.snapshot.version >= 0:
                actions = self._with_enablement(actions, metadata, version, timestamp)
        is_blind = not self._reads.any_rows and all(not isinstance(a, Remove) for a in actions)
        fields |= description | {
            "readVersion": self.snapshot.version,
            "isolationLevel": self._isolation.value,
            "isBlindAppend": is_blind and any(isinstance(action, Add) for action in actions),
            "engineInfo": engine_info(),
            "txnId": self._write_id,
            "writeId": self._write_id,
        }
        if self.snapshot.version < 0:
            del fields["readVersion"]
        return CommitInfo(fields), actions

    def _with_enablement(
        self, actions: tuple[Action, ...], metadata: Metadata, version: int, timestamp: int
    ) -> tuple[Action, ...]:
        if in_commit_timestamps(self.snapshot.metadata) is not None:
            return actions
        since = {
            "delta.inCommitTimestampEnablementVersion": str(version),
            "delta.inCommitTimestampEnablementTimestamp": str(timestamp),
        }
        dated = replace(metadata, configuration={**metadata.configuration, **since})
        return tuple(dated if action is metadata else action for action in actions)

    def _with_row_ids(
        self, actions: tuple[Action, ...], domains: Mapping[str, DomainMetadata], version: int
    ) -> tuple[Action, ...]:
        protocol = next((a for a in actions if isinstance(a, Protocol)), self.snapshot.protocol)
        is_tracked = is_listed(protocol, row_tracking.FEATURE)
        return row_tracking.assign_row_ids(actions, domains, version) if is_tracked else actions

    def _require_sound(self, actions: tuple[Action, ...]) -> None:
        protocol = next((a for a in actions if isinstance(a, Protocol)), self.snapshot.protocol)
        metadata = next((a for a in actions if isinstance(a, Metadata)), self.snapshot.metadata)
        try:
            schema = metadata.schema
        except CorruptLog as error:
            raise InvalidOption(
                f"This cannot be committed to {self._log.path}.",
                cause=error.cause,
                remedy="Correct the schema; nothing was written.",
            ) from error
        require_writable(protocol, metadata, schema, self._log.path, self._own_features)
        require_legal(self.snapshot, actions)


def require_committed(outcome: Outcome | AlreadyDone) -> int:
    """The version of a successful outcome; raises for every other outcome.

    Raises:
        ConflictError: another writer was first; nothing of the commit is visible.
        OutcomeUnknown: the commit may exist; its files must be retained.
    """
    match outcome:
        case Committed(version) | AlreadyDone(version):
            return version
        case Conflict(version, _, code, reason):
            raise ConflictError(
                f"Another writer committed version {version} first.",
                cause=reason,
                remedy="Read the table's current version, and decide again.",
                code=code,
                version=version,
            )
        case Unknown(version, reason):
            raise OutcomeUnknown(
                f"It is not known whether version {version} was committed.",
                cause=reason,
                remedy="Read the table before trying again; delete no file.",
                version=version,
            )


def _description(
    operation: str, parameters: Mapping[str, Any] | None, metrics: Mapping[str, int] | None
) -> dict[str, Any]:
    # Delta stores each parameter as JSON text and each metric as text.
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in (parameters or {}).items()
    }
    found: dict[str, Any] = {"operation": operation, "operationParameters": texts}
    if metrics:
        found["operationMetrics"] = {name: str(value) for name, value in metrics.items()}
    return found


def _actions(content: bytes) -> Iterator[Action]:
    for line in content.splitlines():
        action = parse_line(line) if line.strip() else None
        if action is not None:
            yield action


def _time(winner: Sequence[Action]) -> int:
    info = next((action for action in winner if isinstance(action, CommitInfo)), None)
    return 0 if info is None else info.in_commit_timestamp or 0


__all__ = [
    "AlreadyDone",
    "Committed",
    "Conflict",
    "Isolation",
    "Transaction",
    "Unknown",
    "require_committed",
]
