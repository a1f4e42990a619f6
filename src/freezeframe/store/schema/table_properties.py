"""Protocol and properties of a stream's table: the lowest protocol, and the writer guard (pure).

Every stream lists the writer feature ``freezeframe.tenantLog``. By Delta's protocol a writer that
does not know a listed writer feature must refuse the table, so nobody writes around the tenant
log by mistake; readers are not concerned. The reader version is raised only when a column needs
it. Source: ``docs/reference/tenant-log.md``, "Nobody writes around it by mistake".
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from freezeframe.log.actions.actions import Metadata, Protocol
from freezeframe.store.schema.column_mapping import DeltaSchema, column_id_max, is_mapped

Notes = tuple[tuple[str, str], ...]
Properties = Mapping[str, str | None]
NO_PROPERTIES: Properties = MappingProxyType({})

TENANT_LOG_FEATURE = "freezeframe.tenantLog"
KEY_PROPERTY = "freezeframe.key"
VECTORS_FEATURE = "deletionVectors"
_NOTE_PREFIX = "freezeframe.note."

_WRITER_VERSION = 7
_ALWAYS = (TENANT_LOG_FEATURE, "inCommitTimestamp")
# The tenant's own retention decides what goes; Delta's clean-up and its limits on time travel must not.
_KEPT = "interval 36500 days"
_PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": _KEPT,
    "delta.deletedFileRetentionDuration": _KEPT,
}


def guarded_protocol(schema: DeltaSchema, *, with_vectors: bool = False) -> Protocol:
    """The lowest protocol under which a table of these columns may be read, with the guard for writers.

    ``with_vectors``: rows may be deleted by deletion vectors, which asks more of a reader.
    """
    local_times = any(kind == "timestamp_ntz" for kind in _type_names(schema))
    features = {
        *_ALWAYS,
        *(("columnMapping",) if is_mapped(schema) else ()),
        *(("timestampNtz",) if local_times else ()),
        *((VECTORS_FEATURE,) if with_vectors else ()),
    }
    # Column mapping would do with reader version 2, whose readers need not say what they do not know:
    # some give nulls for the values of mapped columns. A feature that they must know makes them refuse.
    reader = tuple(sorted(features & {"columnMapping", "timestampNtz", VECTORS_FEATURE}))
    return Protocol(3 if reader else 1, _WRITER_VERSION, reader or None, tuple(sorted(features)))


def join_protocols(stored: Protocol, needed: Protocol) -> Protocol:
    """A protocol that allows what either allows: a table's protocol is never lowered by a write."""
    reader_version = max(stored.min_reader_version, needed.min_reader_version)
    reader = set(stored.reader_features or ()) | set(needed.reader_features or ())
    writer = set(stored.writer_features or ()) | set(needed.writer_features or ())
    if reader_version == 3 and "columnMapping" in writer:  # noqa: PLR2004 - Delta's reader version with features
        reader.add("columnMapping")
    return Protocol(
        reader_version,
        max(stored.min_writer_version, needed.min_writer_version),
        tuple(sorted(reader)) if reader else None,
        tuple(sorted(writer)),
    )


def table_metadata(
    schema: DeltaSchema,
    key: tuple[str, ...],
    stored: Metadata | None,
    timestamp_ms: int,
    notes: Notes = (),
    properties: Properties = NO_PROPERTIES,
) -> Metadata:
    """The table's metadata with these columns, this key and notes; a stored table keeps its identity.

    ``properties`` are set by name, and removed where they are None; all others stay.
    """
    configuration = dict(stored.configuration) if stored else dict(_PROPERTIES)
    configuration[KEY_PROPERTY] = json.dumps(list(key), ensure_ascii=False)
    configuration |= {f"{_NOTE_PREFIX}{name}": text for name, text in notes}
    for name, text in properties.items():
        configuration.pop(name, None)
        configuration |= {} if text is None else {name: text}
    if is_mapped(schema):
        largest = int(configuration.get("delta.columnMapping.maxColumnId", 0))
        configuration["delta.columnMapping.mode"] = "name"
        configuration["delta.columnMapping.maxColumnId"] = str(max(largest, column_id_max(schema)))
    return Metadata(
        id=stored.id if stored else str(uuid.uuid4()),
        schema_string=json.dumps(schema, ensure_ascii=False, separators=(",", ":")),
        configuration=configuration,
        created_time=stored.created_time if stored else timestamp_ms,
    )


def stored_key(metadata: Metadata | None) -> tuple[str, ...] | None:
    """The key of the stream since its creation; None where it has never had one."""
    text = (metadata.configuration if metadata else {}).get(KEY_PROPERTY)
    return tuple(json.loads(text)) if text else None


def stored_notes(metadata: Metadata | None) -> dict[str, str]:
    """The stream's notes, by name."""
    configuration = metadata.configuration if metadata else {}
    return {
        name.removeprefix(_NOTE_PREFIX): text
        for name, text in configuration.items()
        if name.startswith(_NOTE_PREFIX)
    }


def _type_names(kind: Any) -> Iterator[str]:
    """All type names inside a Delta type, at any depth."""
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, Mapping):
        for field in kind.get("fields", ()):
            yield from _type_names(field["type"])
        for part in ("elementType", "keyType", "valueType"):
            if part in kind:
                yield from _type_names(kind[part])
