"""Column mapping: the physical name or id of a column in data files.

Without column mapping, files use the table's own names. With it, files, statistics and partition
values use physical names that never change, so a column can have any name and be renamed without
a rewrite (protocol, section "Column Mapping").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa

from freezeframe.errors import UnsupportedTable
from freezeframe.log.actions.actions import Metadata, Protocol
from freezeframe.log.actions.protocol import has_reader_feature
from freezeframe.log.schema.schema import fields_of

MODE_KEY = "delta.columnMapping.mode"
ID_KEY = "delta.columnMapping.id"
PHYSICAL_NAME_KEY = "delta.columnMapping.physicalName"

Mode = Literal["none", "name", "id"]


def mapping_mode(protocol: Protocol, metadata: Metadata) -> Mode:
    """The mapping mode; the property applies only if the protocol has the feature."""
    mode = str(metadata.configuration.get(MODE_KEY, "none")).lower()
    if mode not in {"none", "name", "id"}:
        raise UnsupportedTable(
            f"The table maps its columns in the mode {mode!r}, which is not known here.",
            cause="Delta knows the modes 'none', 'name' and 'id'.",
            remedy="Use a version of freezeframe that knows this mode.",
            code="DELTA_MODE_NOT_SUPPORTED",
            mode=mode,
        )
    if not has_reader_feature(protocol, "columnMapping"):
        return "none"
    return "name" if mode == "name" else "id" if mode == "id" else "none"


def physical_name(field: Mapping[str, Any], mode: Mode = "name") -> str:
    """The name of a Delta field in partition values, statistics and (except in mode ``id``) files."""
    metadata = field.get("metadata") or {}
    if mode == "none":
        return str(field["name"])
    return str(metadata.get(PHYSICAL_NAME_KEY, field["name"]))


def field_id(field: Mapping[str, Any]) -> int | None:
    """The column id of a Delta field under column mapping, or None."""
    found = (field.get("metadata") or {}).get(ID_KEY)
    return None if found is None else int(found)


def every_field(kind: Any) -> Iterator[dict[str, Any]]:
    """All fields of a Delta type, outer before inner, through structs, arrays and maps."""
    if not isinstance(kind, Mapping):
        return
    if kind.get("type") == "struct":
        for field in fields_of(kind):
            yield field
            yield from every_field(field.get("type"))
    for key in ("elementType", "keyType", "valueType"):
        yield from every_field(kind.get(key))


def fields_by_path(
    kind: Any, inside: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every field of a Delta type, at any depth, with its path of names."""
    if not isinstance(kind, Mapping):
        return
    if kind.get("type") == "struct":
        for field in fields_of(kind):
            path = (*inside, field["name"])
            yield path, field
            yield from fields_by_path(field.get("type"), path)
    for key in ("elementType", "keyType", "valueType"):
        yield from fields_by_path(kind.get(key), (*inside, key))


def column_finder(fields: Iterable[pa.Field], mode: Mode) -> Callable[[Mapping[str, Any]], int | None]:
    """A function from a Delta field to its index among a file's fields, or None where the file lacks it.

    Matches by id in mode ``id``, else by physical name, and failing that by name regardless of case,
    as Spark does.
    """
    ids: dict[bytes | None, int] = {}
    names: dict[str, int] = {}
    lower: dict[str, int] = {}
    for index, field in enumerate(fields):
        ids.setdefault((field.metadata or {}).get(b"PARQUET:field_id"), index)
        names.setdefault(field.name, index)
        lower.setdefault(field.name.lower(), index)

    def find(wanted: Mapping[str, Any]) -> int | None:
        if mode == "id" and field_id(wanted) is not None:
            return ids.get(str(field_id(wanted)).encode())
        name = physical_name(wanted, mode)
        return names.get(name, lower.get(name.lower()))

    return find
