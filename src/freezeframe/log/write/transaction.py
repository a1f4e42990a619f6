"""Commits actions that the caller has made as the next version of a table."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from freezeframe.clock import now_ms
from freezeframe.errors import CorruptLog, InvalidOption
from freezeframe.log.actions.actions import Action, Add, CommitInfo, Metadata, Protocol, Remove
from freezeframe.log.actions.protocol import in_commit_timestamps
from freezeframe.log.commits.commit import Committed, Outcome, write_commit
from freezeframe.log.commits.commit_digest import sign_content
from freezeframe.log.primitives.engine_info import engine_info
from freezeframe.log.primitives.events import report
from freezeframe.log.table.table_log import TableLog
from freezeframe.log.write.legality import require_legal
from freezeframe.log.write.post_commit import Upkeep, after_commit
from freezeframe.log.write.writability import require_writable


class Transaction:
    """A transaction on the version that is newest when it begins, for one ``commit``.

    Any version that another writer commits meanwhile is a conflict: begin anew on that version.
    ``own_features`` are writer features that the caller implements.
    """

    def __init__(
        self, log: TableLog, *, upkeep: Upkeep | None = None, own_features: Collection[str] = ()
    ) -> None:
        self.snapshot = log.update()
        self._log = log
        self._upkeep = upkeep
        self._own_features = own_features
        self._write_id = str(uuid.uuid4())
        self._sent: tuple[CommitInfo, tuple[Action, ...]] | None = None

    def commit(
        self,
        actions: Sequence[Action],
        operation: str = "WRITE",
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, int] | None = None,
    ) -> Outcome:
        """Commit the actions as the version after ``snapshot``; files that they name are stored already.

        ``Committed(version)``: durable. ``Conflict``: another writer's version is there, and nothing of
        this one. ``Unknown``: call ``resolve``, and keep every file.

        Raises:
            InvalidOption: the actions contradict each other, the table or its properties.
            UnsupportedTable: the table requires an unsupported writer feature.
            StorageUnavailable: the storage refused; nothing of this commit is visible.
        """
        listed = tuple(actions)
        with report(self._log.options.listener, "deltaLog.commit", self._log.path) as told:
            self._require_sound(listed)
            self._sent = self._stamp(listed, _description(operation, parameters, metrics))
            outcome = self._land(*self._sent)
            told |= {"version": outcome.version, "outcome": type(outcome).__name__, "operation": operation}
            return outcome

    def resolve(self) -> Outcome:
        """Look up the outcome of a commit that returned ``Unknown``; idempotent.

        Raises:
            InvalidOption: no commit was sent yet.
        """
        if self._sent is None:
            raise InvalidOption("This transaction has not sent a commit yet.", remedy="Call commit first.")
        return self._land(*self._sent)

    def _land(self, info: CommitInfo, actions: tuple[Action, ...]) -> Outcome:
        version = self.snapshot.version + 1
        outcome = write_commit(self._log.storage, self._log.table, version, sign_content(info, actions))
        if isinstance(outcome, Committed):
            after_commit(self._log, version, (info, *actions), self._upkeep)
        return outcome

    def _stamp(
        self, actions: tuple[Action, ...], description: dict[str, Any]
    ) -> tuple[CommitInfo, tuple[Action, ...]]:
        """The commitInfo and the actions, with in-commit timestamp and its enablement properties."""
        metadata = next((a for a in actions if isinstance(a, Metadata)), None)
        timestamp = now_ms()
        fields: dict[str, Any] = {"timestamp": timestamp}
        if in_commit_timestamps(metadata or self.snapshot.metadata) is not None:
            # Greater than in every earlier commit, regardless of the writers' clocks.
            timestamp = max(timestamp, self.snapshot.timestamp + 1)
            fields = {"inCommitTimestamp": timestamp, "timestamp": timestamp}
            if metadata is not None and self.snapshot.exists:
                actions = self._with_enablement(actions, metadata, timestamp)
        if self.snapshot.exists:
            fields["readVersion"] = self.snapshot.version
        adds = any(isinstance(action, Add) for action in actions)
        fields |= description | {
            "isBlindAppend": adds and not any(isinstance(action, Remove) for action in actions),
            "engineInfo": engine_info(),
            "txnId": self._write_id,
            "writeId": self._write_id,
        }
        return CommitInfo(fields), actions

    def _with_enablement(
        self, actions: tuple[Action, ...], metadata: Metadata, timestamp: int
    ) -> tuple[Action, ...]:
        if in_commit_timestamps(self.snapshot.metadata) is not None:
            return actions
        since = {
            "delta.inCommitTimestampEnablementVersion": str(self.snapshot.version + 1),
            "delta.inCommitTimestampEnablementTimestamp": str(timestamp),
        }
        dated = replace(metadata, configuration={**metadata.configuration, **since})
        return tuple(dated if action is metadata else action for action in actions)

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
