"""Clones a tenant's newest state into a new folder.

Every byte is copied. A hard link would be quicker, and wrong: two tenants would share one file, so
that erasing a row of one, a deletion that must prove that nothing is left, or a damaged block would
reach into the other, and object stores have no links at all. Sealed files are opened and sealed
anew: a seal is bound to its tenant.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from freezeframe import progress
from freezeframe.errors import CorruptData
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.concurrency import map_concurrently
from freezeframe.store.blobs.blob_store import CHUNK_BYTES, Blob, blob_chunks
from freezeframe.store.directory.paths import table_folder
from freezeframe.store.encryption.cipher import unseal
from freezeframe.store.encryption.data_key import data_key
from freezeframe.store.model.request_context import NO_REQUEST, RequestContext
from freezeframe.store.table.export import PortableFile, portable_stream
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import HeldFile, TenantState
from freezeframe.store.tenant_log.table_lookup import table_snapshot
from freezeframe.store.tenants.builder import WRITERS_MAX, NewFile, TenantBuilder
from freezeframe.store.tenants.deletion import remove_tree


def clone_into(
    source: Storage, target: Storage, settings: Settings, request_context: RequestContext = NO_REQUEST
) -> None:
    """Clone the current streams and files of ``source`` into the empty ``target``.

    Raises:
        CorruptData: a file of ``source`` is damaged or gone; nothing is left in ``target``.
        SealingUnavailable: there are sealed files and no master key.
        TryAgain: a storage failed.
    """
    state = TenantLog(source, settings).current_state()
    planting = TenantBuilder(target, settings)
    progress.begin("copying", "bytes")
    try:
        for name in map(StreamName, sorted(state.streams)):
            _copy_stream(source, state, name, planting)
        files = [(FilePath(path), held) for path, held in sorted(state.files.items())]
        planting.add_files(
            [
                NewFile(path, partial(_content, source, settings, path, held), held.sealed)
                for path, held in files
            ]
        )
        planting.commit(f"cloned from version {state.version} of another tenant", request_context)
    except Exception:
        remove_tree(target)
        raise


def _content(storage: Storage, settings: Settings, path: FilePath, held: HeldFile) -> Iterator[bytes]:
    """The content of a file as its readers see it, in chunks; errors as of ``Files.chunks``."""
    stored = blob_chunks(storage, Blob(held.blob, held.sha256, held.size))
    if not held.sealed:
        return progress.count_bytes(stored)
    key = data_key(storage, settings)
    return progress.count_bytes(unseal(stored, key.secret, key.tenant, path))


def table_file_chunks(storage: Storage, stream: StreamName, file: PortableFile) -> Iterator[bytes]:
    """The bytes of a table's file, in chunks.

    Raises:
        CorruptData: the file is gone.
    """
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


def _copy_stream(source: Storage, state: TenantState, name: StreamName, planting: TenantBuilder) -> None:
    stream = portable_stream(name, table_snapshot(source, state, name), planting.identity, "CLONE")

    def copy(file: PortableFile) -> None:
        planting.add_table_file(name, file, progress.count_bytes(table_file_chunks(source, name, file)))

    map_concurrently(copy, stream.files, WRITERS_MAX)
    planting.add_stream(name, stream.content)
