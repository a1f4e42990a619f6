"""The actions that speak of data files: a file is added, a file is removed, rows of a file are gone.

They are read in bulk as Arrow columns (``action_columns``); these values are for writers and
for looking at a single one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from freezeframe.log.primitives.json_fields import as_text, flag, needed_text, text, texts, whole


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Which rows of a data file are gone: inline (``i``), in a file (``u`` relative, ``p`` absolute)."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """What tells one vector from another: part of a file action's key in replay."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"

    def to_json(self) -> dict[str, Any]:
        """The descriptor's fields under Delta's names."""
        found = {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline_dv,
            "offset": self.offset,
            "sizeInBytes": self.size_in_bytes,
            "cardinality": self.cardinality,
        }
        return without_nulls(found)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DeletionVector:
        """The descriptor of Delta's fields."""
        return cls(
            storage_type=needed_text(value, "storageType"),
            path_or_inline_dv=needed_text(value, "pathOrInlineDv"),
            size_in_bytes=whole(value["sizeInBytes"]) or 0,
            cardinality=whole(value["cardinality"]) or 0,
            offset=whole(value.get("offset")),
        )


@dataclass(frozen=True, slots=True)
class Add:
    """A data file becomes part of the table; ``path`` is a URI, relative to the table or absolute."""

    KEY: ClassVar[str] = "add"

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

    def to_json(self) -> dict[str, Any]:
        """The action's fields under Delta's names."""
        found: dict[str, Any] = {
            "path": self.path,
            "partitionValues": dict(self.partition_values),
            "size": self.size,
            "modificationTime": self.modification_time,
            "dataChange": self.data_change,
            "stats": self.stats,
            "tags": None if self.tags is None else dict(self.tags),
            "deletionVector": None if self.deletion_vector is None else self.deletion_vector.to_json(),
            "baseRowId": self.base_row_id,
            "defaultRowCommitVersion": self.default_row_commit_version,
            "clusteringProvider": self.clustering_provider,
        }
        return without_nulls(found)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Add:
        """The action of Delta's fields."""
        return cls(
            path=needed_text(value, "path"),
            size=whole(value.get("size")) or 0,
            partition_values=texts(value.get("partitionValues")) or {},
            modification_time=whole(value.get("modificationTime")) or 0,
            data_change=flag(value.get("dataChange", True)) or False,
            stats=as_text(value.get("stats")),
            tags=texts(value.get("tags")),
            deletion_vector=_vector(value),
            base_row_id=whole(value.get("baseRowId")),
            default_row_commit_version=whole(value.get("defaultRowCommitVersion")),
            clustering_provider=text(value.get("clusteringProvider")),
        )


@dataclass(frozen=True, slots=True)
class Remove:
    """A data file is no part of the table any more, since ``deletion_timestamp`` (ms)."""

    KEY: ClassVar[str] = "remove"

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

    def to_json(self) -> dict[str, Any]:
        """The action's fields under Delta's names."""
        values = self.partition_values
        found: dict[str, Any] = {
            "path": self.path,
            "deletionTimestamp": self.deletion_timestamp,
            "dataChange": self.data_change,
            "extendedFileMetadata": self.extended_file_metadata,
            "partitionValues": None if values is None else dict(values),
            "size": self.size,
            "stats": self.stats,
            "tags": None if self.tags is None else dict(self.tags),
            "deletionVector": None if self.deletion_vector is None else self.deletion_vector.to_json(),
            "baseRowId": self.base_row_id,
            "defaultRowCommitVersion": self.default_row_commit_version,
        }
        return without_nulls(found)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Remove:
        """The action of Delta's fields."""
        return cls(
            path=needed_text(value, "path"),
            deletion_timestamp=whole(value.get("deletionTimestamp")),
            data_change=flag(value.get("dataChange", True)) or False,
            extended_file_metadata=flag(value.get("extendedFileMetadata")),
            partition_values=texts(value.get("partitionValues")),
            size=whole(value.get("size")),
            stats=as_text(value.get("stats")),
            tags=texts(value.get("tags")),
            deletion_vector=_vector(value),
            base_row_id=whole(value.get("baseRowId")),
            default_row_commit_version=whole(value.get("defaultRowCommitVersion")),
        )


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not null: Delta leaves the others out."""
    return {name: value for name, value in fields.items() if value is not None}


def _vector(value: Mapping[str, Any]) -> DeletionVector | None:
    vector = value.get("deletionVector")
    return None if vector is None else DeletionVector.from_json(vector)
