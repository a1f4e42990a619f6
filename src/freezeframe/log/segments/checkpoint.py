"""Checkpoints: which there are, their parts, and how they are read."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Self, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from freezeframe.errors import CorruptLog, OutcomeUnknown, StorageUnavailable
from freezeframe.log.format.action_columns import FILE_SCHEMA, TOMBSTONE_SCHEMA
from freezeframe.log.format.actions import Action, CheckpointMetadata, Metadata, Sidecar, from_json
from freezeframe.log.primitives.arrow import system_memory
from freezeframe.log.primitives.foreign_parquet import ForeignParquetFile
from freezeframe.log.primitives.listing import (
    CheckpointFiles,
    StoredFile,
    complete_checkpoints,
    list_log,
    sort_listing,
)
from freezeframe.log.primitives.paths import SIDECAR_FOLDER, checkpoint_part_name, in_folder
from freezeframe.log.segments.checkpoint_columns import rows_of, small_actions_in, statistics_of
from freezeframe.log.segments.commit_content import parse_file_actions, read_content
from freezeframe.log.segments.replay import DeferredStatistics
from freezeframe.storage.base import Readable, Storage
from freezeframe.storage.read_ahead import map_concurrently, passing_failure

# Writes a multi-part classic checkpoint: one file per part, valid only when all parts exist.
#
# Parts of two writers must not be mixed, because each writer splits the state differently. The first
# part is therefore created first, by put-if-absent: its creator writes the other parts too, and other
# writers skip that set of names. A crashed writer leaves an incomplete set, which readers ignore and
# log cleanup deletes; the next writer uses a set with one part more.

WRITERS_MAX = 2
SETS_MAX = 8


def write_parts(
    storage: Storage, folder: str, version: int, least: int, content: Callable[[int, int], bytes]
) -> tuple[int, int]:
    """Write a checkpoint of at least ``least`` parts (2 or more): (number of parts, total bytes).

    ``content(part, parts)`` returns the bytes of a part, counted from 1; several threads call it.
    A checkpoint of the same version completed by another writer counts as this one, with 0 bytes.
    """
    for parts in range(least, least + SETS_MAX):
        first = content(1, parts)
        if not _is_ours(storage, _name(folder, version, 1, parts), first):
            listed = sort_listing(list_log(storage, folder, version), version).checkpoint_files
            if any(
                len(checkpoint.files) == parts
                for checkpoint in complete_checkpoints(listed)
                if checkpoint.version == version
            ):
                return parts, 0
            continue

        def put(part: int, parts: int = parts) -> int:
            found = content(part, parts)
            name = _name(folder, version, part, parts)
            try:
                storage.put_if_absent(name, found)
            except FileExistsError as error:
                raise StorageUnavailable(
                    f"The checkpoint's part {name!r} is there already.",
                    cause="Another program is writing the same checkpoint.",
                    remedy="Delete the checkpoint's parts: they can be from two writers.",
                ) from error
            return len(found)

        with ThreadPoolExecutor(min(WRITERS_MAX, parts), "freezeframe-checkpoint") as pool:
            return parts, len(first) + sum(pool.map(put, range(2, parts + 1)))
    raise StorageUnavailable(
        f"The checkpoint of version {version} of {folder!r} could not be written.",
        cause=f"{SETS_MAX} writers began it and did not complete it.",
        remedy="The next due version gets a checkpoint; the log's cleanup deletes the incomplete files.",
    )


def _is_ours(storage: Storage, name: str, content: bytes) -> bool:
    try:
        storage.put_if_absent(name, content)
    except FileExistsError:
        return False
    except OutcomeUnknown:
        return False  # ownership is uncertain; a set with other names is certain to be ours
    return True


def _name(folder: str, version: int, part: int, parts: int) -> str:
    return in_folder(folder, checkpoint_part_name(version, part, parts))


WHOLE_FILE_BYTES_MAX = 256 * 1024
"""Up to this size of a file, reading column by column takes several times what reading all of it does."""


class WholeFile:
    """A decoded table with the methods of ``ParquetFile`` that ``checkpoint_columns`` uses."""

    num_row_groups = 1

    def __init__(self, file: Any) -> None:
        self.schema_arrow = file.schema_arrow
        self._table: pa.Table = file.read(use_threads=False).combine_chunks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: the file is not open."""

    def read_row_group(self, _: int, columns: Sequence[str], *, use_threads: bool = True) -> pa.Table:  # noqa: ARG002
        """Return the top-level columns that the named leaves are of, with all of their fields."""
        return self._table.select(list(dict.fromkeys(name.partition(".")[0] for name in columns)))

    def iter_batches(
        self,
        rows: int,
        row_groups: Sequence[int],  # noqa: ARG002 - there is one
        columns: Sequence[str],
    ) -> Iterator[pa.RecordBatch]:
        """Yield the same columns, so many rows at a time."""
        yield from self.read_row_group(0, columns).to_batches(rows)


# Reading checkpoints of every kind: classic, in parts, V2 as JSON or Parquet with sidecars.
#
# Damage raises ``CorruptLog`` with the code ``CHECKPOINT_DAMAGED`` and the file's name, so that
# ``SnapshotManagement`` can try another checkpoint.

CHECKPOINT_DAMAGED = "CHECKPOINT_DAMAGED"
READERS_MAX = 2
WHOLE_BYTES_MAX = 1 << 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CheckpointContent:
    """Content of a checkpoint: the small actions, and file actions as Arrow columns.

    ``deferred`` are the statistics of the first ``files``, whose ``stats`` are null.
    """

    actions: tuple[Action, ...]
    files: pa.Table
    tombstones: pa.Table
    deferred: DeferredStatistics | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of a checkpoint: its name in the storage and its size in bytes, where known."""

    name: str
    size: int | None


def read_checkpoint_actions(
    storage: Readable, folder: str, checkpoint: CheckpointFiles
) -> tuple[Action, ...]:
    """Only the small actions (protocol, metadata, transactions, domains); file actions are not decoded."""
    found = [_read_guarded(part, partial(_small_actions, storage)) for part in _parts(folder, checkpoint)]
    actions = tuple(action for item in found for action in item)
    _require_v2_shape(actions, in_folder(folder, checkpoint.files[0].name))
    return actions


def read_checkpoint(
    storage: Readable,
    folder: str,
    checkpoint: CheckpointFiles,
    oldest_tombstone: int | None = None,
    *,
    deferred_from: int | None = None,
) -> CheckpointContent:
    """Return the whole checkpoint, sidecars included; its parts are read concurrently.

    Tombstones deleted at or before ``oldest_tombstone`` (ms) are left out of its Parquet files. Where these
    have ``deferred_from`` bytes or more, the statistics of their files are read on first use.
    """
    parts = _parts(folder, checkpoint)
    defers = _defers(parts, deferred_from)
    contents = _contents(storage, parts, oldest_tombstone, defers=defers)
    actions = tuple(action for content in contents for action in content.actions)
    _require_v2_shape(actions, parts[0].name)
    listed = {sidecar_name(item): item.size_in_bytes for item in actions if isinstance(item, Sidecar)}
    sidecars = [_Part(in_folder(folder, f"{SIDECAR_FOLDER}/{name}"), size) for name, size in listed.items()]
    sidecars_defer = _defers(sidecars, deferred_from)
    contents += _contents(storage, sidecars, oldest_tombstone, defers=sidecars_defer)
    later = [*(parts if defers else ()), *(sidecars if sidecars_defer else ())]
    if defers < sidecars_defer:  # deferred statistics are those of the first files
        contents = contents[len(parts) :] + contents[: len(parts)]
    return CheckpointContent(
        tuple(action for action in actions if not isinstance(action, Sidecar | CheckpointMetadata)),
        pa.concat_tables([content.files for content in contents]),
        pa.concat_tables([content.tombstones for content in contents]),
        _deferred(storage, later, contents[: len(later)]),
    )


def _parts(folder: str, checkpoint: CheckpointFiles) -> list[_Part]:
    return [_Part(in_folder(folder, file.name), file.size) for file in checkpoint.files]


def _defers(parts: Sequence[_Part], deferred_from: int | None) -> bool:
    if deferred_from is None or any(part.name.endswith(".json") for part in parts):
        return False
    return sum(part.size or 0 for part in parts) >= max(1, deferred_from)


def _contents(
    storage: Readable, parts: Sequence[_Part], oldest: int | None, *, defers: bool
) -> list[CheckpointContent]:
    read = partial(_content, storage, oldest=oldest, with_statistics=not defers)
    with _memory_for(parts):
        return map_concurrently(lambda part: _read_guarded(part, read), parts, READERS_MAX)


def _memory_for(parts: Sequence[_Part]) -> AbstractContextManager[None]:
    is_large = sum(part.size or 0 for part in parts) > WHOLE_BYTES_MAX
    return system_memory() if is_large else nullcontext()


def _content(
    storage: Readable, part: _Part, *, oldest: int | None, with_statistics: bool
) -> CheckpointContent:
    """Return the whole content of one file, fetched once."""
    if part.name.endswith(".json"):
        content = read_content(part.name, storage.read(part.name))
        metadata = next((item for item in content.actions if isinstance(item, Metadata)), None)
        names = () if metadata is None else physical_partition_names(metadata)
        found = parse_file_actions([content], names)
        return CheckpointContent(content.actions, found.adds, found.removes)
    with _open(storage, part, lambda leaf: with_statistics or not _is_statistics(leaf)) as file:
        small = tuple(from_json(kind, body) for kind, body in small_actions_in(file))
        removes = rows_of(file, "remove", TOMBSTONE_SCHEMA, oldest)
        files = rows_of(file, "add", FILE_SCHEMA)
        if with_statistics and files.num_rows:
            index = FILE_SCHEMA.get_field_index("stats")
            files = files.set_column(index, FILE_SCHEMA.field("stats"), statistics_of(file))
        return CheckpointContent(small, files, removes)


def _deferred(
    storage: Readable, parts: Sequence[_Part], contents: Sequence[CheckpointContent]
) -> DeferredStatistics | None:
    """Defer the statistics of the files of ``parts`` (read as ``contents``) until their first use."""
    if not parts:
        return None
    counts = [content.files.num_rows for content in contents]

    def read_one(part: _Part) -> pa.ChunkedArray:
        with _open(storage, part, _is_statistics) as file:
            return statistics_of(file)

    @cache
    def read() -> pa.ChunkedArray:
        with _memory_for(parts):
            found = map_concurrently(lambda part: _read_guarded(part, read_one), parts, READERS_MAX)
        for part, count, texts in zip(parts, counts, found, strict=True):
            if len(texts) != count:
                raise damaged_checkpoint_error(part.name, f"It had {count} files and has {len(texts)} now.")
        return pa.chunked_array([chunk for texts in found for chunk in texts.chunks], pa.string())

    return DeferredStatistics(read, np.ones(sum(counts), np.bool_))


def _is_statistics(leaf: str) -> bool:
    return leaf == "add.stats" or leaf.startswith("add.stats_parsed")


def _small_actions(storage: Readable, part: _Part) -> list[Action]:
    if part.name.endswith(".json"):
        return list(read_content(part.name, storage.read(part.name)).actions)
    with _open(storage, part, lambda leaf: not leaf.startswith(("add.", "remove."))) as file:
        return [from_json(kind, body) for kind, body in small_actions_in(file)]


def _open(storage: Readable, part: _Part, is_needed: Callable[[str], bool]) -> Any:
    """Open a Parquet file; a large one of a remote storage is fetched by the columns that are needed."""
    if part.size is not None and part.size <= WHOLE_FILE_BYTES_MAX:
        file = _parquet(pa.BufferReader(storage.read(part.name)))
        with suppress(pa.ArrowException, OSError):  # in a column, which may be one that is not needed
            return WholeFile(file)
        return file
    path = storage.local_path(part.name)
    if path is not None:
        if not path.is_file():
            raise FileNotFoundError(part.name)
        return _parquet(str(path))
    if part.size is None or part.size <= WHOLE_BYTES_MAX:
        return _parquet(io.BytesIO(storage.read(part.name)))
    stored = StoredFile(storage, part.name, part.size)
    file = _parquet(pa.PythonFile(stored, mode="r"))
    found, metadata = [], file.metadata
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            if is_needed(column.path_in_schema):
                first = column.dictionary_page_offset or column.data_page_offset
                found.append((min(first, column.data_page_offset), column.total_compressed_size))
    stored.fetch(found)
    return file


def _parquet(source: Any) -> Any:
    return ForeignParquetFile(source, page_checksum_verification=True, pre_buffer=False)


def _read_guarded(part: _Part, read: Callable[[_Part], T]) -> T:
    try:
        return read(part)
    except CorruptLog as error:
        raise damaged_checkpoint_error(part.name, str(error)) from error
    except (pa.ArrowException, OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        passing = passing_failure(part.name, error)
        if passing is not None:
            raise passing from error
        raise damaged_checkpoint_error(part.name, f"{type(error).__name__}: {error}") from error


def damaged_checkpoint_error(name: str, cause: str) -> CorruptLog:
    """Return the error for a checkpoint file that cannot be read."""
    return CorruptLog(
        f"The checkpoint file {name} cannot be read.",
        cause=cause,
        remedy="An earlier checkpoint or the commits are used where they suffice; else restore the file.",
        code=CHECKPOINT_DAMAGED,
        file=name,
    )


def _require_v2_shape(actions: Sequence[Action], name: str) -> None:
    headers = sum(isinstance(action, CheckpointMetadata) for action in actions)
    sidecars = any(isinstance(action, Sidecar) for action in actions)
    if headers > 1 or (sidecars and headers == 0):
        raise damaged_checkpoint_error(
            name, f"A V2 checkpoint has one checkpointMetadata action; this one has {headers}."
        )


def sidecar_name(sidecar: Sidecar) -> str:
    """Return the name of a sidecar in the ``_sidecars`` folder."""
    # Sidecars are always in _sidecars, so only the last part of a path counts.
    return unquote(sidecar.path).rsplit("/", 1)[-1]


def physical_partition_names(metadata: Metadata) -> tuple[str, ...]:
    """Return the keys of ``partitionValues``: partition columns by their physical names."""
    if not metadata.partition_columns or not metadata.schema_string:
        return metadata.partition_columns
    key = "delta.columnMapping.physicalName"
    fields = {field["name"]: (field.get("metadata") or {}).get(key) for field in metadata.schema["fields"]}
    return tuple(fields.get(name) or name for name in metadata.partition_columns)
