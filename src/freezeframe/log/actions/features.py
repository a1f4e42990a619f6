"""Table features required by a schema and properties, and the lowest protocol that lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from freezeframe.log.actions.actions import Metadata, Protocol

# Property -> (values that enable the feature; none: all but "false", the feature's names).
_PROPERTIES: Mapping[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "delta.appendOnly": (frozenset({"true"}), ("appendOnly",)),
    "delta.checkpointPolicy": (frozenset({"v2"}), ("v2Checkpoint",)),
    "delta.columnMapping.mode": (frozenset({"name", "id"}), ("columnMapping",)),
    "delta.enableChangeDataFeed": (frozenset({"true"}), ("changeDataFeed",)),
    "delta.enableDeletionVectors": (frozenset({"true"}), ("deletionVectors",)),
    "delta.enableInCommitTimestamps": (frozenset({"true"}), ("inCommitTimestamp",)),
    "delta.enableRowTracking": (frozenset({"true"}), ("rowTracking",)),
    "delta.enableTypeWidening": (frozenset({"true"}), ("typeWidening", "typeWidening-preview")),
}
_TYPES: Mapping[str, tuple[str, ...]] = {
    "timestamp_ntz": ("timestampNtz",),
    "variant": ("variantType", "variantType-preview"),
}
OF_READERS = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "variantType"}
)
# Features implied by a writer version without feature lists.
_IMPLIED: Mapping[str, int] = {"appendOnly": 2, "changeDataFeed": 4, "columnMapping": 5}
FEATURES_WRITER_VERSION = 7


def used_features(metadata: Metadata) -> list[tuple[str, ...]]:
    """The features in use, each as the names under which a protocol may list it."""
    configuration = metadata.configuration
    found = [
        names for key, (values, names) in _PROPERTIES.items() if configuration.get(key, "").lower() in values
    ]
    types = set(_type_names(metadata.schema))
    return found + [names for kind, names in _TYPES.items() if kind in types]


def is_listed(protocol: Protocol, *names: str) -> bool:
    """Whether the protocol lists or implies a writer feature under one of these names."""
    if protocol.min_writer_version >= FEATURES_WRITER_VERSION:
        return not set(names).isdisjoint(protocol.writer_features or ())
    return any(_IMPLIED.get(name, FEATURES_WRITER_VERSION) <= protocol.min_writer_version for name in names)


def _type_names(kind: Any) -> Iterator[str]:
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, Mapping):
        for field in kind.get("fields") or ():
            yield from _type_names(field.get("type"))
        for key in ("elementType", "keyType", "valueType"):
            yield from _type_names(kind.get(key))
