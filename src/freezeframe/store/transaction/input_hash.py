"""Input hash of a job, which detects a repeated job with other input.

An update's rows count as a set: neither their order nor the kind of frame that brought them makes a
difference. Rows in memory are hashed from Arrow's buffers, landed ones by Spark.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Any

import pyarrow as pa

from freezeframe.engine.frames.row_hash import row_sums
from freezeframe.engine.protocol.table_engine import TableEngine
from freezeframe.identifiers import StreamName
from freezeframe.log.schema.schema import arrow_to_delta
from freezeframe.storage import Storage
from freezeframe.store.directory.paths import table_folder
from freezeframe.store.model.update_options import Update
from freezeframe.store.transaction import input_hash_v1
from freezeframe.store.updates.source import Incoming

_PREFIX = "2:"


class InputHash:
    """The running hash of a job's input.

    ``recorded`` is the hash that a committed job with the same id left: it is compared by the way that it
    was made.
    """

    def __init__(self, storage: Storage, engine: TableEngine, recorded: str | None = None) -> None:
        self._storage = storage
        self._engine = engine
        self._hash = hashlib.sha256()
        self._prefix = _PREFIX if recorded is None or recorded.startswith(_PREFIX) else ""

    @property
    def digest(self) -> str:
        """The hash of the input so far."""
        return self._prefix + self._hash.hexdigest()

    def add_update(self, name: StreamName, update: Update, incoming: Incoming) -> None:
        """Add an update of a stream: its options and its rows."""
        folder = table_folder(name)
        if not self._prefix:
            self._add("update", str(name), input_hash_v1.options_of(update))
            for part in input_hash_v1.digest_parts(self._storage, folder, incoming):
                self._hash.update(part)
            return
        self._add("update", str(name), _options(update))
        schema = incoming.table.schema
        if incoming.in_memory:
            sums = row_sums(incoming.table)
        else:
            uris = tuple(self._storage.uri(f"{folder}/{path}") for path in incoming.paths)
            sums = self._engine.sum_rows(uris, arrow_to_delta(schema))
        self._add("rows", _column_kinds(schema), sums.rows, sums.lower, sums.upper)

    def add_file(self, path: str, content_sha256: str | None, *, sealed: bool) -> None:
        """Add a file write by its content's SHA-256 (None: deletion)."""
        self._add("file", path, content_sha256, sealed)

    def add_call(self, name: str, *arguments: Any) -> None:
        """Add any other change, by the name of the call and its arguments."""
        self._add("call", name, *arguments)

    def _add(self, *parts: Any) -> None:
        text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
        self._hash.update(f"{len(text)}:{text}".encode())


def _options(update: Update) -> dict[str, Any]:
    """The options that differ from their defaults, so that a new option leaves older hashes as they are."""
    values = {one.name: (getattr(update, one.name), one.default) for one in fields(update)}
    return {name: value for name, (value, default) in values.items() if value != default}


def _column_kinds(schema: pa.Schema) -> list[tuple[str, str]]:
    return sorted((field.name, _kind(field.type)) for field in schema)


def _kind(kind: pa.DataType) -> str:
    """The kind of a type: integers and floats of any width hold the same numbers."""
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "float"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{_kind(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{_kind(kind.key_type)},{_kind(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"list<{_kind(kind.value_type)}>"
    return str(kind)
