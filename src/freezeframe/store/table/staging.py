"""Staged files of an update."""

import functools
import hashlib
import io
import itertools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.engine.frames.batch import bounded_rows, repeats
from freezeframe.engine.protocol import UNIQUE, TableEngine
from freezeframe.errors import StorageNotShared, StorageUnavailable
from freezeframe.log import DeltaLog, Snapshot
from freezeframe.log.format.schema import Mode
from freezeframe.log.primitives.foreign_parquet import parquet_leaves
from freezeframe.log.primitives.paths import LOG_FOLDER, parse_name
from freezeframe.log.scan.data_files import parquet_source
from freezeframe.log.scan.file_statistics import bounded_columns, file_statistics, statistics_text
from freezeframe.log.segments.commit import commit_name
from freezeframe.log.table.row_deletion import physical_rows
from freezeframe.observation import observe
from freezeframe.storage import Storage
from freezeframe.storage.base import FileStatus, OverlayStorage
from freezeframe.storage.local import failure, make_private, sync_file
from freezeframe.storage.read_ahead import map_concurrently, reads_of
from freezeframe.store.model.directory import TablePlace
from freezeframe.store.schema.columns import is_mapped
from freezeframe.store.table.reader import sort_rows

# Each attempt has a folder of its own inside the stream's table, because two Spark writers in one
# folder delete each other's temporary files. Files are made durable before a commit
# references them; unreferenced files are deleted once the outcome is known, and retained while it is
# unknown.

# Each group has dictionaries of its own: a thirty-second of it doubles a file whose texts repeat.
_GROUP_ROWS = 250_000
_DATA_FILE: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,  # so that a damaged page is found and never read as rows
    "store_schema": False,  # Arrow's own schema would only repeat Parquet's
    "coerce_timestamps": "us",
}
_PIECES_FILE: dict[str, Any] = {"compression": "zstd", "store_schema": False, "coerce_timestamps": "us"}
_KEYS = "keys.parquet"
_PIECES = "pieces.parquet"
_GROUP_BYTES = 16 * 1024 * 1024
_FRESH_BYTES_MAX = 8 * 1024 * 1024
_SMALL_BYTES_MAX = 1024 * 1024
# Files in a bucket that are larger together are hashed by the engine that wrote them.
_READ_BYTES_MAX = 64 * 1024 * 1024
_HASHED_BYTES_MAX = 512 * 1024 * 1024
_CHUNK_BYTES = 8 * 1024 * 1024
# In memory; a file of these rows is four to ten times smaller.
_PART_BYTES = 256 * 1024 * 1024
SYNCS_MAX = 8
"""So many files are made durable side by side."""
_LANDED = "landed"
# Spark ignores file names with this prefix.
_BEGUN = "_begun"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file for a commit to name, once it is durable; ``path`` is relative to the table's folder."""

    path: str
    size: int
    modified_ms: int
    sha256: str
    statistics: str


class StagingFolder:
    """One folder of staged files of a table, below the table's own."""

    def __init__(self, table: TablePlace, name: str, *, is_synced_later: bool = False) -> None:
        self._storage = table.storage
        self.base = table.table
        self._name = name
        self._is_synced_later = is_synced_later
        self._unsynced: list[Path] = []
        # The content of small files until they are sealed or released. Of files in a bucket the names of all
        # that this process wrote, and bytes and SHA-256 of those that were hashed.
        self._fresh: dict[str, bytes] = {}
        self._hashed: dict[str, tuple[int, str]] = {}
        self._own: set[str] = set()
        self._is_shared = False

    @property
    def name(self) -> str:
        """The attempt's folder, below the table's."""
        return self._name

    @property
    def folder_uri(self) -> str:
        """The parent folder of the attempt's folder."""
        return self._storage.uri(self.base)

    def share(self) -> None:
        """Note that other processes write into the folder, so that what they leave is discarded as well."""
        self._is_shared = True

    def hashes(self) -> dict[str, tuple[int, str]]:
        """Return bytes and SHA-256 of the files that were written in a bucket, by their names there."""
        if self._storage.local_path(self._below()) is not None:
            return {}
        fresh = {
            name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in self._fresh.items()
        }
        return fresh | self._hashed

    def take_hashes(self, hashes: Mapping[str, tuple[int, str]]) -> None:
        """Take the hashes of files that another process wrote for this attempt, once all of them are there.

        Raises:
            StorageNotShared: one of them is missing, or has another size.
        """
        sizes = self.sizes([name.removeprefix(f"{self.base}/") for name in hashes])
        for name, (size, _) in hashes.items():
            if sizes[name] != size:
                raise StorageNotShared(
                    f"The file {name!r} has {sizes[name]:,} bytes, and {size:,} were written.",
                    cause="Another process replaced it. Nothing was committed.",
                    remedy="Repeat the update.",
                    file=name,
                )
        self._hashed |= hashes

    def begin_batch(self) -> str:
        """Return the folder for the engine's copy of a Spark frame."""
        self._begin(f"{_LANDED}/{UNIQUE}")
        return self._begin(_LANDED)

    def _begin(self, part: str) -> str:
        """Return the folder's URI. In a bucket it gets a first object, else Hadoop leaves a folder marker."""
        self._is_shared = True
        if self._storage.local_path(self._below()) is None:
            self._storage.replace(self._below(part, _BEGUN), b"1")
        return self._storage.uri(self._below(part))

    def uri(self, path: str) -> str:
        """Return a staged file, by the path that the methods below give it, as the engine opens it."""
        return self._storage.uri(f"{self.base}/{path}")

    def batch_paths(self, names: Iterable[str]) -> tuple[str, ...]:
        """Paths, relative to the table, of files that the engine wrote to ``begin_batch()``."""
        return tuple(f"{self._name}/{_LANDED}/{name}" for name in names)

    def prepare(self) -> None:
        """Create the attempt's folder, writable for Python and Spark; it is durable when its files are."""
        folder = self._storage.local_path(self._below())
        if folder is not None:
            try:
                # Another process may have made the table's folder, and not have synced it yet.
                self._unsynced += [*(new.parent for new in make_private(folder)), folder.parent.parent]
            except OSError as error:
                raise failure("create", str(folder), error) from error

    def write(
        self,
        batches: Iterable[pa.Table],
        schema: Mapping[str, Any],
        order: Sequence[str] = (),
        label: str = "",
    ) -> tuple[str, ...]:
        """Write rows, which come in batches, as Parquet files of a sensible size; return their paths.

        Every batch has the columns of ``schema``, under whose physical names they are written. Within
        a file the rows are sorted by the columns of ``order``. ``label`` names the files; without one it is
        the attempt's name.
        """
        paths = []
        for number, part in enumerate(_parts(batches, _PART_BYTES)):
            with observe("write"):
                rows = sort_rows(pa.concat_tables(part), order)
                rows = physical_rows(rows, schema["fields"], "name" if is_mapped(schema) else "none")
                part.clear()  # otherwise the rows would be held twice while they are written
                path = f"{self._name}/rows-{label or self._name}-{number}.parquet"
                options = {**_DATA_FILE, "row_group_size": _GROUP_ROWS, **_column_options(rows)}
                write = functools.partial(pq.write_table, rows, **options)
                self._put(f"{self.base}/{path}", write, rows.nbytes)
            paths.append(path)
        return tuple(paths)

    def write_streamed(
        self, pieces: Iterable[pa.Table], schema: Mapping[str, Any], label: str
    ) -> tuple[str, ...]:
        """Write rows as ``write`` does, in the order in which they come, holding a row group at a time."""
        mode: Mode = "name" if is_mapped(schema) else "none"
        groups = (
            physical_rows(pa.concat_tables(part), schema["fields"], mode)
            for part in _parts(pieces, _GROUP_BYTES, _GROUP_ROWS)
        )
        paths: list[str] = []
        for first in groups:
            path = f"{self._name}/rows-{label}-{len(paths)}.parquet"
            file = _until(itertools.chain((first,), groups), _PART_BYTES)
            options = {**_DATA_FILE, **_column_options(first)}
            self._stream(f"{self.base}/{path}", functools.partial(_write_groups, file, first.schema, options))
            paths.append(path)
        return tuple(paths)

    def write_pieces(self, pieces: Iterable[pa.Table], schema: pa.Schema) -> str:
        """Write rows that come piece by piece as one Parquet file, holding one piece; the file's path.

        It is for the engine to read, not for a commit to name: it is not made durable.
        """
        path = f"{self._name}/{_PIECES}"
        groups = (pa.concat_tables(part) for part in _parts(pieces, _GROUP_BYTES))
        options = {**_PIECES_FILE, "write_statistics": bounded_columns(schema)}
        self._stream(f"{self.base}/{path}", functools.partial(_write_groups, groups, schema, options))
        return path

    def _stream(self, name: str, write: Callable[[Any], None]) -> None:
        """Write a file that may be larger than memory."""
        local = self._storage.local_path(name)
        if local is not None:
            try:
                local.touch(mode=0o600)  # PyArrow would make it readable by all
                write(local)
            except OSError as error:
                raise failure("write", str(local), error) from error
            return
        with tempfile.TemporaryFile() as file:
            try:
                write(file)
                size = file.seek(0, io.SEEK_END)
                file.seek(0)
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                file.seek(0)
            except OSError as error:
                raise failure("write", tempfile.gettempdir(), error) from error
            self._own.add(name)
            self._storage.put_if_absent(name, iter(functools.partial(file.read, _CHUNK_BYTES), b""))
            self._hashed[name] = size, digest

    def write_keys(self, keys: pa.Table) -> str:
        """Write the batch's keys, in order, as a Parquet file, and return its path."""
        path = f"{self._name}/{_KEYS}"
        options = {"compression": "none", "write_statistics": bounded_columns(keys.schema)}
        self._put(f"{self.base}/{path}", functools.partial(pq.write_table, keys, **options), keys.nbytes)
        return path

    def bytes_of(self, paths: Sequence[str]) -> int:
        """Return the bytes of staged files together, which are in one folder."""
        return sum(self.sizes(paths).values())

    def read_batch(self, paths: Sequence[str], bytes_max: int) -> pa.Table | None:
        """Return the rows of a landed batch in memory; None if they take more than ``bytes_max`` there.

        Files say little of that: what repeats itself takes hardly any bytes in them.
        """
        if self.bytes_of(paths) > bytes_max:
            return None
        return bounded_rows((self._open(f"{self.base}/{path}") for path in paths), bytes_max)

    def read_batch_columns(self, paths: Sequence[str], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Return some columns of a landed batch, one piece in memory at a time."""
        for path in paths if columns else ():
            with self._open(f"{self.base}/{path}") as file:
                stored = set(file.schema_arrow.names)  # a column without a type is in no file
                wanted = [name for name in columns if name in stored]
                for batch in file.iter_batches(columns=wanted) if wanted else ():
                    yield pa.Table.from_batches([batch])

    @contextmanager
    def _open(self, name: str) -> Iterator[pq.ParquetFile]:
        with (
            reads_of(name),
            pq.ParquetFile(
                self._storage.local_path(name) or io.BytesIO(self._storage.read(name)),
                coerce_int96_timestamp_unit="us",
                pre_buffer=False,  # otherwise the iteration holds all bytes of the file
            ) as file,
        ):
            yield file

    def store(self, name: str, content: bytes) -> None:
        """Write a file of the table, durable when the call returns; ``name`` is below the table's folder."""
        self._own.add(f"{self.base}/{name}")
        self._storage.put_if_absent(f"{self.base}/{name}", content)

    def hash_by(self, engine: TableEngine, paths: Sequence[str]) -> None:
        """Have the engine hash files of a bucket that it wrote, where they are large together.

        So what Spark merges on a cluster does not pass through this process, except for files that are too
        large for the memory of a task.
        """
        if self._storage.local_path(self._below()) is not None:
            return
        known = self._fresh.keys() | self._hashed.keys()
        unknown = [path for path in paths if f"{self.base}/{path}" not in known]
        others = self.sizes(unknown)
        if sum(others.values()) <= _READ_BYTES_MAX:
            return
        small = [name for name, size in others.items() if size <= _HASHED_BYTES_MAX]
        found = engine.digests([self._storage.uri(name) for name in small]) if small else {}
        for name, size in others.items():
            digest = found.get(name.rpartition("/")[2]) or self._hash(name, size)
            self._hashed[name] = size, digest

    def _hash(self, name: str, size: int) -> str:
        digest = hashlib.sha256()
        for offset in range(0, size, _CHUNK_BYTES):
            digest.update(self._read(name, offset, _CHUNK_BYTES))
        return digest.hexdigest()

    @observe("seal")
    def seal(self, paths: Iterable[str], schema: Mapping[str, Any]) -> tuple[DataFile, ...]:
        """Make files durable and read their statistics from their footers for the commit.

        Spark does not fsync what it writes, so without this a power loss could leave a commit that
        names files which are not there. With ``is_synced_later`` the files are only noted: the commit
        calls ``sync_sealed`` for them.
        """
        sealed = tuple(self._seal_file(path, schema) for path in paths)
        folders = {folder for file in sealed for folder in PurePosixPath(self.base, file.path).parents}
        root = PurePosixPath(self.base)
        # Each folder between the file and the table; deepest first.
        for folder in sorted({root, *(each for each in folders if each.is_relative_to(root))}, reverse=True):
            local = self._storage.local_path(str(folder))
            if local is not None:
                self._unsynced.append(local)
        if not self._is_synced_later:
            sync_sealed([self])
        return sealed

    def release(self) -> None:
        """Hold no content of files any longer: what was not sealed by now, such as a batch's keys, is not."""
        self._fresh.clear()

    def take_unsynced(self) -> list[Path]:
        """Return the files and folders that are not durable yet, which whoever asks makes durable."""
        unsynced, self._unsynced = self._unsynced, []
        return unsynced

    def discard(self, keep: Iterable[str] = ()) -> None:
        """Delete what no commit references; never raises, for the call's own outcome matters more."""
        kept = {f"{self.base}/{path}" for path in keep}
        folder = self._storage.local_path(self._below())
        if folder is not None and not kept:
            shutil.rmtree(folder, ignore_errors=True)
            return
        try:
            if folder is None:
                self._delete_below(kept)
            else:
                self._delete_all_but(kept)
        except (StorageUnavailable, OSError):
            return  # left for gc, which deletes what nothing references

    def _put(self, name: str, write: Callable[[Path | io.BytesIO], None], size: int) -> None:
        """Write a file of rows that take ``size`` bytes in memory."""
        path, buffer = self._storage.local_path(name), io.BytesIO()
        if path is not None:
            try:
                path.touch(mode=0o600)  # PyArrow would make it readable by all
                if size > _SMALL_BYTES_MAX:
                    write(path)
                    return
                write(buffer)  # by Arrow a small file is written in twice the time, and is then read again
                path.write_bytes(buffer.getvalue())
            except OSError as error:
                raise failure("write", str(path), error) from error
        else:
            write(buffer)
            self._own.add(name)
            self._storage.put_if_absent(name, buffer.getvalue())
        content = buffer.getvalue()
        if len(content) <= _FRESH_BYTES_MAX:
            self._fresh[name] = content
        else:
            self._hashed[name] = len(content), hashlib.sha256(content).hexdigest()

    def _seal_file(self, path: str, schema: Mapping[str, Any]) -> DataFile:
        name = f"{self.base}/{path}"
        local = self._storage.local_path(name)
        if local is None:
            # The store verifies the upload: each request has a checksum.
            if name in self._hashed:
                size, digest = self._hashed[name]
                source = parquet_source(self._storage, name, size)
                return DataFile(path, size, 0, digest, statistics_text(file_statistics(source, schema)))
            content = self._fresh.pop(name, None) or self._read(name)
            statistics = statistics_text(file_statistics(content, schema))
            return DataFile(path, len(content), 0, hashlib.sha256(content).hexdigest(), statistics)
        self._unsynced.append(local)
        fresh = self._fresh.pop(name, None)
        with reads_of(name):
            status = local.stat()
            with io.BytesIO(fresh) if fresh else local.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        statistics = statistics_text(file_statistics(fresh or local, schema))
        return DataFile(path, status.st_size, status.st_mtime_ns // 1_000_000, digest, statistics)

    def _read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        try:
            return self._storage.read(name, offset, length)
        except FileNotFoundError as error:  # the engine said that it is there
            raise failure("read", name, error) from error

    def _folders(self) -> tuple[str, ...]:
        """Return the attempt's folders, the deepest first; those below its own are the engine's."""
        return (*((self._below(_LANDED),) if self._is_shared else ()), self._below())

    def _delete_below(self, kept: set[str]) -> None:
        if self._is_shared:  # the engine has written there, too
            self._own |= {self._below(item.name) for item in self._storage.list_below(self._below())}
        for name in sorted(self._own - kept):
            self._storage.delete(name)
            self._own.discard(name)

    def _delete_all_but(self, kept: set[str]) -> None:
        for part in self._folders():
            for status in list(self._storage.list_from(part)):
                name = f"{part}/{status.name}"
                if name not in kept:
                    self._storage.delete(name)
            self._remove_if_empty(part)

    def _remove_if_empty(self, part: str) -> None:
        folder = self._storage.local_path(part)
        if folder is None or not folder.is_dir():
            return
        for left_over in folder.glob(".*.crc"):  # Hadoop's side files, hidden from listings
            left_over.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()

    def sizes(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the bytes of staged files, which are in one folder, by their names in the storage.

        Raises:
            StorageNotShared: one of them is missing.
        """
        if not paths:
            return {}
        folder = f"{self.base}/{paths[0]}".rpartition("/")[0]
        sizes = {f"{folder}/{item.name}": item.size for item in self._storage.list_from(folder)}
        names = [f"{self.base}/{path}" for path in paths]
        missing = next((name for name in names if name not in sizes), None)
        if missing is not None:  # without its rows a full extract would delete the stored ones
            raise StorageNotShared(
                f"The file {missing!r} was written for this update, and is missing.",
                cause="Another process removed it, or sees another disk under the same path."
                " Nothing was committed.",
                remedy="Repeat the update, in a folder that all of them see under the same path.",
                file=missing,
            )
        return {name: sizes[name] for name in names}

    def _below(self, *parts: str) -> str:
        return "/".join((self.base, self._name, *parts))


def sync_sealed(folders: Iterable[StagingFolder]) -> None:
    """Sync what was sealed in the folders, side by side: a disk syncs many files as fast as one."""
    paths = dict.fromkeys(path for folder in folders for path in folder.take_unsynced())

    def sync(path: Path) -> None:
        try:
            sync_file(path)  # or the folder
        except OSError as error:
            raise failure("sync", str(path), error) from error

    map_concurrently(sync, list(paths), SYNCS_MAX)


def _dictionary_columns(rows: pa.Table) -> list[str]:
    """Return the columns that get dictionaries in a new Parquet file: PyArrow's ``use_dictionary``.

    They are those whose values repeat. A dictionary of others is given up when it is large: the file is a
    quarter larger then, and takes half again as long to write.
    """
    return [
        ".".join(path)
        for field in rows.schema
        for path, _ in parquet_leaves(field)
        if pa.types.is_nested(field.type) or repeats(rows[field.name], _GROUP_ROWS)
    ]


def _column_options(rows: pa.Table) -> dict[str, Any]:
    """Return PyArrow's options of a new data file that follow from its columns."""
    return {"write_statistics": bounded_columns(rows.schema), "use_dictionary": _dictionary_columns(rows)}


def _parts(
    pieces: Iterable[pa.Table], bytes_min: int, rows_min: int = sys.maxsize
) -> Iterator[list[pa.Table]]:
    """Return the pieces, grouped into parts of at least ``bytes_min`` in memory or ``rows_min`` rows."""
    part: list[pa.Table] = []
    held = rows = 0
    for piece in pieces:
        part.append(piece)
        held += piece.nbytes
        rows += len(piece)
        if held >= bytes_min or rows >= rows_min:
            yield part
            part, held, rows = [], 0, 0
    if part:
        yield part


def _until(groups: Iterator[pa.Table], bytes_min: int) -> Iterator[pa.Table]:
    """Yield the groups up to the one with which they take so many bytes in memory."""
    held = 0
    for group in groups:
        yield group
        held += group.nbytes
        if held >= bytes_min:
            return


def _write_groups(
    groups: Iterable[pa.Table], schema: pa.Schema, options: Mapping[str, Any], where: Any
) -> None:
    with pq.ParquetWriter(where, schema, **options) as writer:
        for group in groups:
            writer.write_table(group, _GROUP_ROWS)


class StagedStorage(OverlayStorage):
    """``inner`` with the files of ``commits`` as the only ones of the table after version ``base``."""

    def __init__(
        self, inner: Storage, table: str, base: int, commits: Mapping[str, bytes], timestamp_ms: int
    ) -> None:
        super().__init__(inner, commits, timestamp_ms)
        self._log_folder = f"{table}/{LOG_FOLDER}"
        self.base = base

    def list_from(self, folder: str, start: str = "") -> Iterator[FileStatus]:
        """See ``OverlayStorage.list_from``; the log's newer files are left out."""
        listed = super().list_from(folder, start)
        if folder.strip("/") != self._log_folder:
            return listed
        return (self._own(status) for status in listed if self._is_visible(status.name))

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``OverlayStorage.read``; overlaid files take precedence."""
        content = self._files.get(name)
        if content is None:
            return super().read(name, offset, length)
        return content[offset:] if length is None else content[offset : offset + length]

    def _own(self, status: FileStatus) -> FileStatus:
        content = self._files.get(f"{self._log_folder}/{status.name}")
        return status if content is None else FileStatus(status.name, len(content), self._modified_ms)

    def _is_visible(self, name: str) -> bool:
        meaning = parse_name(name)
        newer = meaning is not None and meaning.version > self.base
        return not newer or f"{self._log_folder}/{name}" in self._files


def staged_view(table: TablePlace, base: int, contents: tuple[str, ...], timestamp_ms: int) -> Snapshot:
    """Return the table at version ``base`` plus uncommitted commits, visible to this process only."""
    numbered = enumerate(contents, start=base + 1)
    commits = {commit_name(table.table, version): text.encode() for version, text in numbered}
    storage = StagedStorage(table.storage, table.table, base, commits, timestamp_ms)
    return DeltaLog(storage, table.table).current_snapshot
