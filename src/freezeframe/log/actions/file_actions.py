"""The actions ``add``, ``remove`` and ``cdc``, and deletion vectors.

Bulk reads use Arrow columns (``action_columns``); these classes serve writers and access to
single actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from freezeframe.log.primitives.delta_fields import DeltaFields, optional
from freezeframe.log.primitives.json_fields import as_text, flag, require_text, text, texts, whole


def _require_size(value: Mapping[str, Any], name: str) -> int:
    return whole(value[name]) or 0


def _data_change(value: Mapping[str, Any], name: str) -> bool:
    return flag(value.get(name, True)) or False


@dataclass(frozen=True, slots=True)
class DeletionVector(DeltaFields):
    """Deleted rows of a data file: inline (``i``), or in a file (``u`` relative, ``p`` absolute)."""

    FIELDS: ClassVar = {
        "storage_type": ("storageType", require_text),
        "path_or_inline_dv": ("pathOrInlineDv", require_text),
        "offset": ("offset", optional(whole)),
        "size_in_bytes": ("sizeInBytes", _require_size),
        "cardinality": ("cardinality", _require_size),
    }

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """Identity of a vector: part of a file action's key in replay."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"


def _vector(value: Mapping[str, Any], name: str) -> DeletionVector | None:
    vector = value.get(name)
    return None if vector is None else DeletionVector.from_json(vector)


@dataclass(frozen=True, slots=True)
class Add(DeltaFields):
    """A data file becomes part of the table; ``path`` is a URI, relative to the table or absolute."""

    KEY: ClassVar[str] = "add"
    FIELDS: ClassVar = {
        "path": ("path", require_text),
        "partition_values": ("partitionValues", optional(texts, dict)),
        "size": ("size", optional(whole, int)),
        "modification_time": ("modificationTime", optional(whole, int)),
        "data_change": ("dataChange", _data_change),
        "stats": ("stats", optional(as_text)),
        "tags": ("tags", optional(texts)),
        "deletion_vector": ("deletionVector", _vector),
        "base_row_id": ("baseRowId", optional(whole)),
        "default_row_commit_version": ("defaultRowCommitVersion", optional(whole)),
        "clustering_provider": ("clusteringProvider", optional(text)),
    }

    path: str
    size: int
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    modification_time: int = 0
    data_change: bool = True
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None


@dataclass(frozen=True, slots=True)
class Cdc(DeltaFields):
    """Change data file: rows that a commit changed, with their ``_change_type``; not part of the table."""

    KEY: ClassVar[str] = "cdc"
    FIELDS: ClassVar = {
        "path": ("path", require_text),
        "partition_values": ("partitionValues", optional(texts, dict)),
        "size": ("size", _require_size),
        "data_change": ("dataChange", _data_change),
        "tags": ("tags", optional(texts)),
    }

    path: str
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    size: int = 0
    data_change: bool = False
    tags: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Remove(DeltaFields):
    """A data file leaves the table at ``deletion_timestamp`` (ms)."""

    KEY: ClassVar[str] = "remove"
    FIELDS: ClassVar = {
        "path": ("path", require_text),
        "deletion_timestamp": ("deletionTimestamp", optional(whole)),
        "data_change": ("dataChange", _data_change),
        "extended_file_metadata": ("extendedFileMetadata", optional(flag)),
        "partition_values": ("partitionValues", optional(texts)),
        "size": ("size", optional(whole)),
        "stats": ("stats", optional(as_text)),
        "tags": ("tags", optional(texts)),
        "deletion_vector": ("deletionVector", _vector),
        "base_row_id": ("baseRowId", optional(whole)),
        "default_row_commit_version": ("defaultRowCommitVersion", optional(whole)),
    }

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
