"""Rows as the data files of a table hold them: under physical names, with the ids of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from freezeframe.log.schema.column_mapping import PHYSICAL_NAME_KEY, Mode, field_id, physical_name
from freezeframe.log.schema.conversion import conform
from freezeframe.log.schema.schema import arrow_field, fields_of


def physical_rows(rows: pa.Table, fields: list[dict[str, Any]], mode: Mode) -> pa.Table:
    """The rows under the physical names and with the column ids of the data files."""
    if mode == "none":
        return rows.select([field["name"] for field in fields])
    renamed = [_to_physical_field(field) for field in fields]
    kinds = [_with_ids(arrow_field(to), field) for field, to in zip(fields, renamed, strict=True)]
    arrays = [
        # A column without chunks needs the explicit type.
        pa.chunked_array(
            [conform(chunk, to["type"], "name") for chunk in rows[field["name"]].chunks], kind.type
        )
        for field, to, kind in zip(fields, renamed, kinds, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(kinds))


def _to_physical_field(field: Mapping[str, Any]) -> dict[str, Any]:
    """The field with physical and logical name swapped, to convert rows in the other direction."""
    return {
        "name": physical_name(field),
        "type": _to_physical_type(field["type"]),
        "nullable": field.get("nullable", True),
        "metadata": {PHYSICAL_NAME_KEY: field["name"]},
    }


def _to_physical_type(kind: Any) -> Any:
    if not isinstance(kind, Mapping):
        return kind
    if kind["type"] == "struct":
        return {**kind, "fields": [_to_physical_field(field) for field in fields_of(kind)]}
    nested = {
        key: _to_physical_type(kind[key]) for key in ("elementType", "keyType", "valueType") if key in kind
    }
    return {**kind, **nested}


def _with_ids(kind: pa.Field, field: Mapping[str, Any]) -> pa.Field:
    number = field_id(field)
    return kind if number is None else kind.with_metadata({"PARQUET:field_id": str(number)})
