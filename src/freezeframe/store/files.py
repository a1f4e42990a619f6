"""A tenant's files: any bytes under a path, each change a version of the tenant.

The same face serves a tenant (each change is a job of its own), an open job (changes appear with
the job's others) and a moment of the past (reading only); which of them it is, the scope knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, BinaryIO

from freezeframe.errors import AlreadyExists, FileNotFound, InvalidOption, StorageUnavailable, UnreadableInput
from freezeframe.identifiers import FilePath
from freezeframe.store.blobs.blob_store import Blob, Measured, blob_chunks, blob_part, read_blob, write_blob
from freezeframe.store.blobs.json_patch import from_json_bytes, merged, to_json_bytes
from freezeframe.store.blobs.path_index import folders_in, paths_in
from freezeframe.store.directory.paths import blob_file
from freezeframe.store.encryption.cipher import seal, unseal
from freezeframe.store.encryption.data_key import data_key
from freezeframe.store.tenant_log.entry import FileChange
from freezeframe.store.tenant_log.file_info import FileEntry, FileRevision, file_entry, file_revision
from freezeframe.store.tenant_log.state import HeldFile, TenantState
from freezeframe.store.transaction.scope import TenantScope
from freezeframe.store.transaction.unit_of_work import UnitOfWork

Content = bytes | bytearray | memoryview | BinaryIO | Iterable[bytes]
_STREAM_BYTES = 1024 * 1024


class Files:
    """Reading and changing files by path: ``tenant-config.json``, ``mappings/a.csv``.

    Paths are as ``FilePath`` checks them; a bad one is ``InvalidName``. Times of reading are given by
    ``version`` (a tenant version; ``tenant_version`` is the same) or ``as_of`` (a moment); without
    one the scope's own state counts. A sealed file is read and written like any other, where the
    master key is at hand; changing it keeps it sealed unless the call says otherwise.
    """

    def __init__(self, scope: TenantScope) -> None:
        self._scope = scope

    def read(
        self,
        path: str,
        version: int | None = None,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> bytes:
        """The file's bytes, proved to be the ones that were written.

        Raises:
            FileNotFound: there is no such file (then).
            VersionNotFound: there is no such version or moment.
            CorruptData: the stored bytes are damaged.
            SealingUnavailable: the file is sealed and the master key is not at hand.
        """
        known = FilePath(path)
        held = self._held_file(known, self._state(version, as_of, tenant_version))
        self._scope.note_file_read(str(known))
        return self._content(known, held)

    def chunks(
        self,
        path: str,
        version: int | None = None,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> Iterator[bytes]:
        """The file's bytes piece by piece, for large ones; errors as of ``read``, the first ones at once."""
        known = FilePath(path)
        held = self._held_file(known, self._state(version, as_of, tenant_version))
        self._scope.note_file_read(str(known))
        return self._pieces(known, held)

    def part(
        self,
        path: str,
        first: int,
        last: int,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> Iterator[bytes]:
        """The file's bytes from ``first`` to ``last``, both included, piece by piece; errors as of ``read``.

        Of a large file that is not sealed no more is read than that, once all of it was proved.
        """
        known = FilePath(path)
        held = self._held_file(known, self._state(None, as_of, tenant_version))
        self._scope.note_file_read(str(known))
        if held.sealed:
            content = self.read(path, as_of=as_of, tenant_version=tenant_version)
            return iter([content[first : last + 1]])
        return blob_part(self._scope.storage, _blob(held), first, last)

    def read_text(self, path: str, version: int | None = None, **moment: Any) -> str:
        """The file as text; errors as of ``read``.

        Raises:
            UnreadableInput: its bytes are not UTF-8.
        """
        try:
            return self.read(path, version, **moment).decode()
        except UnicodeDecodeError as error:
            raise UnreadableInput(
                f"The file {path!r} is no text.",
                cause=f"Its byte {error.start} is not UTF-8.",
                remedy="Read it as bytes.",
                path=path,
            ) from None

    def read_json(self, path: str, version: int | None = None, **moment: Any) -> Any:
        """The value of a JSON file; errors as of ``read``.

        Raises:
            UnreadableInput: it is no JSON.
        """
        return from_json_bytes(self.read(path, version, **moment), path)

    def exists(self, path: str) -> bool:
        """Whether there is such a file now."""
        return str(FilePath(path)) in self._scope.state().files

    def entry(
        self,
        path: str,
        version: int | None = None,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> FileEntry:
        """What is told of one file, without its bytes; errors as of ``read``, but for its content's."""
        known = FilePath(path)
        self._scope.note_file_read(str(known))
        return file_entry(str(known), self._held_file(known, self._state(version, as_of, tenant_version)))

    def list(
        self,
        folder: str = "",
        *,
        recursive: bool = False,
        version: int | None = None,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> tuple[FileEntry, ...]:
        """The files in a folder (``""``: the tenant's own), with those below it if ``recursive``, by path.

        Raises:
            InvalidName: no folder can have that name.
            VersionNotFound: there is no such version or moment.
        """
        files = self._state(version, as_of, tenant_version).files
        found = paths_in(files, _within(folder), recursive=recursive)
        return tuple(file_entry(path, files[path]) for path in found)

    def page(
        self, folder: str = "", after: str = "", *, recursive: bool = False, tenant_version: int | None = None
    ) -> Iterator[FileEntry]:
        """What ``list`` gives, from the path ``after`` on, one by one; who needs few of many pays for few."""
        files = self._state(None, None, tenant_version).files
        found = paths_in(files, _within(folder), after, recursive=recursive)
        return (file_entry(path, files[path]) for path in found)

    def folders(
        self, folder: str = "", *, recursive: bool = False, tenant_version: int | None = None
    ) -> tuple[str, ...]:
        """The folders in a folder, with those below them if ``recursive``, by path; errors as of ``list``."""
        files = self._state(None, None, tenant_version).files
        return tuple(sorted(folders_in(files, _within(folder), recursive=recursive)))

    def write(self, path: str, content: Content, *, sealed: bool | None = None) -> FileEntry:
        """Keep ``content`` (bytes, an open binary file, or chunks) as the file's new version.

        ``sealed`` None: as the file is, and a new one is not sealed.

        Raises:
            InvalidName: the path cannot be one, or cannot lie beside those that are there.
            InvalidOption: the content is no bytes.
            SealingUnavailable: it is to be sealed and there is no master key; nothing was written.
            ConflictError: in a job: somebody else changed the file meanwhile.
        """
        known = FilePath(path)
        with self._scope.changing() as work:
            work.require_place(known)
            held = work.state().files.get(str(known))
            is_sealed = (held is not None and held.sealed) if sealed is None else sealed
            self._stage(work, known, _chunks(content), is_sealed=is_sealed)
            staged = work.state().files[str(known)]
        return self._staged_entry(known, staged)

    def write_text(self, path: str, text: str, *, sealed: bool | None = None) -> FileEntry:
        """``write`` of a text, as UTF-8."""
        if not isinstance(text, str):
            raise _no_bytes(text)
        return self.write(path, text.encode(), sealed=sealed)

    def write_json(self, path: str, value: Any, *, sealed: bool | None = None) -> FileEntry:
        """``write`` of a value as JSON.

        Raises:
            InvalidOption: the value cannot be JSON.
        """
        return self.write(path, to_json_bytes(value), sealed=sealed)

    def patch_json(self, path: str, patch: Any, *, sealed: bool | None = None) -> Any:
        """Change a JSON file by a merge patch (RFC 7396) and give its new value; no file counts as ``{}``.

        Raises:
            UnreadableInput: the file is there and is no JSON.
            ConflictError: somebody else changed the file at the same moment; as ``write`` otherwise.
        """
        known = FilePath(path)
        with self._scope.changing() as work:
            held = work.state().files.get(str(known))
            # What is written rests on what was read: somebody else's change between is a conflict.
            work.note_file_read(str(known))
            before = None
            if held is not None:
                before = from_json_bytes(self._content(known, held), str(known))
            value = merged({} if held is None else before, patch)
            work.require_place(known)
            is_sealed = (held is not None and held.sealed) if sealed is None else sealed
            self._stage(work, known, [to_json_bytes(value)], is_sealed=is_sealed)
        return value

    def delete(self, path: str) -> None:
        """Remove the file; its older versions can still be read.

        Raises:
            FileNotFound: there is no such file.
        """
        known = FilePath(path)
        with self._scope.changing() as work:
            self._held_file(known, work.state())
            self._remove(work, known)

    def move(self, path: str, target: str) -> FileEntry:
        """Give the file another path, in one change; a sealed one is sealed anew, bound to the new path.

        Raises:
            FileNotFound: there is no such file.
            AlreadyExists: there is a file under ``target`` already.
            InvalidName, SealingUnavailable: as ``write``.
        """
        source, goal = FilePath(path), FilePath(target)
        with self._scope.changing() as work:
            state = work.state()
            held = self._held_file(source, state)
            if str(goal) in state.files:
                raise AlreadyExists(
                    f"There is a file {str(goal)!r} already.", remedy="Delete it first, or use another path."
                )
            work.require_place(goal, moved=str(source))
            work.note_file_read(str(source))
            self._stage(work, goal, self._pieces(source, held), is_sealed=held.sealed)
            self._remove(work, source)
            staged = work.state().files[str(goal)]
        return self._staged_entry(goal, staged)

    def history(self, path: str) -> Iterator[FileRevision]:
        """The file's versions, the newest first, deletions included.

        Raises:
            InvalidName: no file can have that path.
        """
        known = str(FilePath(path))
        newest = self._scope.state()
        versions = range(newest.version, newest.floor - 1, -1)
        for version, entry in self._scope.log.entries_down(newest, versions):
            for change in entry.files:
                if change.path == known:
                    yield file_revision(version, entry, change)

    def _state(
        self, version: int | None, as_of: datetime | str | None, tenant_version: int | None
    ) -> TenantState:
        if sum(given is not None for given in (version, as_of, tenant_version)) > 1:
            raise InvalidOption(
                "version, as_of and tenant_version cannot be used together.", remedy="Give one of them."
            )
        return self._scope.state(tenant_version if version is None else version, as_of)

    def _held_file(self, path: FilePath, state: TenantState) -> HeldFile:
        held = state.files.get(str(path))
        if held is None:
            raise FileNotFound(
                f"There is no file {str(path)!r}.",
                cause=f"The tenant has {len(state.files)} files at version {state.version}.",
                remedy="Check the path in the list of the files, or write the file first.",
                path=str(path),
            )
        return held

    def _staged_entry(self, path: FilePath, staged: HeldFile) -> FileEntry:
        """The file as it was committed, unless somebody has changed it again already."""
        now = self._scope.state().files.get(str(path))
        return file_entry(str(path), now if now is not None and now.blob == staged.blob else staged)

    def _content(self, path: FilePath, held: HeldFile) -> bytes:
        stored = read_blob(self._scope.storage, _blob(held))
        return b"".join(self._decrypt(path, [stored])) if held.sealed else stored

    def _pieces(self, path: FilePath, held: HeldFile) -> Iterator[bytes]:
        stored = blob_chunks(self._scope.storage, _blob(held))
        return self._decrypt(path, stored) if held.sealed else stored

    def _decrypt(self, path: FilePath, stored: Iterable[bytes]) -> Iterator[bytes]:
        key = data_key(self._scope.storage, self._scope.settings)
        return unseal(stored, key.secret, key.tenant, path)

    def _stage(self, work: UnitOfWork, path: FilePath, content: Iterable[bytes], *, is_sealed: bool) -> None:
        """Write the blob and make it part of the work; an earlier one of the same work is let go."""
        before = work.state().files.get(str(path))
        work.announce()
        digest = None
        if is_sealed:
            key = data_key(work.storage, work.settings, create=True)
            plain = Measured(content)
            blob = write_blob(work.storage, work.write_id, seal(plain, key.secret, key.tenant, path))
            digest = key.digest(plain.digest)
        else:
            blob = write_blob(work.storage, work.write_id, content)
        change = FileChange(str(path), blob.name, blob.sha256, blob.size, is_sealed)
        work.stage_file(change, digest)
        _forget_own(work, before)

    def _remove(self, work: UnitOfWork, path: FilePath) -> None:
        before = work.state().files.get(str(path))
        work.announce()
        work.stage_file(FileChange(str(path), None))
        _forget_own(work, before)


def _within(folder: str) -> str:
    return f"{FilePath(folder)}/" if folder else ""


def _blob(held: HeldFile) -> Blob:
    return Blob(held.blob, held.sha256, held.size)


def _forget_own(work: UnitOfWork, before: HeldFile | None) -> None:
    """Delete the bytes that this very work staged before for the same path: nothing else can name them."""
    if before is not None and before.blob.startswith(f"{work.write_id}/"):
        with suppress(StorageUnavailable):
            work.storage.delete(blob_file(before.blob))


def _chunks(content: Any) -> Iterable[bytes]:
    if isinstance(content, bytes | bytearray | memoryview):
        return [bytes(content)]
    read = getattr(content, "read", None)
    if read is not None:
        return _check_chunks(iter(lambda: read(_STREAM_BYTES), b""))
    # Text is iterable too, but its letters are no bytes.
    if isinstance(content, Iterable) and not isinstance(content, str):
        return _check_chunks(content)
    raise _no_bytes(content)


def _check_chunks(chunks: Iterable[Any]) -> Iterator[bytes]:
    for chunk in chunks:
        if not isinstance(chunk, bytes | bytearray | memoryview):
            raise _no_bytes(chunk)
        yield bytes(chunk)


def _no_bytes(content: Any) -> InvalidOption:
    return InvalidOption(
        f"A file's content cannot be of type {type(content).__name__}.",
        remedy="Pass bytes, a file opened with 'rb' or chunks of bytes; write_text takes text.",
    )
