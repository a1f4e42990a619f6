"""Protocol of a table: its versions and its features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from freezeframe.errors import CorruptLog, UnsupportedTable
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.primitives.json_fields import whole

# Reader support: protocol versions and table features; an error names each unsupported one.
#
# A reader must refuse a table whose protocol requires an unknown feature (Delta protocol,
# "Table Features"); writer-only features never stop a reader
# (protocol, section "Table Features").

READER_VERSION_MAX = 3
WRITER_VERSION_MAX = 7
FEATURES_READER_VERSION = 3
COLUMN_MAPPING_READER_VERSION = 2

READER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)

# Property -> (values that enable the reader feature, names under which it may be listed).
_ACTIVATION: Mapping[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "delta.enableDeletionVectors": (frozenset({"true"}), ("deletionVectors",)),
    "delta.checkpointPolicy": (frozenset({"v2"}), ("v2Checkpoint",)),
    "delta.columnMapping.mode": (frozenset({"name", "id"}), ("columnMapping",)),
    "delta.enableTypeWidening": (frozenset({"true"}), ("typeWidening", "typeWidening-preview")),
}


def has_reader_feature(protocol: Protocol, *names: str) -> bool:
    """Return whether the protocol lists one of the features (or, for column mapping, implies it)."""
    if protocol.min_reader_version >= FEATURES_READER_VERSION:
        return not set(names).isdisjoint(protocol.reader_features or ())
    return "columnMapping" in names and protocol.min_reader_version == COLUMN_MAPPING_READER_VERSION


def require_readable(protocol: Protocol, table: str) -> None:
    """Refuse a table with an unsupported reader protocol."""
    listed = protocol.reader_features or ()
    newer = (
        protocol.min_reader_version > READER_VERSION_MAX or protocol.min_writer_version > WRITER_VERSION_MAX
    )
    if protocol.min_reader_version == FEATURES_READER_VERSION:
        malformed = protocol.reader_features is None or protocol.min_writer_version < WRITER_VERSION_MAX
    else:
        malformed = bool(listed)
    if newer or malformed:
        raise UnsupportedTable(
            f"The table {table} asks for reader version {protocol.min_reader_version} and writer "
            f"version {protocol.min_writer_version} "
            f"with the reader features {list(listed) or 'unlisted'}.",
            cause=f"freezeframe knows reader versions 1 to {READER_VERSION_MAX} and writer versions "
            f"1 to {WRITER_VERSION_MAX}; reader version 3 needs writer version 7 and a list of reader "
            "features, which no other version has.",
            remedy="Use a version of freezeframe that knows this protocol.",
            code="DELTA_INVALID_PROTOCOL_VERSION",
        )
    unknown = sorted(set(listed) - READER_FEATURES)
    if unknown:
        geospatial = "geospatial" in unknown
        raise UnsupportedTable(
            f"The table {table} needs reader features that are not known here: {', '.join(unknown)}.",
            cause="Reading without them would give wrong rows.",
            remedy="Drop the features from the table or read it with an engine that knows them.",
            code="DELTA_GEOSPATIAL_NOT_SUPPORTED" if geospatial else "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
            features=unknown,
        )


def mismatched_features(protocol: Protocol, metadata: Metadata) -> list[str]:
    """Reader features enabled by the table's properties but not listed in the protocol.

    A faulty writer made such a table. The protocol forbids readers to honour the property, and
    writers must refuse the table (Delta's ``assertTableFeaturesMatchMetadata``).
    """
    wrong: list[str] = []
    for key, (values, names) in _ACTIVATION.items():
        used = str(metadata.configuration.get(key, "")).lower() in values
        if used and not has_reader_feature(protocol, *names):
            wrong.append(names[0])
    return wrong


def in_commit_timestamps(metadata: Metadata) -> tuple[int, int] | None:
    """First (version, timestamp in ms) with in-commit timestamps; ``None`` where they are off.

    A table that enabled them in its first commit has no enablement properties: (0, 0).
    """
    configuration: Mapping[str, Any] = metadata.configuration
    if str(configuration.get("delta.enableInCommitTimestamps", "")).lower() != "true":
        return None
    keys = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")
    try:
        version, timestamp = (whole(configuration.get(key) or 0) or 0 for key in keys)
    except (ValueError, TypeError) as error:
        raise CorruptLog(
            "The table does not say since which version commits contain their time.",
            cause=f"{' or '.join(keys)} is not a whole number: {error}.",
            remedy="Correct the property with the writer that set it.",
        ) from error
    return version, timestamp


def nested_types(kind: Any) -> Iterator[str]:
    """Yield the names of the plain types in a schema or a type of it."""
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, Mapping):
        for field in kind.get("fields") or ():
            yield from nested_types(field.get("type"))
        for key in ("elementType", "keyType", "valueType"):
            yield from nested_types(kind.get(key))
