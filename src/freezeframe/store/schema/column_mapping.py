"""A stream's columns as Arrow and as Delta schema, with their metadata (pure).

Kept in a field's metadata are the marks of ``schema_evolution`` (a column is still undecided; a text column
held whole numbers), and, only where some name needs it, Delta's column mapping by name (protocol,
"Column Mapping"): a name with a space or one of ``,;{}()=`` and so on is stored under a physical name
of its own, every other column keeps its name as physical name, so that files stay readable by eye.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.untyped import settled_type
from freezeframe.log.schema.column_mapping import fields_by_path
from freezeframe.log.schema.schema import arrow_to_delta
from freezeframe.store.schema.schema_evolution import PRINTED, UNDECIDED
from freezeframe.store.schema.type_compatibility import OPEN_TYPE, open_type_mark, stored_field

DeltaSchema = Mapping[str, Any]

_UNDECIDED_KEY = UNDECIDED.decode()
_MARKS = (UNDECIDED, PRINTED)
_ID_KEY = "delta.columnMapping.id"
_PHYSICAL_KEY = "delta.columnMapping.physicalName"
# Delta refuses these in a column name unless names are mapped.
_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")


def type_names(schema: DeltaSchema) -> dict[str, str]:
    """The types of the columns by name; ``struct``, ``array`` or ``map`` for nested ones."""
    kinds = {field["name"]: field["type"] for field in schema["fields"]}
    return {name: kind if isinstance(kind, str) else str(kind["type"]) for name, kind in kinds.items()}


def arrow_columns(schema: DeltaSchema) -> pa.Schema:
    """The logical columns as Arrow: the types that they have so far, with the metadata of ``evolve``."""
    fields = []
    for described in schema["fields"]:
        field = stored_field(described)
        known = described.get("metadata") or {}
        marks = {mark: b"true" for mark in _MARKS if known.get(mark.decode())}
        fields.append(field.with_metadata(marks) if marks else field)
    return pa.schema(fields)


def delta_columns(target: pa.Schema, stored: DeltaSchema | None) -> dict[str, Any]:
    """The Delta schema for ``target``; columns that ``stored`` has already keep their identity."""
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
    """Whether the columns have physical names."""
    return schema is not None and any(
        _PHYSICAL_KEY in (field.get("metadata") or {}) for field in schema["fields"]
    )


def column_id_max(schema: DeltaSchema | None) -> int:
    """The largest column id given so far, 0 without any."""
    ids = [(field.get("metadata") or {}).get(_ID_KEY, 0) for _, field in fields_by_path(schema)]
    return max(ids, default=0)


def physical_names(schema: DeltaSchema) -> dict[str, str]:
    """The physical name of each column."""
    return {
        field["name"]: (field.get("metadata") or {}).get(_PHYSICAL_KEY, field["name"])
        for field in schema["fields"]
    }


def written_columns(schema: DeltaSchema, names: set[str] | None = None) -> dict[str, Any]:
    """The schema of the data files: without undecided columns, restricted to ``names`` if given."""
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
