"""Writes a checkpoint of a version's state.

A checkpoint is redundant: readers get the same result without it. It is created by put-if-absent;
an existing file counts as success, because all checkpoints of a version are equivalent. The hint is
written afterwards and only ever moves forward.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.errors import InvalidOption
from freezeframe.log.actions.action_columns import TOMBSTONE_SCHEMA
from freezeframe.log.actions.actions import Action, CheckpointMetadata, Sidecar, to_json_line
from freezeframe.log.actions.protocol import has_reader_feature
from freezeframe.log.checkpoints.checkpoint_parts import write_parts
from freezeframe.log.checkpoints.checkpoint_rows import (
    file_rows,
    schemas_for,
    small_rows,
    with_structs,
)
from freezeframe.log.checkpoints.hint import Hint, hint_text, read_hint
from freezeframe.log.primitives.paths import HINT_NAME, SIDECAR_FOLDER, checkpoint_name, v2_checkpoint_name
from freezeframe.log.replay.replay import select_rows, younger_than
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.storage.base import Storage

POLICY_KEY = "delta.checkpointPolicy"
SIDECAR_FILES_MAX = 50_000
PART_ACTIONS_MAX = 250_000
"""A classic checkpoint of more actions is written in parts: see decision 0021 for the figure."""

_ONE_GROUP_ROWS_MAX = 1000

_log = logging.getLogger(__name__)


def write_checkpoint(
    snapshot: Snapshot, *, part_actions_max: int = PART_ACTIONS_MAX, tombstones_after: int | None = None
) -> Hint:
    """Write a checkpoint of the snapshot's version, of the kind in the table's policy, and the hint.

    Expired tombstones, expired transactions and removed domains are left out, as in reads; so are
    tombstones of files that were removed up to ``tombstones_after`` (ms), where these files are deleted.
    A classic checkpoint of more than ``part_actions_max`` actions has several parts.

    Raises:
        InvalidOption: the table does not exist.
        CorruptLog: the state cannot be read.
        StorageUnavailable: readers ignore the incomplete checkpoint; try again.
    """
    if snapshot.version < 0:
        raise InvalidOption(
            "A table without a version has nothing to checkpoint.",
            remedy="Commit a first version.",
        )
    folder = snapshot.segment.folder
    asks_v2 = snapshot.metadata.configuration.get(POLICY_KEY) == "v2"
    if asks_v2 and has_reader_feature(snapshot.protocol, "v2Checkpoint"):
        hint = _write_v2(snapshot, folder, tombstones_after)
    else:
        hint = _write_classic(snapshot, folder, part_actions_max, tombstones_after)
    write_hint(snapshot.storage, folder, hint)
    return hint


def write_hint(storage: Storage, folder: str, hint: Hint) -> bool:
    """Point ``_last_checkpoint`` to a checkpoint; False where it already points to a later one."""
    present, _ = read_hint(storage, folder, sleep=lambda _: None)
    if present is not None and present.version > hint.version:
        return False
    storage.replace(_path(folder, HINT_NAME), hint_text(hint).encode())
    return True


def _write_classic(
    snapshot: Snapshot, folder: str, part_actions_max: int, tombstones_after: int | None
) -> Hint:
    files, tombstones = _state(snapshot, tombstones_after)
    schema, _ = schemas_for(files)
    small = small_rows(snapshot.small_actions(snapshot.state.heads), schema)
    total = files.num_rows + tombstones.num_rows

    def content(part: int, parts: int) -> bytes:
        begin, end = total * (part - 1) // parts, total * part // parts
        # Tombstones follow the files; a slice beyond the end of either is empty.
        adds = files.slice(begin, end - begin)
        at = max(0, begin - files.num_rows)
        removes = tombstones.slice(at, max(0, end - files.num_rows) - at)
        rows = [*file_rows(adds, "add", schema), *file_rows(removes, "remove", schema)]
        return parquet_bytes(schema, [small, *rows] if part == 1 else rows)

    rows = small.num_rows + total
    count = -(-total // part_actions_max)
    if count > 1:
        parts, size = write_parts(snapshot.storage, folder, snapshot.version, count, content)
    else:
        whole = content(1, 1)
        _create(snapshot.storage, _path(folder, checkpoint_name(snapshot.version)), whole)
        parts, size = None, len(whole)
    return Hint(snapshot.version, rows, parts, size or None, num_of_add_files=files.num_rows)


def _write_v2(snapshot: Snapshot, folder: str, tombstones_after: int | None) -> Hint:
    files, tombstones = _state(snapshot, tombstones_after)
    _, schema = schemas_for(files)
    sidecars = [
        _write_sidecar(snapshot.storage, folder, part)
        for part in [*_parts(files, "add", schema), *_parts(tombstones, "remove", schema)]
    ]
    lines: list[Action] = [
        CheckpointMetadata(snapshot.version),
        *snapshot.small_actions(snapshot.state.heads),
        *sidecars,
    ]
    content = "".join(f"{to_json_line(action)}\n" for action in lines).encode()
    name = v2_checkpoint_name(snapshot.version, str(uuid.uuid4()), "json")
    _create(snapshot.storage, _path(folder, name), content)
    rows = len(lines) + files.num_rows + tombstones.num_rows
    size = len(content) + sum(one.size_in_bytes for one in sidecars)
    return Hint(snapshot.version, rows, size_in_bytes=size, num_of_add_files=files.num_rows)


def _state(snapshot: Snapshot, tombstones_after: int | None) -> tuple[pa.Table, pa.Table]:
    tombstones = snapshot.tombstones
    if tombstones_after is not None:
        tombstones = select_rows(tombstones, younger_than(tombstones["deletion_timestamp"], tombstones_after))
    # dataChange is false in a checkpoint; readers of V2 checkpoints require it for tombstones.
    flags = pa.array([False] * tombstones.num_rows, pa.bool_())
    index = tombstones.schema.get_field_index("data_change")
    tombstones = tombstones.set_column(index, TOMBSTONE_SCHEMA.field("data_change"), flags)
    return with_structs(snapshot.files, snapshot.metadata, snapshot.time_zone), tombstones


def _parts(rows: pa.Table, kind: str, schema: pa.Schema) -> Iterable[pa.Table]:
    for at in range(0, rows.num_rows, SIDECAR_FILES_MAX):
        part = rows.slice(at, SIDECAR_FILES_MAX).combine_chunks()
        yield pa.concat_tables(list(file_rows(part, kind, schema)))


def _write_sidecar(storage: Storage, folder: str, rows: pa.Table) -> Sidecar:
    content = parquet_bytes(rows.schema, [rows])
    name = f"{uuid.uuid4()}.parquet"
    _create(storage, _path(folder, f"{SIDECAR_FOLDER}/{name}"), content)
    found = next(
        status for status in storage.list_from(_path(folder, SIDECAR_FOLDER), name) if status.name == name
    )
    return Sidecar(name, found.size, found.modified_ms)


def parquet_bytes(schema: pa.Schema, tables: Sequence[pa.Table]) -> bytes:
    """The tables as one Parquet file with page checksums, readable by every checkpoint reader."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="snappy", write_page_checksum=True) as writer:
        # A row group for each kind of action, so that readers skip the others; few are read at once.
        is_small = sum(table.num_rows for table in tables) <= _ONE_GROUP_ROWS_MAX
        for table in [pa.concat_tables(tables)] if is_small and tables else tables:
            writer.write_table(table)
    return bytes(sink.getvalue())


def _create(storage: Storage, name: str, content: bytes) -> None:
    try:
        storage.put_if_absent(name, content)
    except FileExistsError:
        _log.debug("The checkpoint %s is there already", name)


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
