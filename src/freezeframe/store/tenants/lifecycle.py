"""Tenants made, copied and deleted."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from freezeframe import progress
from freezeframe.clock import now_ms
from freezeframe.errors import ConflictError, CorruptData, FreezeframeError
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log.segments.commit import Committed
from freezeframe.settings import Settings
from freezeframe.storage import FileStatus, PrefixStorage, Storage
from freezeframe.storage.read_ahead import map_concurrently
from freezeframe.store.blobs.blob_store import CHUNK_BYTES, Blob, FileNames, Measured, blob_chunks, write_blob
from freezeframe.store.blobs.sealing import DataKey, data_key, seal, unseal
from freezeframe.store.model.directory import (
    KEYS_FOLDER,
    OURS,
    ensure_format,
    remove_job_roots,
    remove_waiting,
    table_folder,
    tenant_folder,
)
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import NO_REQUEST, RequestContext
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.table.export import PortableFile, portable_stream
from freezeframe.store.tenant_log.entry import Change, Entry, FileChange, StreamChange
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import (
    keep_long_commits,
    require_no_case_twin,
    roll_forward,
    shorten_entry,
    table_snapshot,
)
from freezeframe.store.tenant_log.state import NO_VERSION, HeldFile, TenantState

# Writing a file is mostly waiting: for the disk's sync or the bucket's response.
WRITERS_MAX = 16


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is to be added; ``is_sealed`` encrypts it with the new tenant's own key."""

    path: FilePath
    content: Callable[[], Iterable[bytes]]
    is_sealed: bool


class TenantBuilder:
    """Builder of a new tenant in an empty storage."""

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self.identity = CommitIdentity(uuid.uuid4().hex, now_ms())
        self._storage = storage
        self._settings = settings
        self._streams: dict[str, StreamChange] = {}
        self._files: dict[str, FileChange] = {}
        self._names = FileNames()

    def add_table_file(self, stream: StreamName, file: PortableFile, content: Iterable[bytes]) -> None:
        """Copy a file of a table, verified against its recorded size and SHA-256."""
        measured = Measured(content)
        name = f"{table_folder(stream)}/{file.path}"
        self._storage.put_if_absent(name, measured)
        wrong_size = file.size is not None and file.size != measured.size
        if wrong_size or (file.sha256 is not None and file.sha256 != measured.digest.hex()):
            raise CorruptData(
                f"The file {file.path!r} of the stream {str(stream)!r} is damaged.",
                cause=f"It has {measured.size} bytes, and not the SHA-256 that it was written with.",
                remedy="Restore the tenant's directory from a backup.",
                path=file.path,
            )

    def add_stream(self, name: StreamName, content: str) -> None:
        """Add a stream with this single table commit."""
        require_no_case_twin(self._streams, name)
        self._streams[str(name)] = StreamChange(name, 0, content, Counts())

    def add_files(self, files: Sequence[NewFile]) -> None:
        """Write files concurrently from their plain content; all are durable when this returns."""
        for file in files:
            self._names.require(file.path)
            self._names.add(str(file.path))
        key = None
        if any(file.is_sealed for file in files):
            key = data_key(self._storage, self._settings, create=True)
        changes = map_concurrently(lambda file: self._write_file(file, key), files, WRITERS_MAX)
        self._files.update({change.path: change for change in changes})

    def _write_file(self, file: NewFile, key: DataKey | None) -> FileChange:
        content = file.content()
        if file.is_sealed and key is not None:
            content = seal(content, key.secret, key.tenant, file.path)
        blob = write_blob(self._storage, self.identity.write_id, content)
        return FileChange(str(file.path), blob.name, blob.sha256, blob.size, file.is_sealed)

    def commit(self, message: str, request_context: RequestContext = NO_REQUEST) -> None:
        """Commit everything as the tenant's version 0, attributed to the request."""
        ensure_format(self._storage, probe=False)
        changes: tuple[Change, ...] = (*self._streams.values(), *self._files.values())
        whole = Entry(
            self.identity.write_id,
            self.identity.timestamp_ms,
            changes,
            job_id=request_context.job_id,
            message=message,
            request_id=request_context.request_id,
        )
        entry, long_commits = shorten_entry(whole)
        keep_long_commits(self._storage, long_commits)
        log = TenantLog(self._storage, self._settings)
        outcome = log.add(TenantState(), entry)
        if not isinstance(outcome, Committed):
            raise ConflictError(
                f"{self._storage.root} could not be filled.",
                cause="Somebody else began a tenant there, or the storage's answer was lost.",
                remedy="Run the same call again.",
            )
        roll_forward(self._storage, log, entry, 0, self._settings.checkpoint_interval)


# The registry already has the tenant's deletion, so no process can open it. A process with an open tenant
# may still write, so listing and deletion repeat until no file is left.

_ROUNDS_MAX = 20


@dataclass(frozen=True, slots=True)
class Deletion:
    """Result of deleting a tenant, whose folder was empty afterwards.

    ``versions``, ``streams`` and ``files`` are counts from the tenant's log (-1: unreadable); ``objects`` and
    ``size_bytes`` are what this call removed from its folder. ``keys`` data keys were removed first: from
    then on no copy of a sealed file can be opened.
    """

    environment: str
    tenant: str
    versions: int
    streams: int
    files: int
    objects: int
    size_bytes: int
    keys: int

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def remove_tenant(
    storage: Storage, environment: str, tenant: str, folder: str, settings: Settings
) -> Deletion:
    """Delete a tenant's folder from the store's storage."""
    target = PrefixStorage(storage, tenant_folder(folder))
    versions, streams, files = _count_held(target, settings)
    keys = len(list(target.list_from(KEYS_FOLDER)))
    remove_job_roots(target, settings)
    remove_waiting(target, settings)
    listing = {status.name: status.size for status in target.list_below("")}
    _remove(target, [name for name in listing if name.startswith(f"{KEYS_FOLDER}/")])
    listing |= remove_tree(target)
    size = sum(listing.values())
    return Deletion(environment, tenant, versions, streams, files, len(listing), size, keys)


def remove_tree(target: Storage) -> dict[str, int]:
    """Delete every file of a storage; return their names and sizes.

    The tenant log is deleted last, so a concurrent reader finds a damaged tenant, not an empty tenant.
    """
    removed: dict[str, int] = {}
    for _ in range(_ROUNDS_MAX):
        found: list[FileStatus] = sorted(
            target.list_below(""), key=lambda item: item.name.startswith(f"{OURS}/")
        )
        removed |= {status.name: status.size for status in found}
        _remove(target, [status.name for status in found])
        target.prune("")
        if not found:
            return removed
    raise ConflictError(
        f"{target.root} could not be emptied.",
        cause="Somebody kept writing into it, a job that had begun before, for example.",
        remedy="Stop the job, then run the same call again: it goes on from here.",
    )


def _remove(target: Storage, names: Iterable[str]) -> None:
    for name in names:
        target.delete(name)


def _count_held(target: Storage, settings: Settings) -> tuple[int, int, int]:
    try:
        state: TenantState = TenantLog(target, settings).current_state()
    except FreezeframeError:
        # Unreadable files are deleted too.
        return (NO_VERSION, NO_VERSION, NO_VERSION)
    return (state.version + 1, len(state.streams), len(state.files))


# A clone copies every byte. With hard links two tenants would share a file: an erasure or a damaged block
# in one would affect the other. Sealed files are encrypted again, because a seal is bound to its tenant.


def clone_into(
    source: Storage, target: Storage, settings: Settings, request_context: RequestContext = NO_REQUEST
) -> None:
    """Clone the current streams and files of ``source`` into the empty ``target``."""
    state = TenantLog(source, settings).current_state()
    builder = TenantBuilder(target, settings)
    progress.begin("copying", "bytes")
    try:
        for name in map(StreamName, sorted(state.streams)):
            _copy_stream(source, state, name, builder)
        files = [(FilePath(path), held) for path, held in sorted(state.files.items())]
        builder.add_files(
            [
                NewFile(path, partial(_content, source, settings, path, held), held.sealed)
                for path, held in files
            ]
        )
        builder.commit(f"cloned from version {state.version} of another tenant", request_context)
    except Exception:
        remove_tree(target)
        raise


def _content(storage: Storage, settings: Settings, path: FilePath, held: HeldFile) -> Iterator[bytes]:
    """Return the plain content of a file in chunks; errors as in ``Files.chunks``."""
    stored = blob_chunks(storage, Blob(held.blob, held.sha256, held.size))
    if not held.sealed:
        return progress.count_bytes(stored)
    key = data_key(storage, settings)
    return progress.count_bytes(unseal(stored, key.secret, key.tenant, path))


def table_file_chunks(storage: Storage, stream: StreamName, file: PortableFile) -> Iterator[bytes]:
    """Return the bytes of a table's file, in chunks."""
    name = f"{table_folder(stream)}/{file.path}"
    offset = 0
    while True:
        try:
            chunk = storage.read(name, offset, CHUNK_BYTES)
        except FileNotFoundError:
            raise CorruptData(
                f"The file {file.path!r} of the stream {str(stream)!r} is gone.",
                cause="It was deleted around freezeframe.",
                remedy="Restore the tenant's directory from a backup.",
                path=file.path,
            ) from None
        yield chunk
        offset += len(chunk)
        if len(chunk) < CHUNK_BYTES:
            return


def _copy_stream(source: Storage, state: TenantState, name: StreamName, builder: TenantBuilder) -> None:
    stream = portable_stream(name, table_snapshot(source, state, name), builder.identity, "CLONE")

    def copy(file: PortableFile) -> None:
        builder.add_table_file(name, file, progress.count_bytes(table_file_chunks(source, name, file)))

    map_concurrently(copy, stream.files, WRITERS_MAX)
    builder.add_stream(name, stream.content)
