"""Columns of a stream as Arrow and as Delta schema, its system columns and table properties (pure)."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.frames import NULLABLE
from freezeframe.engine.frames.untyped import settled_type
from freezeframe.errors import BadInput, InvalidOption
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.format.protocol import nested_types
from freezeframe.log.format.schema import arrow_to_delta, fields_by_path
from freezeframe.store.model.update_options import Update
from freezeframe.store.schema.schema_evolution import PRINTED, UNDECIDED
from freezeframe.store.schema.type_compatibility import OPEN_TYPE, open_type_mark, stored_field

# A field's metadata holds the marks of ``schema_evolution`` and, if a name needs it, Delta's column
# mapping by name (protocol, "Column Mapping"): a name with a space or one of ``,;{}()=`` gets a physical
# name; every other column keeps its name, so that files stay readable.

DeltaSchema = Mapping[str, Any]

_UNDECIDED_KEY = UNDECIDED.decode()
_MARKS = (UNDECIDED, PRINTED, NULLABLE)
_ID_KEY = "delta.columnMapping.id"
_PHYSICAL_KEY = "delta.columnMapping.physicalName"
# Delta refuses these in a column name unless names are mapped.
_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")


def type_names(schema: DeltaSchema) -> dict[str, str]:
    """Return the types of the columns by name; ``struct``, ``array`` or ``map`` for nested ones."""
    kinds = {field["name"]: field["type"] for field in schema["fields"]}
    return {name: kind if isinstance(kind, str) else str(kind["type"]) for name, kind in kinds.items()}


def arrow_columns(schema: DeltaSchema) -> pa.Schema:
    """Return the logical columns as Arrow, with their types so far and the marks of ``evolve``."""
    fields = []
    for described in schema["fields"]:
        field = stored_field(described)
        known = described.get("metadata") or {}
        marks = {mark: b"true" for mark in _MARKS if known.get(mark.decode())}
        fields.append(field.with_metadata(marks) if marks else field)
    return pa.schema(fields)


def delta_columns(target: pa.Schema, stored: DeltaSchema | None) -> dict[str, Any]:
    """Return the Delta schema for ``target``; columns that ``stored`` has already keep their identity."""
    known = {field["name"]: field.get("metadata") or {} for field in (stored or {"fields": []})["fields"]}
    schema = arrow_to_delta(pa.schema([(field.name, settled_type(field.type)) for field in target]))
    for described, field in zip(schema["fields"], target, strict=True):
        described["nullable"] = True
        marks = {mark.decode(): True for mark in _MARKS if mark in (field.metadata or {})}
        kept = {
            key: value
            for key, value in known.get(field.name, {}).items()
            if key != OPEN_TYPE and key.encode() not in _MARKS
        }
        described["metadata"] = {**kept, **marks, **open_type_mark(field.type)}
    if is_mapped(stored) or any(_NEEDS_MAPPING & set(name) or not name for name in target.names):
        _map_by_name(schema, stored)
    return schema


def is_mapped(schema: DeltaSchema | None) -> bool:
    """Return whether the columns have physical names."""
    return schema is not None and any(
        _PHYSICAL_KEY in (field.get("metadata") or {}) for field in schema["fields"]
    )


def column_id_max(schema: DeltaSchema | None) -> int:
    """Return the largest column id given so far, 0 without any."""
    ids = [(field.get("metadata") or {}).get(_ID_KEY, 0) for _, field in fields_by_path(schema)]
    return max(ids, default=0)


def physical_names(schema: DeltaSchema) -> dict[str, str]:
    """Return the physical name of each column."""
    return {
        field["name"]: (field.get("metadata") or {}).get(_PHYSICAL_KEY, field["name"])
        for field in schema["fields"]
    }


def written_columns(schema: DeltaSchema, names: set[str] | None = None) -> dict[str, Any]:
    """Return the schema of the data files: without undecided columns, restricted to ``names`` if given."""
    return {
        "type": "struct",
        "fields": [
            field
            for field in schema["fields"]
            if not (field.get("metadata") or {}).get(_UNDECIDED_KEY)
            and (names is None or field["name"] in names)
        ],
    }


def _map_by_name(schema: dict[str, Any], stored: DeltaSchema | None) -> None:
    next_id = column_id_max(stored)
    was_mapped = is_mapped(stored)
    known = dict(fields_by_path(stored))
    for path, field in fields_by_path(schema):
        old = (known[path].get("metadata") or {}) if path in known else {}
        if _PHYSICAL_KEY in old:
            kept = {_ID_KEY: old[_ID_KEY], _PHYSICAL_KEY: old[_PHYSICAL_KEY]}
            field["metadata"] = {**field["metadata"], **kept}
            continue
        next_id += 1
        odd = bool(_NEEDS_MAPPING & set(field["name"])) or not field["name"]
        # A reused name must not resolve to a dropped column's values, hence unique physical names.
        # Inside a column it cannot: a file is written with the parts that its column has then.
        keeps_name = len(path) > 1 or (not odd and (path in known or not was_mapped))
        physical = field["name"] if keeps_name else f"col-{uuid.uuid4()}"
        field["metadata"] = {**field["metadata"], _ID_KEY: next_id, _PHYSICAL_KEY: physical}


# Every stream lists the writer feature ``freezeframe.tenantLog``: by Delta's protocol a writer that does not
# know a listed feature refuses the table, so no other writer bypasses the tenant log by mistake. The reader
# version is raised only when a column needs it.

Notes = tuple[tuple[str, str], ...]
Properties = Mapping[str, str | None]
NO_PROPERTIES: Properties = MappingProxyType({})

TENANT_LOG_FEATURE = "freezeframe.tenantLog"
KEY_PROPERTY = "freezeframe.key"
VECTORS_FEATURE = "deletionVectors"
_NOTE_PREFIX = "freezeframe.note."

_WRITER_VERSION = 7
_ALWAYS = (TENANT_LOG_FEATURE, "inCommitTimestamp")
# The tenant's retention decides what is deleted; Delta's cleanup and its limits on time travel must not.
_KEPT = "interval 36500 days"
_PROPERTIES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": _KEPT,
    "delta.deletedFileRetentionDuration": _KEPT,
}


def guarded_protocol(schema: DeltaSchema, *, with_vectors: bool = False) -> Protocol:
    """Return the lowest protocol that a reader of these columns needs, with the guard for writers.

    ``with_vectors``: rows may be deleted by deletion vectors, which needs a newer reader.
    """
    local_times = "timestamp_ntz" in nested_types(schema)
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
    """Return a protocol that allows what either allows: a table's protocol is never lowered by a write."""
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
    """Return the table's metadata with these columns, this key and notes; a stored table keeps its identity.

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
    """Return the key of the stream since its creation; None if it never had one."""
    text = (metadata.configuration if metadata else {}).get(KEY_PROPERTY)
    return tuple(json.loads(text)) if text else None


def stored_notes(metadata: Metadata | None) -> dict[str, str]:
    """Return the stream's notes, by name."""
    configuration = metadata.configuration if metadata else {}
    return {
        name.removeprefix(_NOTE_PREFIX): text
        for name, text in configuration.items()
        if name.startswith(_NOTE_PREFIX)
    }


# A stream with ``history="scd2"`` has ``_valid_from`` and ``_valid_to``; a stream with ``deletes="flag"`` has
# ``_deleted``. The table's properties declare it. Rules: ``docs/reference/semantics.md``, "History".

VALID_FROM = "_valid_from"
VALID_TO = "_valid_to"
DELETED = "_deleted"
HISTORY_PROPERTY = "freezeframe.history"
DELETES_PROPERTY = "freezeframe.deletes"

_MOMENT = pa.timestamp("us", tz="UTC")
_PERIOD = (pa.field(VALID_FROM, _MOMENT), pa.field(VALID_TO, _MOMENT))
_FLAG = (pa.field(DELETED, pa.bool_()),)


@dataclass(frozen=True, slots=True)
class SystemColumns:
    """System columns of a stream: validity period or deletion flag; never both."""

    has_history: bool = False
    flags_deleted: bool = False

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The Arrow fields of the columns."""
        return (*(_PERIOD if self.has_history else ()), *(_FLAG if self.flags_deleted else ()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in self.fields)

    @property
    def properties(self) -> Mapping[str, str | None]:
        """The table properties that declare them; None: the property is absent."""
        return {
            HISTORY_PROPERTY: "scd2" if self.has_history else None,
            DELETES_PROPERTY: "flag" if self.flags_deleted else None,
        }

    def removed_from(self, columns: pa.Schema) -> pa.Schema:
        """Return the schema without the system columns."""
        own = set(self.names)
        return pa.schema([field for field in columns if field.name not in own])

    def added_to(self, columns: pa.Schema) -> pa.Schema:
        """Return the schema with the system columns at its end."""
        return pa.schema([*columns, *self.fields])

    def fill(self, rows: pa.Table, moment_us: int) -> pa.Table:
        """Add the system columns to new rows: valid from the moment on, not deleted."""
        values = {VALID_FROM: pa.scalar(moment_us, _MOMENT), DELETED: pa.scalar(value=False)}
        for field in self.fields:
            value = values.get(field.name, pa.scalar(None, field.type))
            rows = rows.append_column(field, pa.repeat(value, rows.num_rows))
        return rows


def read_system_columns(metadata: Metadata | None) -> SystemColumns:
    """Return the system columns of a table; none for a dropped stream, which has no key."""
    properties = metadata.configuration if metadata else {}
    if KEY_PROPERTY not in properties:
        return SystemColumns()
    return SystemColumns(
        has_history=properties.get(HISTORY_PROPERTY) == "scd2",
        flags_deleted=properties.get(DELETES_PROPERTY) == "flag",
    )


def agree_system_columns(
    update: Update, stored: SystemColumns, key: Sequence[str], columns: Sequence[str], batch: Sequence[str]
) -> SystemColumns:
    """Return the system columns of a stream after an update of rows with the columns ``batch``.

    ``columns`` are the names that are stored, ``stored`` included.
    """
    if update.mode == "overwrite":
        if stored.has_history and update.history is None:
            raise InvalidOption(
                "override=True would delete the stream's history.",
                cause="It replaces the whole content, including past rows.",
                remedy="Pass mode='full' for a full extract that keeps it; or history='scd2' beside "
                "override=True to begin a new one, history='none' to go on without.",
            )
        agreed = SystemColumns(has_history=update.history == "scd2", flags_deleted=update.begins_flags)
    else:
        agreed = SystemColumns(
            has_history=stored.has_history or update.history == "scd2",
            flags_deleted=stored.flags_deleted or update.deletes == "flag",
        )
        _require_free(agreed, stored, columns)
    if agreed.has_history and agreed.flags_deleted:
        raise InvalidOption(
            "A stream has either a history or a flag for deleted rows.",
            cause="A history already keeps deleted rows, with the time of their deletion.",
            remedy="To change between them, replace the content: override=True.",
        )
    if agreed.has_history and not key:
        raise InvalidOption(
            "A history needs a key.",
            cause="Without a key, the earlier row of a changed row is unknown.",
            remedy="Pass key=['Id'], for example.",
        )
    _require_absent(agreed, batch, update.drop_columns)
    return agreed


def _require_free(agreed: SystemColumns, stored: SystemColumns, columns: Sequence[str]) -> None:
    folded = {name.casefold(): name for name in columns}
    for name in agreed.names:
        if name not in stored.names and name in folded:
            raise InvalidOption(
                f"The stream has a column {folded[name]!r} already.",
                cause=f"{name!r} is reserved for freezeframe.",
                remedy="Replace the content with that column under another name: override=True.",
                column=folded[name],
            )


def _require_absent(agreed: SystemColumns, batch: Sequence[str], dropped: Sequence[str]) -> None:
    own = set(agreed.names)
    for name in batch:
        if name.casefold() in own:
            raise BadInput(
                f"The rows have a column {name!r}.",
                cause="freezeframe uses this name in the stream.",
                remedy="Drop it from the rows, or rename it.",
                column=name,
            )
    for name in dropped:
        if name in agreed.names:
            raise InvalidOption(
                f"The column {name!r} cannot be dropped.",
                cause="It belongs to freezeframe.",
                remedy="Leave it: readers do not get it unless they ask for the history."
                if agreed.has_history
                else "Filter by it, and drop it from the frame that you write out.",
                column=name,
            )
