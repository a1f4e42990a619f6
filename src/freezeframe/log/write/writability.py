"""Writer support: an error names each unsupported writer feature.

Some features matter only while a property or a column uses them; a table that merely lists one of
these is writable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from freezeframe.errors import UnsupportedTable
from freezeframe.log.actions.actions import Metadata, Protocol
from freezeframe.log.actions.protocol import WRITER_VERSION_MAX, mismatched_features
from freezeframe.log.schema.column_mapping import every_field

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
    """Refuse a table with unsupported writer features, except ``own_features`` of the caller.

    Raises:
        UnsupportedTable: ``DELTA_UNSUPPORTED_FEATURES_FOR_WRITE`` or ``DELTA_INVALID_PROTOCOL_VERSION``,
            naming each feature; ``DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH`` where a property uses an
            unlisted feature (behaviour 59).
    """
    if protocol.min_writer_version > WRITER_VERSION_MAX:
        raise _unsupported_error(
            table, [f"writer version {protocol.min_writer_version}"], "DELTA_INVALID_PROTOCOL_VERSION"
        )
    mismatched = mismatched_features(protocol, metadata)
    if mismatched:
        raise _unsupported_error(table, mismatched, "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH")
    listed = protocol.writer_features or ()
    unknown = {name for name in listed if name not in WRITER_FEATURES and name not in own_features}
    asked = unknown | _in_use(metadata.configuration, schema)
    if asked:
        raise _unsupported_error(table, sorted(asked), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE")


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
        cause="Writing without it would break what other writers and readers rely on.",
        remedy="Write it with an engine that knows this, or switch the feature off.",
        code=code,
        features=features,
    )
