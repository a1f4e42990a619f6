"""Histories of Delta tables, built file by file: the good ones and the ones that are broken on purpose.

``TableBuilder().commits(12).checkpoint(10).hint(10)`` is a log of twelve commits with a
checkpoint. The builder keeps its own plain account of which files are live at which version,
so that a reader can be held against it. Only the log is written; data files are names.
"""

from __future__ import annotations

import copy
import io
import json
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.errors import ConflictError
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.actions import (
    Action,
    Add,
    CheckpointMetadata,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Sidecar,
    Txn,
    to_json_line,
)
from freezeframe.log.format.schema import ID_KEY, PHYSICAL_NAME_KEY, fields_by_path
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.primitives.paths import (
    HINT_NAME,
    LOG_FOLDER,
    SIDECAR_FOLDER,
    checkpoint_name,
    checkpoint_part_name,
    checksum_name,
    commit_name,
    v2_checkpoint_name,
)
from freezeframe.log.scan.data_files import bitmap_bytes, z85_encode
from freezeframe.log.segments.checkpoint_columns import CHECKPOINT_SCHEMA
from freezeframe.log.table.transaction import Transaction
from freezeframe.storage import MemoryStorage, Storage

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "p", "type": "string", "nullable": True, "metadata": {}},
    ],
}
UNIQUE_ID = "80a083e8-7026-4e79-81be-64bd76c43a11"
_V2_SCHEMA = pa.schema(
    [
        *CHECKPOINT_SCHEMA,
        pa.field("checkpointMetadata", pa.struct([("version", pa.int64())])),
        pa.field(
            "sidecar",
            pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]),
        ),
    ]
)


def compacted_name(start: int, end: int) -> str:
    """The name of a file that repeats the commits from ``start`` to ``end``."""
    return f"{start:020d}.{end:020d}.compacted.json"


class TableBuilder:
    """Writes the log of one table into a storage (in memory, unless one is given)."""

    def __init__(self, storage: Storage | None = None, table: str = "t") -> None:
        self.storage = storage if storage is not None else MemoryStorage()
        self.table = table
        self.version = -1
        self.accounts: list[dict[tuple[str, str], Action]] = []

    @property
    def folder(self) -> str:
        """The log's folder in the storage."""
        return f"{self.table}/{LOG_FOLDER}" if self.table else LOG_FOLDER

    def log(self, **options: Any) -> DeltaLog:
        """A log of the table that is nobody else's and never waits."""
        return DeltaLog(self.storage, self.table, LogOptions(**{"sleep": _do_not_wait, **options}))

    def live(self, version: int | None = None) -> list[str]:
        """The paths that are live by the builder's own account, sorted."""
        account = self.accounts[self.version if version is None else version]
        return sorted(action.path for action in account.values() if isinstance(action, Add))

    def create(self, protocol: Protocol | None = None, **configuration: str) -> TableBuilder:
        """Version 0: protocol and metadata, with the table properties given."""
        metadata = Metadata("the-table", json.dumps(SCHEMA), ("p",), configuration, created_time=1)
        return self.commit(protocol or Protocol(1, 2), metadata)

    def commits(self, count: int) -> TableBuilder:
        """Version 0 if there is none yet, then commits of one file each until there are ``count``."""
        if self.version < 0:
            self.create()
        while self.version + 1 < count:
            self.commit(file(f"f{self.version + 1}"))
        return self

    def commit(self, *actions: Action, info: CommitInfo | None = None) -> TableBuilder:
        """The next version, with a commit info in front unless the actions bring one."""
        self.version += 1
        if not any(isinstance(action, CommitInfo) for action in actions):
            default = CommitInfo({"timestamp": 1_000 + self.version, "operation": "WRITE"})
            actions = (info or default, *actions)
        self.raw(commit_name(self.version), _lines(*actions))
        account = dict(self.accounts[-1]) if self.accounts else {}
        for action in actions:
            if not isinstance(action, CommitInfo):
                account[_key(action)] = action
        self.accounts.append(account)
        return self

    def checkpoint(
        self, version: int, kind: str = "classic", *, parts: int = 2, without: str = ""
    ) -> TableBuilder:
        """A checkpoint of ``version``: ``classic``, ``parts``, ``json``, ``parquet`` (V2, with a sidecar).

        Actions of the key ``without`` are left out, to make a checkpoint that lacks something.
        """
        actions = [account for account in self.accounts[version].values() if without != account.KEY]
        actions = [
            action for action in actions if not (isinstance(action, DomainMetadata) and action.removed)
        ]
        if kind == "classic":
            return self.raw(checkpoint_name(version), parquet(actions))
        if kind == "parts":
            for part in range(parts):
                name = checkpoint_part_name(version, part + 1, parts)
                self.raw(name, parquet(actions[part::parts]))
            return self
        files = [action for action in actions if isinstance(action, Add | Remove)]
        content = parquet(files)
        sidecar = f"{UNIQUE_ID}.parquet"
        self.raw(f"{SIDECAR_FOLDER}/{sidecar}", content)
        small: list[Action] = [action for action in actions if action not in files]
        small += [CheckpointMetadata(version), Sidecar(sidecar, len(content), 1)]
        small = [item for item in small if without != item.KEY]
        whole = _lines(*small) if kind == "json" else parquet(small)
        return self.raw(v2_checkpoint_name(version, UNIQUE_ID, kind), whole)

    def compact(self, start: int, end: int) -> TableBuilder:
        """A compacted file of the versions from ``start`` to ``end``."""
        before = self.accounts[start - 1] if start else {}
        changed = [one for key, one in self.accounts[end].items() if before.get(key) != one]
        return self.raw(compacted_name(start, end), _lines(*changed))

    def hint(self, version: int, **fields: Any) -> TableBuilder:
        """The hint, naming a checkpoint that may or may not be there."""
        return self.raw(HINT_NAME, json.dumps({"version": version, "size": 1, **fields}).encode())

    def checksum(self, version: int, **fields: Any) -> TableBuilder:
        """A checksum with the fields given, under Delta's names."""
        return self.raw(checksum_name(version), json.dumps(fields).encode())

    def raw(self, name: str, content: bytes) -> TableBuilder:
        """Any file of the log, as it is; what was there is replaced."""
        self.storage.replace(f"{self.folder}/{name}", content)
        return self

    def delete(self, *names: str) -> TableBuilder:
        """Files of the log go."""
        for name in names:
            self.storage.delete(f"{self.folder}/{name}")
        return self


def paths(snapshot: Any) -> list[str]:
    """The paths of a snapshot's files, sorted."""
    return sorted(snapshot.files["path"].to_pylist())


def file(path: str, *, size: int = 1, **fields: Any) -> Add:
    """A data file of partition ``p=a``."""
    return Add(path, size, {"p": "a"}, modification_time=1, **fields)


def parquet(actions: list[Any]) -> bytes:
    """The actions as the rows of a Parquet checkpoint."""
    rows = [{action.KEY: _pairs(action.to_json())} for action in actions]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_V2_SCHEMA), sink, write_page_checksum=True)
    return sink.getvalue()


def _lines(*actions: Action) -> bytes:
    return "".join(f"{to_json_line(action)}\n" for action in actions).encode()


def _key(action: Action) -> tuple[str, str]:
    match action:
        case Add() | Remove():
            vector = action.deletion_vector
            return "file", action.path + ("" if vector is None else vector.unique_id)
        case Txn():
            return "txn", action.app_id
        case DomainMetadata():
            return "domain", action.domain
        case _:
            return action.KEY, ""


def _pairs(value: Any) -> Any:
    """Parquet's maps want pairs; only Delta's four maps are objects of free keys."""
    if not isinstance(value, dict):
        return value
    maps = ("partitionValues", "tags", "configuration", "options")
    return {
        name: list(one.items()) if name in maps and isinstance(one, dict) else _pairs(one)
        for name, one in value.items()
    }


def _do_not_wait(_: float) -> None:
    return None


def all_tombstones(snapshot: Any) -> pa.Table:
    """Every tombstone in the log, expired ones as well."""
    return snapshot._load_state(None).files.tombstones


# Forms of tables that are read and that only other writers make: mapped columns, vectors inside the log.


INLINE_BYTES_MAX = 64


def with_mapping(schema):
    """The schema with an id and a physical name in every field, and the highest id."""
    mapped, number = copy.deepcopy(dict(schema)), 0
    for number, (_, field) in enumerate(fields_by_path(mapped), 1):
        numbers = {ID_KEY: number, PHYSICAL_NAME_KEY: f"col-{uuid.uuid4()}"}
        field["metadata"] = {**(field.get("metadata") or {}), **numbers}
    return mapped, number


def inline_vector(rows):
    """The rows as a vector inside the log, or None where they take more room than is good there."""
    bitmap = bitmap_bytes(rows)
    if len(bitmap) > INLINE_BYTES_MAX:
        return None
    padded = bitmap + bytes(-len(bitmap) % 4)
    return DeletionVector("i", z85_encode(padded), len(bitmap), len(rows))


# Commits that begin anew until nobody else is first.


def commit_at_last(log, actions, upkeep=None):
    """The version of the first attempt that meets no conflict, and how many attempts met one."""
    conflicts = 0
    while True:
        try:
            return Transaction(log, upkeep=upkeep).commit(actions), conflicts
        except ConflictError:
            conflicts += 1
