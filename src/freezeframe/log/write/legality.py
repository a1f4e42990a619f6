"""Validation of actions before a commit, by the protocol's sections.

Pure, except that the snapshot's state is loaded where actions name live files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import FreezeframeError, InvalidOption
from freezeframe.log.actions.action_columns import action_keys, file_keys
from freezeframe.log.actions.actions import (
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
from freezeframe.log.actions.features import (
    FEATURES_WRITER_VERSION,
    OF_READERS,
    is_listed,
    used_features,
)
from freezeframe.log.actions.protocol import FEATURES_READER_VERSION, has_reader_feature
from freezeframe.log.primitives import json_fields
from freezeframe.log.primitives.canonical_paths import canonical_path
from freezeframe.log.schema.column_mapping import mapping_mode, physical_name
from freezeframe.log.schema.schema import delta_to_arrow, fields_of
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.write.writability import APPEND_ONLY_KEY


@dataclass(frozen=True, slots=True)
class _Fault:
    """A violation, and the section of Delta's protocol that it violates."""

    section: str
    reason: str


def require_legal(snapshot: Snapshot, actions: Sequence[Action]) -> None:
    """Refuse actions that violate the protocol as the version after ``snapshot``.

    Raises:
        InvalidOption: the first violation, with its section of the protocol; nothing was written.
        CorruptLog: the snapshot's state cannot be read.
    """
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
        paths = [canonical_path(one.path) for one in actions if isinstance(one, kind_of_file)]
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
