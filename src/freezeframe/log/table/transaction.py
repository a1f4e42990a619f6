"""Commits of given actions to a table's log, and the tables that a writer must refuse."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from freezeframe.clock import now_ms
from freezeframe.errors import ConflictError, CorruptLog, InvalidOption, OutcomeUnknown, UnsupportedTable
from freezeframe.log.format.actions import Action, Add, CommitInfo, Metadata, Protocol, Remove
from freezeframe.log.format.protocol import WRITER_VERSION_MAX, in_commit_timestamps, mismatched_features
from freezeframe.log.format.schema import every_field
from freezeframe.log.primitives.options import engine_info, report
from freezeframe.log.segments.commit import Committed, Conflict, write_commit
from freezeframe.log.segments.commit_content import read_content, sign_content
from freezeframe.log.table.table_log import TableLog
from freezeframe.log.table.upkeep import Upkeep, after_commit

# Writer support: an error names each unsupported writer feature.
#
# Some features matter only while a property or a column uses them; a table that merely lists one of
# these is writable.

# Kept by whoever makes the actions, or without effect on them.
WRITER_FEATURES = frozenset(
    {
        "appendOnly",
        "checkConstraints",
        "changeDataFeed",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
# In use, these require unsupported work on rows or files.
_REFUSED_PROPERTIES: Mapping[str, str] = {
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableRowTracking": "rowTracking",
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
}
_REFUSED_FIELD_KEYS: Mapping[str, str] = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
}
_CONSTRAINT_PREFIX = "delta.constraints."


def require_writable(
    protocol: Protocol,
    metadata: Metadata,
    schema: Mapping[str, Any],
    table: str,
    own_features: Collection[str] = (),
) -> None:
    """Refuse a table with unsupported writer features, except ``own_features`` of the caller."""
    if protocol.min_writer_version > WRITER_VERSION_MAX:
        raise _unsupported_error(
            table, [f"writer version {protocol.min_writer_version}"], "DELTA_INVALID_PROTOCOL_VERSION"
        )
    mismatched = mismatched_features(protocol, metadata)
    if mismatched:
        raise _unsupported_error(table, mismatched, "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH")
    listed = protocol.writer_features or ()
    unknown = {name for name in listed if name not in WRITER_FEATURES and name not in own_features}
    used = {
        feature
        for key, feature in _REFUSED_PROPERTIES.items()
        if str(metadata.configuration.get(key, "")).lower() == "true"
    }
    if any(key.startswith(_CONSTRAINT_PREFIX) for key in metadata.configuration):
        used.add("checkConstraints")
    for field in every_field(schema):
        keys = field.get("metadata") or {}
        used |= {feature for key, feature in _REFUSED_FIELD_KEYS.items() if key in keys}
    unsupported = unknown | used
    if unsupported:
        raise _unsupported_error(table, sorted(unsupported), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE")


def _unsupported_error(table: str, features: list[str], code: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"The table {table} cannot be written: it asks for {', '.join(features)}.",
        cause="Writing without these features would damage the table for other programs.",
        remedy="Write it with an engine that supports them, or turn the features off.",
        code=code,
        features=features,
    )


class Transaction:
    """A commit of given actions as the version after the one that is newest when it begins.

    The actions are the caller's, who keeps the protocol: of what they mean only that a table results which
    can be written is checked. ``own_features`` are writer features that the caller implements.
    """

    def __init__(
        self, log: TableLog, *, upkeep: Upkeep | None = None, own_features: Collection[str] = ()
    ) -> None:
        self.snapshot = log.update()
        self._log = log
        self._upkeep = upkeep
        self._own_features = own_features
        self._sent: tuple[CommitInfo, list[Action]] | None = None

    def commit(
        self,
        actions: Sequence[Action],
        operation: str = "WRITE",
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, int] | None = None,
    ) -> int:
        """Commit the actions durably, and return their version; files that they name are stored already.

        Raises:
            ConflictError: another writer has the version, and nothing of this commit is there: begin anew.
            OutcomeUnknown: the storage did not say; call ``resolve``, and keep every file.
            InvalidOption: no reader could read the commit.
            UnsupportedTable: the table requires an unsupported writer feature.
            StorageUnavailable: the storage refused; nothing of this commit is visible.
        """
        # Delta stores each parameter as JSON text and each metric as text.
        texts = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in (parameters or {}).items()
        }
        description: dict[str, Any] = {"operation": operation, "operationParameters": texts}
        if metrics:
            description["operationMetrics"] = {name: str(value) for name, value in metrics.items()}
        with report(self._log.options.listener, "deltaLog.commit", self._log.path) as event:
            event |= {"version": self.snapshot.version + 1, "operation": operation}
            self._require_readable(actions)
            self._sent = self._stamped(actions, description)
            return self.resolve()

    def resolve(self) -> int:
        """Send the same commit once more, which is there once however often it is sent; see ``commit``."""
        if self._sent is None:
            raise InvalidOption("This transaction has not sent a commit yet.", remedy="Call commit first.")
        version, path = self.snapshot.version + 1, self._log.path
        outcome = write_commit(self._log.storage, self._log.table, version, sign_content(*self._sent))
        if isinstance(outcome, Committed):
            after_commit(self._log, version, (self._sent[0], *self._sent[1]), self._upkeep)
            return version
        if isinstance(outcome, Conflict):
            raise ConflictError(
                f"Version {version} of {path} is another writer's.",
                cause="It was committed since this transaction began; nothing of this one is there.",
                remedy="Begin another transaction, with actions for the newest version.",
                version=version,
            )
        raise OutcomeUnknown(
            f"It is not known whether version {version} of {path} was committed.",
            cause=outcome.reason,
            remedy="Call resolve() of the transaction, and keep the files that its actions name.",
            version=version,
        )

    def _stamped(
        self, actions: Sequence[Action], description: dict[str, Any]
    ) -> tuple[CommitInfo, list[Action]]:
        """Return the commitInfo and the actions; in-commit timestamps that begin here are dated."""
        was_timed = in_commit_timestamps(self.snapshot.metadata) is not None
        metadata = next((a for a in actions if isinstance(a, Metadata)), self.snapshot.metadata)
        timestamp = now_ms()
        fields: dict[str, Any] = {"timestamp": timestamp}
        if in_commit_timestamps(metadata) is not None:
            # Greater than in every earlier commit, regardless of the writers' clocks.
            timestamp = max(timestamp, self.snapshot.timestamp + 1)
            fields = {"inCommitTimestamp": timestamp, "timestamp": timestamp}
            if self.snapshot.exists and not was_timed:
                since = {
                    "delta.inCommitTimestampEnablementVersion": str(self.snapshot.version + 1),
                    "delta.inCommitTimestampEnablementTimestamp": str(timestamp),
                }
                dated = replace(metadata, configuration={**metadata.configuration, **since})
                actions = [dated if action is metadata else action for action in actions]
        if self.snapshot.exists:
            fields["readVersion"] = self.snapshot.version
        kinds, write_id = {type(action) for action in actions}, str(uuid.uuid4())
        fields |= description | {
            "isBlindAppend": Add in kinds and Remove not in kinds,
            "engineInfo": engine_info(),
            "txnId": write_id,
            "writeId": write_id,
        }
        return CommitInfo(fields), list(actions)

    def _require_readable(self, actions: Sequence[Action]) -> None:
        """Refuse actions after which nobody could read the table, and a table that is not to be written."""
        protocol = next((a for a in actions if isinstance(a, Protocol)), self.snapshot.protocol)
        metadata = next((a for a in actions if isinstance(a, Metadata)), self.snapshot.metadata)
        try:
            schema = metadata.schema
            content = sign_content(CommitInfo({}), actions)
            kinds = {type(action) for action in read_content(self._log.path, content).actions}
        except CorruptLog as error:
            raise InvalidOption(
                f"This cannot be committed to {self._log.path}.",
                cause=error.cause or error.problem,
                remedy="Correct the actions; nothing was written.",
            ) from error
        if not self.snapshot.exists and not {Protocol, Metadata} <= kinds:
            raise InvalidOption(
                f"This cannot be the first version of {self._log.path}.",
                cause="The first version of a table needs a protocol and a metadata action.",
                remedy="Add them; nothing was written.",
            )
        require_writable(protocol, metadata, schema, self._log.path, self._own_features)
