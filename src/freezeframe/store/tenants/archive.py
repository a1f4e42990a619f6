"""Tenant archive: its newest streams and files as a compressed tar, without history.

Sealed files are opened and sealed anew under a key of the archive's own, which the master key wraps:
so the archive holds no secret in the clear and is of use only where that master key is.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import secrets
import tarfile
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from freezeframe import progress
from freezeframe.clock import now_ms
from freezeframe.errors import InvalidOption, SealingUnavailable
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.local import failure, sync_folder
from freezeframe.store.blobs.blob_store import Blob, Measured, blob_chunks
from freezeframe.store.encryption.cipher import seal, unseal, unwrap, wrap
from freezeframe.store.encryption.master_key import KEY_BYTES, accepted_master_keys, master_key
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.table.export import PortableFile, portable_stream
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import HeldFile, TenantState
from freezeframe.store.tenant_log.table_lookup import table_snapshot
from freezeframe.store.tenants.archive_index import (
    ArchiveIndex,
    Member,
    refused_archive_error,
    require_sound_commit,
)
from freezeframe.store.tenants.archive_reader import INDEX_NAME, ArchiveLimits, ArchiveReader
from freezeframe.store.tenants.builder import TenantBuilder
from freezeframe.store.tenants.clone import held_content, table_file_chunks
from freezeframe.store.tenants.deletion import remove_tree

_SPOOL_BYTES = 8 * 1024 * 1024
_LEVEL = 6
_Opener = Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class _Part:
    member: Member
    content: _Opener


def write_archive(storage: Storage, target: Path, settings: Settings) -> ArchiveIndex:
    """Write a tenant's newest state to a new file (mode 0600), which appears whole or not at all.

    Raises:
        InvalidOption: there is something under that name already.
        CorruptData: a stored file is damaged.
        SealingUnavailable: there are sealed files and no master key.
        StorageUnavailable: the file could not be written.
    """
    state = TenantLog(storage, settings).current_state()
    if target.exists() or target.is_symlink():
        raise InvalidOption(f"{target} is there already.", remedy="Name a new file, or remove this one.")
    archive_id = uuid.uuid4().hex
    secret = secrets.token_bytes(KEY_BYTES)
    is_sealed = any(held.sealed for held in state.files.values())
    wrapped = wrap(secret, master_key(settings).secret, archive_id) if is_sealed else b""
    with ExitStack() as spools:
        parts = [*_stream_parts(storage, state)]
        for path, held in sorted(state.files.items()):
            spool = (
                spools.enter_context(tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES))
                if held.sealed
                else None
            )
            parts.append(_file_part(storage, settings, FilePath(path), held, (secret, archive_id), spool))
        members = tuple(part.member for part in parts)
        index = ArchiveIndex(archive_id, state.version, base64.b64encode(wrapped).decode(), members)
        with _new_file(target) as file:
            _write(file, index, parts)
    return index


def read_archive(
    source: Path, target: Storage, settings: Settings, limits: ArchiveLimits | None = None
) -> ArchiveIndex:
    """Restore the archived tenant into the empty ``target``; a failure leaves nothing there.

    Raises:
        UnreadableInput: it is damaged, forged or no archive.
        FormatTooNew: a newer freezeframe wrote it.
        SealingUnavailable: it has sealed files and the master key is not the one that wrapped its key.
        StorageUnavailable: a file could not be read or written.
    """
    planting = TenantBuilder(target, settings)
    try:
        with source.open("rb") as file:
            reader = ArchiveReader(file, limits or ArchiveLimits())
            secret = _archive_key(reader.index, settings)
            _require_members_fit(reader.index)
            tables = _tables(reader.index)
            progress.begin("reading", "bytes", sum(member.size for member in reader.index.members))
            for member, content in reader.members():
                _plant(
                    planting, member, progress.count_bytes(content), tables, (secret, reader.index.archive_id)
                )
        planting.commit(f"imported from the archive {reader.index.archive_id}")
    except OSError as error:
        remove_tree(target)
        raise failure("read", str(source), error) from error
    except Exception:
        remove_tree(target)
        raise
    return reader.index


def _stream_parts(storage: Storage, state: TenantState) -> Iterator[_Part]:
    identity = CommitIdentity(uuid.uuid4().hex, now_ms())
    for name in map(StreamName, sorted(state.streams)):
        stream = portable_stream(name, table_snapshot(storage, state, name), identity, "EXPORT")
        text = stream.content.encode()
        digest = hashlib.sha256(text).hexdigest()
        yield _Part(Member("commit", len(text), digest, str(name)), lambda text=text: [text])  # type: ignore[misc]
        for file in stream.files:
            yield _table_part(storage, name, file)


def _table_part(storage: Storage, name: StreamName, file: PortableFile) -> _Part:
    size, sha256 = file.size, file.sha256
    if size is None or sha256 is None:
        measured = Measured(table_file_chunks(storage, name, file))
        for _ in measured:
            continue
        size, sha256 = measured.size, measured.digest.hex()
    member = Member("table", size, sha256, str(name), file.path)
    return _Part(member, lambda: table_file_chunks(storage, name, file))


def _file_part(
    storage: Storage,
    settings: Settings,
    path: FilePath,
    held: HeldFile,
    key: tuple[bytes, str],
    spool: IO[bytes] | None,
) -> _Part:
    if spool is None:
        blob = Blob(held.blob, held.sha256, held.size)
        return _Part(
            Member("file", held.size, held.sha256, path=str(path)), lambda: blob_chunks(storage, blob)
        )
    measured = Measured(seal(held_content(storage, settings, path, held), *key, path))
    for chunk in measured:
        spool.write(chunk)
    spool.seek(0)
    member = Member("file", measured.size, measured.digest.hex(), path=str(path), sealed=True)
    return _Part(member, lambda: iter(lambda: spool.read(_SPOOL_BYTES), b""))


def _write(file: BinaryIO, index: ArchiveIndex, parts: Sequence[_Part]) -> None:
    with (
        gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_LEVEL, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        progress.begin("writing", "bytes", sum(part.member.size for part in parts))
        content = index.to_bytes()
        _add(tar, INDEX_NAME, len(content), [content])
        for number, part in enumerate(parts):
            measured = Measured(progress.count_bytes(part.content()))
            _add(tar, f"{number:08d}", part.member.size, measured)
            if measured.digest.hex() != part.member.sha256:
                raise refused_archive_error(
                    f"The file {part.member.path!r} is damaged: its SHA-256 is another one."
                )


def _add(tar: tarfile.TarFile, name: str, size: int, content: Iterable[bytes]) -> None:
    header = tarfile.TarInfo(name)
    header.size, header.mode = size, 0o600
    try:
        tar.addfile(header, _Joined(content))
    except OSError as error:
        if error.errno is not None:
            raise  # an error of the disk; whoever opened the archive reports it
        raise refused_archive_error(f"Its member {name} could not be written: {error}") from error


@contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """A new file, renamed to its name once it is complete and durable."""
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, target)
        sync_folder(target.parent)
    except FileExistsError:
        raise InvalidOption(f"{target} is there already.", remedy="Name a new file.") from None
    except OSError as error:
        raise failure("write", str(target), error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _archive_key(index: ArchiveIndex, settings: Settings) -> bytes:
    if not any(member.sealed for member in index.members):
        return b""
    try:
        wrapped = base64.b64decode(index.wrapped_key, validate=True)
    except ValueError as error:
        raise refused_archive_error("The key of its sealed files is damaged.") from error
    opened = (unwrap(wrapped, one.secret, index.archive_id) for one in accepted_master_keys(settings))
    secret = next((one for one in opened if one is not None), None)
    if secret is None:
        raise SealingUnavailable(
            "The archive's sealed files cannot be opened.",
            cause="The master key is not the one that was set where it was written.",
            remedy="Set that master key for the import, and rotate to this one afterwards.",
        )
    return secret


def _tables(index: ArchiveIndex) -> dict[str, list[str]]:
    tables: dict[str, list[str]] = {}
    for member in index.members:
        if member.kind == "table":
            tables.setdefault(member.stream, []).append(member.path)
    return tables


def _require_members_fit(index: ArchiveIndex) -> None:
    names = [(member.kind, member.stream, member.path) for member in index.members]
    streams = {member.stream for member in index.members if member.kind == "commit"}
    if len(set(names)) != len(names) or not set(_tables(index)) <= streams:
        raise refused_archive_error(
            "Its index names a member twice, or a file of a stream that it does not hold."
        )


def _plant(
    planting: TenantBuilder,
    member: Member,
    content: Iterable[bytes],
    tables: dict[str, list[str]],
    key: tuple[bytes, str],
) -> None:
    if member.kind == "table":
        file = PortableFile(member.path, member.size, member.sha256)
        planting.add_table_file(StreamName(member.stream), file, content)
    elif member.kind == "commit":
        text = b"".join(content).decode(errors="replace")
        require_sound_commit(text, tables.get(member.stream, []))
        planting.add_stream(StreamName(member.stream), text)
    else:
        path = FilePath(member.path)
        planting.add_file(
            path, unseal(content, *key, path) if member.sealed else content, sealed=member.sealed
        )


class _Joined(io.RawIOBase):
    """Chunks as a file for sequential reading."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = b""

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes; fewer at the end."""
        parts, count = [self._held], len(self._held)
        while size < 0 or count < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            parts.append(chunk)
            count += len(chunk)
        whole = b"".join(parts)
        taken = whole if size < 0 else whole[:size]
        self._held = whole[len(taken) :]
        return taken
