"""Actions of a commit, as frozen values that are checked when they are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from freezeframe.errors import CorruptLog
from freezeframe.log.primitives.json_fields import (
    DeltaFields,
    as_text,
    flag,
    names,
    optional,
    parse_encodable_json,
    parse_json,
    require_text,
    settings,
    text,
    texts,
    whole,
)

# The actions ``add``, ``remove`` and ``cdc``, and deletion vectors.
#
# Bulk reads use Arrow columns (``action_columns``); these classes serve writers and access to
# single actions.


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


# The actions of a commit as frozen values, and their JSON lines.
#
# Field names are Delta's in snake case; ``to_json_line`` writes Delta's own spelling and
# ``parse_line`` reads it. Unknown actions and unknown fields are ignored, as the protocol requires
# ("Requirements for Readers"); a line that is not a JSON object is reported as damage.


def _level(value: Mapping[str, Any], name: str) -> int:
    return whole(value.get(name)) or 1


def _features(value: Any) -> tuple[str, ...] | None:
    found = names(value)
    return None if found is None else tuple(sorted(set(found)))


def _require_integer(value: Mapping[str, Any], name: str) -> int:
    found = whole(value[name])
    if found is None:
        raise KeyError(name)
    return found


@dataclass(frozen=True, slots=True)
class Format(DeltaFields):
    """Encoding of data files: always Parquet."""

    FIELDS: ClassVar = {
        "provider": ("provider", lambda value, name: text(value.get(name)) or "parquet"),
        "options": ("options", optional(texts, dict)),
    }

    provider: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Protocol(DeltaFields):
    """Required reader and writer versions and features; feature lists are sorted and unique."""

    KEY: ClassVar[str] = "protocol"
    FIELDS: ClassVar = {
        "min_reader_version": ("minReaderVersion", _level),
        "min_writer_version": ("minWriterVersion", _level),
        "reader_features": ("readerFeatures", optional(_features)),
        "writer_features": ("writerFeatures", optional(_features)),
    }

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Metadata(DeltaFields):
    """A table's identity, schema (JSON text), partition columns and properties."""

    KEY: ClassVar[str] = "metaData"
    FIELDS: ClassVar = {
        "id": ("id", optional(text, str)),
        "name": ("name", optional(text)),
        "description": ("description", optional(text)),
        "format": ("format", lambda value, name: Format.from_json(value.get(name) or {})),
        "schema_string": ("schemaString", optional(text)),
        "partition_columns": ("partitionColumns", optional(names, tuple)),
        "configuration": ("configuration", optional(settings, dict)),
        "created_time": ("createdTime", optional(whole)),
    }

    id: str
    schema_string: str | None = None
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format: Format = field(default_factory=Format)

    @property
    def schema(self) -> dict[str, Any]:
        """The schema as Delta's JSON; a table without one has no fields.

        Raises:
            CorruptLog: the schema string is not a schema.
        """
        if not self.schema_string:
            return {"type": "struct", "fields": []}
        try:
            found = parse_encodable_json(self.schema_string)  # a copy of a cached one takes longer
            if all(
                isinstance(field["name"], str)
                and field["type"]
                and isinstance(field.get("metadata") or {}, Mapping)
                for field in found["fields"]
            ):
                return dict(found)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise malformed_line_error(f"The schema of the table is not a schema: {error}.") from error
        raise malformed_line_error(
            "A field in the schema of the table has no name, no type or garbled metadata."
        )


@dataclass(frozen=True, slots=True)
class Txn(DeltaFields):
    """Transaction identifier: the last version of an application that the table includes."""

    KEY: ClassVar[str] = "txn"
    FIELDS: ClassVar = {
        "app_id": ("appId", require_text),
        "version": ("version", _require_integer),
        "last_updated": ("lastUpdated", optional(whole)),
    }

    app_id: str
    version: int
    last_updated: int | None = None


@dataclass(frozen=True, slots=True)
class DomainMetadata(DeltaFields):
    """Configuration of a feature under a domain name; ``removed`` deletes it."""

    KEY: ClassVar[str] = "domainMetadata"
    FIELDS: ClassVar = {
        "domain": ("domain", require_text),
        "configuration": ("configuration", optional(text, lambda: "{}")),
        "removed": ("removed", optional(flag, bool)),
    }

    domain: str
    configuration: str = "{}"
    removed: bool = False


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """Provenance of a commit: free-form fields; properties return the few that readers need."""

    KEY: ClassVar[str] = "commitInfo"

    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def timestamp(self) -> int | None:
        """The writer's clock, in ms."""
        return self._moment("timestamp")

    @property
    def in_commit_timestamp(self) -> int | None:
        """The commit's own time in ms, where in-commit timestamps are on."""
        return self._moment("inCommitTimestamp")

    def _moment(self, name: str) -> int | None:
        found = self.fields.get(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    @property
    def operation(self) -> str | None:
        """The operation, under the writer's name for it."""
        return self.fields.get("operation")

    def to_json(self) -> dict[str, Any]:
        """Return all fields, unchanged."""
        return dict(self.fields)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CommitInfo:
        """Return all fields, known or not."""
        return cls(dict(value))


@dataclass(frozen=True, slots=True)
class Sidecar(DeltaFields):
    """A Parquet file in ``_sidecars`` that holds file actions of a V2 checkpoint."""

    KEY: ClassVar[str] = "sidecar"
    FIELDS: ClassVar = {
        "path": ("path", require_text),
        "size_in_bytes": ("sizeInBytes", optional(whole, int)),
        "modification_time": ("modificationTime", optional(whole, int)),
    }

    path: str
    size_in_bytes: int
    modification_time: int


@dataclass(frozen=True, slots=True)
class CheckpointMetadata(DeltaFields):
    """The ``checkpointMetadata`` action, which marks a V2 checkpoint."""

    KEY: ClassVar[str] = "checkpointMetadata"
    FIELDS: ClassVar = {
        "version": ("version", lambda value, name: whole(value[name]) or 0),
    }

    version: int


Action = (
    Protocol
    | Metadata
    | Add
    | Cdc
    | Remove
    | Txn
    | DomainMetadata
    | CommitInfo
    | Sidecar
    | CheckpointMetadata
)
KINDS: Mapping[str, type[Action]] = {
    kind.KEY: kind
    for kind in (
        Protocol,
        Metadata,
        Add,
        Cdc,
        Remove,
        Txn,
        DomainMetadata,
        CommitInfo,
        Sidecar,
        CheckpointMetadata,
    )
}


def to_json_line(action: Action) -> str:
    """Return the action in Delta's spelling: one line of JSON, without its newline."""
    body = {action.KEY: action.to_json()}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def parse_line(line: str | bytes) -> Action | None:
    """Parse one line; ``None`` for an unknown kind of action.

    Raises:
        CorruptLog: the line is not a JSON object, or a required field of the action is missing.
    """
    try:
        value = parse_json(line)
    except ValueError as error:
        raise malformed_line_error(str(error)) from error
    if not isinstance(value, dict):
        raise malformed_line_error(f"It is {type(value).__name__}, not an object.")
    for key, body in value.items():
        if key in KINDS and body is not None:
            return from_json(key, body)
        if is_misspelt(key, KINDS):
            raise malformed_line_error(f"{key!r} is a misspelt name of an action.")
    return None


def is_misspelt(name: str, known: Iterable[str]) -> bool:
    """Return whether the name differs from a known one in one letter: a flipped bit, not a newer writer.

    Readers ignore unknown names, so without this check a damaged name would lose its values.
    """
    names = set(known)
    return name not in names and any(
        len(item) == len(name) and sum(map(str.__ne__, item, name)) == 1 for item in names
    )


def from_json(key: str, body: Mapping[str, Any]) -> Action:
    """Return the action named ``key`` with the fields of ``body``."""
    try:
        return KINDS[key].from_json(body)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise malformed_line_error(f"The {key} action lacks or garbles a field: {error!r}.") from error


def malformed_line_error(cause: str) -> CorruptLog:
    """Return the error for a line that does not hold an action."""
    return CorruptLog(
        "A line of the log is not an action.",
        cause=cause,
        remedy="Restore the file from a copy; until then read a version before it.",
        code="DELTA_LOG_MALFORMED_JSON",
    )
