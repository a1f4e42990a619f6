"""Reading checkpoints of every kind: classic, in parts, V2 as JSON or Parquet with sidecars.

Damage raises ``CorruptLog`` with the code ``CHECKPOINT_DAMAGED`` and the file's name, so that
``SnapshotManagement`` can try another checkpoint (behaviours 32, 34 to 36).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.errors import CorruptLog
from freezeframe.log.actions.action_columns import FILE_SCHEMA, TOMBSTONE_SCHEMA
from freezeframe.log.actions.actions import (
    Action,
    CheckpointMetadata,
    Metadata,
    Sidecar,
    from_json,
)
from freezeframe.log.checkpoints.checkpoint_columns import rows_of, small_actions_in
from freezeframe.log.commits.commit_content import parse_file_actions, read_content
from freezeframe.log.primitives.listing import CheckpointFiles
from freezeframe.log.primitives.paths import SIDECAR_FOLDER
from freezeframe.log.primitives.stored_file import StoredFile
from freezeframe.storage import Storage
from freezeframe.storage.concurrency import map_concurrently
from freezeframe.storage.passing_failures import passing_failure

CHECKPOINT_DAMAGED = "CHECKPOINT_DAMAGED"
READERS_MAX = 4
WHOLE_BYTES_MAX = 1 << 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CheckpointContent:
    """Content of a checkpoint: the small actions, and file actions as Arrow columns."""

    actions: tuple[Action, ...]
    files: pa.Table
    tombstones: pa.Table


def read_checkpoint_actions(storage: Storage, folder: str, checkpoint: CheckpointFiles) -> tuple[Action, ...]:
    """Only the small actions (protocol, metadata, transactions, domains); file actions are not decoded.

    Raises:
        CorruptLog: ``CHECKPOINT_DAMAGED``, naming the file.
    """
    found = [
        _read_guarded(_path(folder, file.name), partial(_small_actions, storage, size=file.size))
        for file in checkpoint.files
    ]
    actions = tuple(action for one in found for action in one)
    _require_v2_shape(actions, _path(folder, checkpoint.files[0].name))
    return actions


def read_checkpoint(
    storage: Storage, folder: str, checkpoint: CheckpointFiles, oldest_tombstone: int | None = None
) -> CheckpointContent:
    """The whole checkpoint, sidecars included; its parts are read concurrently.

    Tombstones deleted at or before ``oldest_tombstone`` (ms) are left out of its Parquet files.

    Raises:
        CorruptLog: ``CHECKPOINT_DAMAGED``, naming the file.
    """
    whole = [_path(folder, file.name) for file in checkpoint.files]

    def read(name: str) -> CheckpointContent:
        return _read_guarded(name, lambda at: _content(storage, at, oldest_tombstone))

    parts = map_concurrently(read, whole, READERS_MAX)
    actions = tuple(action for part in parts for action in part.actions)
    _require_v2_shape(actions, whole[0])
    sidecars = [action for action in actions if isinstance(action, Sidecar)]
    names = [_path(folder, f"{SIDECAR_FOLDER}/{sidecar_name(one)}") for one in sidecars]
    parts += map_concurrently(read, names, READERS_MAX)
    return CheckpointContent(
        tuple(action for action in actions if not isinstance(action, Sidecar | CheckpointMetadata)),
        pa.concat_tables([part.files for part in parts]),
        pa.concat_tables([part.tombstones for part in parts]),
    )


def _content(storage: Storage, name: str, oldest: int | None) -> CheckpointContent:
    """The whole content of one file, fetched once."""
    if name.endswith(".json"):
        content = read_content(name, storage.read(name))
        found = parse_file_actions([content], _partition_names(content.actions))
        return CheckpointContent(content.actions, found.adds, found.removes)
    with _open(storage, name) as file:
        small = tuple(from_json(kind, body) for kind, body in small_actions_in(file))
        removes = rows_of(file, "remove", TOMBSTONE_SCHEMA, oldest)
        return CheckpointContent(small, rows_of(file, "add", FILE_SCHEMA), removes)


def _small_actions(storage: Storage, name: str, size: int) -> list[Action]:
    if name.endswith(".json"):
        return list(read_content(name, storage.read(name)).actions)
    with _open(storage, name, size if size > WHOLE_BYTES_MAX else None) as file:
        return [from_json(kind, body) for kind, body in small_actions_in(file)]


def _open(storage: Storage, name: str, size: int | None = None) -> Any:
    """Open a Parquet file; remote storage fetches it whole, or by ranges where ``size`` is given."""
    path = storage.local_path(name)
    if path is None and size is not None:
        source: Any = pa.PythonFile(StoredFile(storage, name, size), mode="r")
    elif path is None:
        source = io.BytesIO(storage.read(name))
    elif path.is_file():
        source = str(path)
    else:
        raise FileNotFoundError(name)
    return pq.ParquetFile(
        source, page_checksum_verification=True, pre_buffer=False, coerce_int96_timestamp_unit="us"
    )


def _read_guarded(name: str, read: Callable[[str], T]) -> T:
    try:
        return read(name)
    except CorruptLog as error:
        raise damaged_checkpoint_error(name, str(error)) from error
    except (pa.ArrowException, OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        passing = passing_failure(name, error)
        if passing is not None:
            raise passing from error
        raise damaged_checkpoint_error(name, f"{type(error).__name__}: {error}") from error


def damaged_checkpoint_error(name: str, cause: str) -> CorruptLog:
    """The error for a checkpoint file that cannot be read."""
    return CorruptLog(
        f"The checkpoint file {name} cannot be read.",
        cause=cause,
        remedy="An earlier checkpoint or the commits are used where they suffice; else restore the file.",
        code=CHECKPOINT_DAMAGED,
        file=name,
    )


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _require_v2_shape(actions: Sequence[Action], name: str) -> None:
    headers = sum(isinstance(action, CheckpointMetadata) for action in actions)
    sidecars = any(isinstance(action, Sidecar) for action in actions)
    if headers > 1 or (sidecars and headers == 0):
        raise damaged_checkpoint_error(
            name, f"A V2 checkpoint has one checkpointMetadata action; this one has {headers}."
        )


def sidecar_name(sidecar: Sidecar) -> str:
    """The name of a sidecar in the ``_sidecars`` folder."""
    # Sidecars are always in _sidecars, so only the last part of a path counts.
    return unquote(sidecar.path).rsplit("/", 1)[-1]


def _partition_names(actions: Sequence[Action]) -> tuple[str, ...]:
    for action in actions:
        if isinstance(action, Metadata):
            return physical_partition_names(action)
    return ()


def physical_partition_names(metadata: Metadata) -> tuple[str, ...]:
    """The keys of ``partitionValues``: partition columns by their physical names."""
    if not metadata.partition_columns or not metadata.schema_string:
        return metadata.partition_columns
    key = "delta.columnMapping.physicalName"
    fields = {field["name"]: (field.get("metadata") or {}).get(key) for field in metadata.schema["fields"]}
    return tuple(fields.get(name) or name for name in metadata.partition_columns)
