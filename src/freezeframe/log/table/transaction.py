"""Transactions on a table's log, and what makes a commit legal."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.clock import now_ms
from freezeframe.errors import CorruptLog, FreezeframeError, InvalidOption, UnsupportedTable
from freezeframe.log.format.action_columns import action_keys, file_keys
from freezeframe.log.format.actions import (
    Action,
    Add,
    Cdc,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
)
from freezeframe.log.format.protocol import (
    FEATURES_READER_VERSION,
    FEATURES_WRITER_VERSION,
    OF_READERS,
    WRITER_VERSION_MAX,
    has_reader_feature,
    in_commit_timestamps,
    is_listed,
    mismatched_features,
    used_features,
)
from freezeframe.log.format.schema import delta_to_arrow, every_field, fields_of, mapping_mode, physical_name
from freezeframe.log.primitives import json_fields
from freezeframe.log.primitives.options import engine_info, report
from freezeframe.log.primitives.paths import canonical_path
from freezeframe.log.segments.commit import Committed, Outcome, write_commit
from freezeframe.log.segments.commit_content import sign_content
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.table.table_log import TableLog
from freezeframe.log.table.upkeep import Upkeep, after_commit

# Writer support: an error names each unsupported writer feature.
#
# Some features matter only while a property or a column uses them; a table that merely lists one of
# these is writable.

APPEND_ONLY_KEY = "delta.appendOnly"

# Implemented by transactions, or without effect on their actions.
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
    unsupported = unknown | _in_use(metadata.configuration, schema)
    if unsupported:
        raise _unsupported_error(table, sorted(unsupported), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE")


def _in_use(configuration: Mapping[str, str], schema: Mapping[str, Any]) -> set[str]:
    used = {
        feature
        for key, feature in _REFUSED_PROPERTIES.items()
        if str(configuration.get(key, "")).lower() == "true"
    }
    if any(key.startswith(_CONSTRAINT_PREFIX) for key in configuration):
        used.add("checkConstraints")
    for field in every_field(schema):
        keys = field.get("metadata") or {}
        used |= {feature for key, feature in _REFUSED_FIELD_KEYS.items() if key in keys}
    return used


def _unsupported_error(table: str, features: list[str], code: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"The table {table} cannot be written: it asks for {', '.join(features)}.",
        cause="Writing without these features would damage the table for other programs.",
        remedy="Write it with an engine that supports them, or turn the features off.",
        code=code,
        features=features,
    )


# Validation of actions before a commit, by the protocol's sections.
#
# Pure, except that the snapshot's state is loaded where actions name live files.


@dataclass(frozen=True, slots=True)
class _Fault:
    """A violation, and the section of Delta's protocol that it violates."""

    section: str
    reason: str


def require_legal(snapshot: Snapshot, actions: Sequence[Action]) -> None:
    """Refuse actions that violate the protocol as the version after ``snapshot``."""
    fault = next(_faults(snapshot, actions), None)
    if fault is not None:
        raise InvalidOption(
            f"This cannot be committed to {snapshot.path}.",
            cause=f"{fault.reason} (Delta protocol, section {fault.section!r})",
            remedy="Correct the actions; nothing was written.",
            section=fault.section,
        )


def _faults(snapshot: Snapshot, actions: Sequence[Action]) -> Iterator[_Fault]:
    yield from _repeats(actions)
    yield from _names(actions)
    if snapshot.version < 0 and not {Protocol, Metadata} <= {type(action) for action in actions}:
        yield _Fault("Actions", "The first version of a table needs a protocol and a metadata action.")
        return
    protocol = next((a for a in actions if isinstance(a, Protocol)), snapshot.protocol)
    metadata = next((a for a in actions if isinstance(a, Metadata)), snapshot.metadata)
    if any(isinstance(action, Protocol | Metadata) for action in actions):
        yield from _definition(protocol, metadata)
    yield from _find_unlisted_features(protocol, actions)
    yield from _partition_values(protocol, metadata, actions)
    yield from _files(snapshot, metadata, actions)


def _repeats(actions: Sequence[Action]) -> Iterator[_Fault]:
    for kind, section in ((Protocol, "Protocol Evolution"), (Metadata, "Change Metadata")):
        if sum(isinstance(action, kind) for action in actions) > 1:
            yield _Fault(section, f"There are several {kind.KEY} actions.")
    if any(isinstance(action, CommitInfo) for action in actions):
        yield _Fault("Commit Provenance Information", "The commitInfo action is the transaction's own.")
    for kind_of_file in (Add, Remove):
        paths = [canonical_path(item.path) for item in actions if isinstance(item, kind_of_file)]
        if len(set(paths)) != len(paths):
            yield _Fault("Action Reconciliation", f"A file has several {kind_of_file.KEY} actions.")
    applications = [action.app_id for action in actions if isinstance(action, Txn)]
    if len(set(applications)) != len(applications):
        yield _Fault("Transaction Identifiers", "An application has several txn actions.")
    domains = [action.domain for action in actions if isinstance(action, DomainMetadata)]
    if len(set(domains)) != len(domains):
        yield _Fault("Domain Metadata", "A domain has several domainMetadata actions.")


def _names(actions: Sequence[Action]) -> Iterator[_Fault]:
    for action in actions:
        if isinstance(action, Add | Remove | Cdc):
            path = unquote(action.path)
            if not path.strip("/") or ".." in path.split("/"):
                yield _Fault("Add File and Remove File", f"The path {action.path!r} leads out of the table.")


def _definition(protocol: Protocol, metadata: Metadata) -> Iterator[_Fault]:
    try:
        schema = metadata.schema
        delta_to_arrow(schema)
    except FreezeframeError as error:
        yield _Fault("Schema Serialization Format", f"{error.problem} {error.cause}")
        return
    names = [field["name"] for field in fields_of(schema)]
    if len({name.lower() for name in names}) != len(names):
        yield _Fault("Schema Serialization Format", "Two columns have names that differ in case only.")
    missing = [name for name in metadata.partition_columns if name not in names]
    if missing:
        yield _Fault("Change Metadata", f"The partition column {missing[0]!r} is not in the schema.")
    yield from _levels(protocol)
    for used in used_features(metadata):
        of_reader = used[0] in OF_READERS
        if not is_listed(protocol, *used) or (of_reader and not has_reader_feature(protocol, *used)):
            yield _Fault("Table Features", f"The feature {used[0]} is in use, and the protocol lacks it.")


def _levels(protocol: Protocol) -> Iterator[_Fault]:
    reader, writer = protocol.reader_features, protocol.writer_features
    by_reader, by_writer = (
        protocol.min_reader_version >= FEATURES_READER_VERSION,
        protocol.min_writer_version >= FEATURES_WRITER_VERSION,
    )
    if (
        (reader is not None) != by_reader
        or (writer is not None) != by_writer
        or (by_reader and not by_writer)
    ):
        yield _Fault(
            "Protocol Evolution",
            f"The versions ({protocol.min_reader_version}, {protocol.min_writer_version}) do not go with the "
            "feature lists: readerFeatures belong to (3, 7), writerFeatures to writer version 7.",
        )
    lacking = sorted(set(reader or ()) - set(writer or ()))
    if lacking:
        yield _Fault("Table Features", f"The reader feature {lacking[0]} is not among the writer features.")


def _find_unlisted_features(protocol: Protocol, actions: Sequence[Action]) -> Iterator[_Fault]:
    vectors = [a for a in actions if isinstance(a, Add) and a.deletion_vector is not None]
    if vectors and not has_reader_feature(protocol, "deletionVectors"):
        yield _Fault(
            "Deletion Vectors", f"{vectors[0].path!r} has one, and the protocol lacks deletionVectors."
        )
    for add in vectors:
        if not isinstance(json_fields.statistics(add.stats).get("numRecords"), int):
            yield _Fault("Deletion Vectors", f"The statistics of {add.path!r} lack numRecords.")
    if any(isinstance(a, DomainMetadata) for a in actions) and not is_listed(protocol, "domainMetadata"):
        yield _Fault("Domain Metadata", "The protocol lacks the feature domainMetadata.")
    if any(isinstance(a, Cdc) for a in actions) and not is_listed(protocol, "changeDataFeed"):
        yield _Fault("Add CDC File", "The protocol lacks the feature changeDataFeed.")


def _partition_values(protocol: Protocol, metadata: Metadata, actions: Sequence[Action]) -> Iterator[_Fault]:
    mode = mapping_mode(protocol, metadata)
    fields: dict[str, Any] = {field["name"]: field for field in fields_of(metadata.schema)}
    listed = [name for name in metadata.partition_columns if name in fields]
    wanted = {physical_name(fields[name], mode) for name in listed}
    for add in actions:
        if isinstance(add, Add | Cdc) and set(add.partition_values) != wanted:
            yield _Fault(
                "Add File and Remove File",
                f"{add.path!r} has values of {sorted(add.partition_values)}, and the partition columns are "
                f"{sorted(wanted)}.",
            )


def _files(snapshot: Snapshot, metadata: Metadata, actions: Sequence[Action]) -> Iterator[_Fault]:
    adds = [action for action in actions if isinstance(action, Add)]
    removes = [action for action in actions if isinstance(action, Remove)]
    is_append_only = metadata.configuration.get(APPEND_ONLY_KEY, "").lower() == "true"
    if is_append_only and any(remove.data_change for remove in removes):
        yield _Fault("Append-only Tables", "The table is append-only (delta.appendOnly).")
    if not snapshot.exists or not (adds or removes):
        return
    removed = action_keys(removes)
    live = set(file_keys(snapshot.state.files.of_keys(removed)).to_pylist())
    for remove, key in zip(removes, removed.to_pylist(), strict=True):
        if key not in live:
            yield _Fault(
                "Action Reconciliation",
                f"The file {remove.path} is to be removed and is not in version {snapshot.version}.",
            )
    paths = pa.array([canonical_path(add.path) for add in adds], pa.string())
    there = snapshot.file_list.filter(pc.is_in(snapshot.file_list["path"], value_set=paths))
    ended = {*removed.to_pylist(), *action_keys(adds).to_pylist()}
    for path, key in zip(there["path"].to_pylist(), file_keys(there).to_pylist(), strict=True):
        if key not in ended:
            yield _Fault(
                "Deletion Vectors",
                f"{path!r} is live under another deletion vector, which is to be removed in the same commit.",
            )


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
        with report(self._log.options.listener, "deltaLog.commit", self._log.path) as event:
            self._require_sound(listed)
            self._sent = self._stamp(listed, _description(operation, parameters, metrics))
            outcome = self._land(*self._sent)
            event |= {
                "version": outcome.version,
                "outcome": type(outcome).__name__,
                "operation": operation,
            }
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
        """Return the commitInfo and the actions, with in-commit timestamp and its enablement properties."""
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
