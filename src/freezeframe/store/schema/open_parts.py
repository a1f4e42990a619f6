"""Columns of a Delta schema of which a part has no type yet (pure).

The schema holds ``untyped.settled_type`` of such a column, which every Delta reader understands. The
column's own type, with ``void`` and structs without members, is in the metadata of its field
(``docs/decisions/0041``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.untyped import has_untyped
from freezeframe.log.schema.schema import arrow_field, arrow_to_delta, arrow_type

OPEN_TYPE = "freezeframe.openType"

Described = Mapping[str, Any]


def open_type_mark(kind: pa.DataType) -> dict[str, str]:
    """The metadata of a field whose column has this type; none where the type is settled."""
    if not has_untyped(kind):
        return {}
    (described,) = arrow_to_delta(pa.schema([("column", kind)]))["fields"]
    return {OPEN_TYPE: json.dumps(described["type"])}


def stored_field(described: Described) -> pa.Field:
    """The Arrow field of a column, with the type that it has so far."""
    field, mark = arrow_field(described), (described.get("metadata") or {}).get(OPEN_TYPE)
    return field if mark is None else field.with_type(arrow_type(json.loads(mark)))


def open_columns(schema: Described, void: str = "void") -> dict[str, Any]:
    """The schema with the types that the columns have so far; ``void`` names the type of what has none."""
    fields = [
        {**field, "type": _open_type(field["type"], stored_field(field).type, void)}
        for field in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _open_type(described: Any, kind: pa.DataType, void: str) -> Any:
    """The described type, which has physical names, without what ``kind`` leaves open."""
    if pa.types.is_null(kind):
        return void
    if pa.types.is_struct(kind) and described["type"] == "struct":
        parts = {part.name: part.type for part in kind}
        fields = [
            {**field, "type": _open_type(field["type"], parts[field["name"]], void)}
            for field in described["fields"]
            if field["name"] in parts
        ]
        return {**described, "fields": fields}
    if pa.types.is_list(kind):
        return {**described, "elementType": _open_type(described["elementType"], kind.value_type, void)}
    if pa.types.is_map(kind):
        return {**described, "valueType": _open_type(described["valueType"], kind.item_type, void)}
    return described
