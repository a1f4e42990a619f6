"""The types that a Singer catalog declares for the columns of a sync's streams.

A catalog lists ``streams``, each with a JSON schema. Only what a CSV cell can hold counts:
integers, numbers, booleans, dates and instants; objects and lists are JSON text there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from freezeframe.errors import UnreadableInput
from freezeframe.script.types.written_values import UTC_TIMESTAMP
from freezeframe.storage.read_ahead import reads_of

FILE_NAME = "catalog.json"

_BY_FORMAT = {"date-time": UTC_TIMESTAMP, "date": pa.date32()}
_BY_TYPES: dict[frozenset[str], pa.DataType] = {
    frozenset({"integer"}): pa.int64(),
    frozenset({"number"}): pa.float64(),
    frozenset({"integer", "number"}): pa.float64(),
    frozenset({"boolean"}): pa.bool_(),
}


@dataclass(frozen=True, slots=True)
class Catalog:
    """Stream -> column -> Arrow type, for every column of which the type is declared."""

    streams: Mapping[str, Mapping[str, pa.DataType]]

    def columns(self, stream: str) -> Mapping[str, pa.DataType]:
        """The declared columns of one stream; none if the catalog does not know it."""
        return self.streams.get(stream, {})


def catalog_beside(folder: Path) -> Catalog:
    """The catalog in the folder's parent, where a sync leaves it; an empty one if there is none."""
    file = folder.resolve().parent / FILE_NAME
    try:
        with reads_of(str(file)):
            return Catalog(_declared_types(json.loads(file.read_text("utf-8-sig"))))
    except (FileNotFoundError, IsADirectoryError):
        return Catalog({})
    except (ValueError, TypeError, AttributeError) as error:
        raise UnreadableInput(
            f"{str(file)!r} is not a Singer catalog.",
            cause=str(error),
            remedy="Repair or remove it; without it the types are inferred from the values.",
            file=str(file),
        ) from error


def _declared_types(document: Any) -> dict[str, dict[str, pa.DataType]]:
    streams: dict[str, dict[str, pa.DataType]] = {}
    for entry in document.get("streams", []):
        properties = (entry.get("schema") or {}).get("properties") or {}
        kinds = {name: kind for name, schema in properties.items() if (kind := declared_type(schema))}
        for name in (entry.get("tap_stream_id"), entry.get("stream")):
            if isinstance(name, str):
                streams[name] = kinds
    return streams


def declared_type(schema: Mapping[str, Any]) -> pa.DataType | None:
    """The Arrow type of one property, or None if its schema says nothing about a type.

    ``date-time`` is an instant in UTC, ``date`` a date. Where several types are allowed that
    do not go together, or a list or object, it is text.
    """
    alternatives = list(type_alternatives(schema))
    types = frozenset(name for _, names in alternatives for name in names) - {"null"}
    if not types:
        return None
    formats = {_BY_FORMAT[name] for name, _ in alternatives if name in _BY_FORMAT}
    if types == {"string"} and len(formats) == 1:
        return formats.pop()
    return _BY_TYPES.get(types, pa.string())


def type_alternatives(schema: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Each way to meet the schema: its format ("" for none) and its type names."""
    names = schema.get("type", [])
    yield str(schema.get("format", "")), [names] if isinstance(names, str) else list(names)
    for choice in (*schema.get("anyOf", []), *schema.get("oneOf", [])):
        yield from type_alternatives(choice)
