"""Files of a tenant: bytes by path, each change a version of the tenant.

The same classes serve a tenant (each change is a job of its own), an open job (changes appear with
the job's others) and a past version (reading only): their scope says which it is.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO

from freezeframe.errors import (
    AlreadyExists,
    FileNotFound,
    InvalidOption,
    StorageUnavailable,
    TryAgain,
    UnreadableInput,
)
from freezeframe.identifiers import FilePath
from freezeframe.store.blobs.blob_store import (
    Blob,
    blob_chunks,
    blob_part,
    folders_in,
    from_json_bytes,
    merge_patch,
    paths_in,
    read_blob,
    to_json_bytes,
    write_blob,
)
from freezeframe.store.blobs.sealing import data_key, seal, unseal
from freezeframe.store.model.directory import blob_file
from freezeframe.store.model.json_fields import FileEntry, FileRevision
from freezeframe.store.tenant_log.entry import FileChange
from freezeframe.store.tenant_log.state import HeldFile, TenantState, file_entry, file_revision
from freezeframe.store.transaction.scope import Scope
from freezeframe.store.transaction.transaction import Transaction

Content = bytes | bytearray | memoryview | BinaryIO | Iterable[bytes]
_STREAM_BYTES = 1024 * 1024


class Files:
    """Reading and changing files by path: ``tenant-config.json``, ``mappings/a.csv``.

    They are those of a scope of their tenant: now, in an open job, or (only read) at a past version.
    Paths are as ``FilePath`` checks them; a bad one is ``InvalidName``. ``version`` (a tenant version;
    ``tenant_version`` is the same) or ``as_of`` (a moment) say when; without one the scope's own state
    counts. A sealed file is read like any other, where the master key is at hand. Changing it keeps it sealed
    unless the call says otherwise.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def read(
        self,
        path: str,
        version: int | None = None,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> bytes:
        """Return the file's bytes, verified by their SHA-256.

        Raises:
            FileNotFound: there is no such file (then).
            VersionNotFound: there is no such version or moment.
            CorruptData: the stored bytes are damaged.
            SealingUnavailable: the file is sealed and the master key is not at hand.
        """
        return self._content(*self._file(path, version, as_of, tenant_version))

    def chunks(
        self,
        path: str,
        version: int | None = None,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> Iterator[bytes]:
        """Return the file's bytes in chunks, for large files; errors as for ``read``."""
        return self._pieces(*self._file(path, version, as_of, tenant_version))

    def part(
        self,
        path: str,
        first: int,
        last: int,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> Iterator[bytes]:
        """Return the file's bytes from ``first`` to ``last`` (inclusive) in chunks; errors as for ``read``.

        Of a large file that is not sealed only these bytes are read, once its hash has been verified.
        """
        _, held = self._file(path, None, as_of, tenant_version)
        if held.sealed:
            content = self.read(path, as_of=as_of, tenant_version=tenant_version)
            return iter([content[first : last + 1]])
        return blob_part(self._scope.storage, _blob(held), first, last)

    def read_text(self, path: str, version: int | None = None, **moment: Any) -> str:
        """Return the file as text; errors as of ``read``.

        Raises:
            UnreadableInput: its bytes are not UTF-8.
        """
        try:
            return self.read(path, version, **moment).decode()
        except UnicodeDecodeError as error:
            raise UnreadableInput(
                f"The file {path!r} is not text.",
                cause=f"Its byte {error.start} is not UTF-8.",
                remedy="Read it as bytes.",
                path=path,
            ) from None

    def read_json(self, path: str, version: int | None = None, **moment: Any) -> Any:
        """Return the value of a JSON file; errors as of ``read``.

        Raises:
            UnreadableInput: it is not JSON.
        """
        return from_json_bytes(self.read(path, version, **moment), path)

    def exists(self, path: str) -> bool:
        """Return whether the file exists now."""
        known = FilePath(path)
        self._scope.note_read(known)
        return str(known) in self._scope.state().files

    def entry(
        self,
        path: str,
        version: int | None = None,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> FileEntry:
        """Return the metadata of one file; errors as of ``read`` except those of its content."""
        known = FilePath(path)
        self._scope.note_read(known)
        return file_entry(
            str(known), self._held_file(known, self._scope.state(version, as_of, tenant_version))
        )

    def list(
        self,
        folder: str = "",
        *,
        recursive: bool = False,
        version: int | None = None,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> tuple[FileEntry, ...]:
        """Return the files in a folder (``""``: the tenant's own), and below it if ``recursive``, by path.

        Raises:
            InvalidName: no folder can have that name.
            VersionNotFound: there is no such version or moment.
        """
        files = self._scope.state(version, as_of, tenant_version).files
        found = paths_in(files, _within(folder), recursive=recursive)
        return tuple(file_entry(path, files[path]) for path in found)

    def page(
        self, folder: str = "", after: str = "", *, recursive: bool = False, tenant_version: int | None = None
    ) -> Iterator[FileEntry]:
        """Lazy ``list`` after the path ``after``; the cost is proportional to the entries taken."""
        files = self._scope.state(tenant_version).files
        found = paths_in(files, _within(folder), after, recursive=recursive)
        return (file_entry(path, files[path]) for path in found)

    def folders(
        self, folder: str = "", *, recursive: bool = False, tenant_version: int | None = None
    ) -> tuple[str, ...]:
        """Return the folders in a folder, and below it if ``recursive``, by path; errors as of ``list``."""
        files = self._scope.state(tenant_version).files
        return tuple(sorted(folders_in(files, _within(folder), recursive=recursive)))

    def history(self, path: str) -> Iterator[FileRevision]:
        """Return the file's versions, the newest first, deletions included.

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

    def _file(
        self, path: str, version: int | None, as_of: datetime | str | None, tenant_version: int | None
    ) -> tuple[FilePath, HeldFile]:
        known = FilePath(path)
        self._scope.note_read(known)  # also of a file that is not there: its absence is what the job saw
        return known, self._held_file(known, self._scope.state(version, as_of, tenant_version))

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

    def _content(self, path: FilePath, held: HeldFile) -> bytes:
        stored = read_blob(self._scope.storage, _blob(held))
        return b"".join(self._decrypt(path, [stored])) if held.sealed else stored

    def _pieces(self, path: FilePath, held: HeldFile) -> Iterator[bytes]:
        stored = blob_chunks(self._scope.storage, _blob(held))
        return self._decrypt(path, stored) if held.sealed else stored

    def _decrypt(self, path: FilePath, stored: Iterable[bytes]) -> Iterator[bytes]:
        key = data_key(self._scope.storage, self._scope.settings)
        return unseal(stored, key.secret, key.tenant, path)

    def write(self, path: str, content: Content, *, sealed: bool | None = None) -> FileEntry:
        """Write ``content`` (bytes, an open binary file, or chunks) as the file's new version.

        ``sealed`` None: as the file is, and a new one is not sealed.

        Raises:
            InvalidName: the path cannot be one, or cannot lie beside those that are there.
            InvalidOption: the content is not bytes.
            SealingUnavailable: it is to be sealed and there is no master key; nothing was written.
            ConflictError: in a job: a concurrent commit changed the file.
        """
        known = FilePath(path)
        with self._scope.change() as transaction:
            transaction.files.require_path(known)
            self._stage(transaction, known, _chunks(content), sealed=sealed)
            staged = transaction.state().files[str(known)]
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
        """Change a JSON file by a merge patch (RFC 7396) and return the new value; no file counts as ``{}``.

        Raises:
            UnreadableInput: the file is there and is not JSON.
            ConflictError: a concurrent commit changed the file; as ``write`` otherwise.
        """
        known = FilePath(path)
        with self._scope.change() as transaction:
            held = transaction.state().files.get(str(known))
            # The content is based on what was read, so another writer's change in between is a conflict.
            transaction.note_read(known)
            before = None
            if held is not None:
                before = from_json_bytes(self._content(known, held), str(known))
            value = merge_patch({} if held is None else before, patch)
            transaction.files.require_path(known)
            self._stage(transaction, known, [to_json_bytes(value)], sealed=sealed)
        return value

    def delete(self, path: str) -> None:
        """Remove the file; its older versions can still be read.

        Raises:
            FileNotFound: there is no such file.
        """
        known = FilePath(path)
        with self._scope.change() as transaction:
            self._held_file(known, transaction.state())
            self._remove(transaction, known)

    def move(self, path: str, target: str) -> FileEntry:
        """Move the file, in one change; a sealed one is sealed anew, bound to the new path.

        Raises:
            FileNotFound: there is no such file.
            AlreadyExists: there is a file under ``target`` already.
            InvalidName, SealingUnavailable: as ``write``.
        """
        source, goal = FilePath(path), FilePath(target)
        with self._scope.change() as transaction:
            state = transaction.state()
            held = self._held_file(source, state)
            if str(goal) in state.files:
                raise AlreadyExists(
                    f"There is a file {str(goal)!r} already.", remedy="Delete it first, or use another path."
                )
            transaction.files.require_path(goal, moved=str(source))
            transaction.note_read(source)
            self._stage(transaction, goal, self._pieces(source, held), sealed=held.sealed)
            self._remove(transaction, source)
            staged = transaction.state().files[str(goal)]
        return self._staged_entry(goal, staged)

    def _staged_entry(self, path: FilePath, staged: HeldFile) -> FileEntry:
        """Return the committed entry, or the staged one if it changed again or the log is unreadable."""
        now = None
        with suppress(TryAgain):
            now = self._scope.state().files.get(str(path))
        return file_entry(str(path), now if now is not None and now.blob == staged.blob else staged)

    def _stage(
        self, transaction: Transaction, path: FilePath, content: Iterable[bytes], *, sealed: bool | None
    ) -> None:
        """Write the blob and stage the change; an earlier blob of the same transaction is deleted."""
        before = transaction.state().files.get(str(path))
        is_sealed = (before is not None and before.sealed) if sealed is None else sealed
        transaction.announce()
        if is_sealed:
            context, is_kept = transaction.context, not transaction.is_dry_run
            key = data_key(context.storage, context.settings, create=True, is_kept=is_kept)
            content = seal(content, key.secret, key.tenant, path)
        blob = write_blob(transaction.context.storage, transaction.write_id, content)
        transaction.files.add(FileChange(str(path), blob.name, blob.sha256, blob.size, is_sealed))
        _forget_own(transaction, before)

    def _remove(self, transaction: Transaction, path: FilePath) -> None:
        before = transaction.state().files.get(str(path))
        transaction.announce()
        transaction.files.add(FileChange(str(path), None))
        _forget_own(transaction, before)


def committed_entry(files: Files, staged: FileEntry, version: int) -> FileEntry:
    """Return a staged file as of the version that committed it, also if it was changed or deleted since.

    A storage that fails now fails no caller: the file is told as it was staged.
    """
    with suppress(FileNotFound, TryAgain):
        now = files.entry(staged.path)
        if now.version == version:
            return now
    with suppress(TryAgain):
        return files.entry(staged.path, tenant_version=version)
    return replace(staged, version=version)


def _within(folder: str) -> str:
    return f"{FilePath(folder)}/" if folder else ""


def _blob(held: HeldFile) -> Blob:
    return Blob(held.blob, held.sha256, held.size)


def _forget_own(transaction: Transaction, before: HeldFile | None) -> None:
    """Delete the blob that the same job staged before for the path: nothing else can name it."""
    if before is not None and before.blob.startswith(f"{transaction.write_id}/"):
        with suppress(StorageUnavailable):
            transaction.context.storage.delete(blob_file(before.blob))


def _chunks(content: Any) -> Iterable[bytes]:
    if isinstance(content, bytes | bytearray | memoryview):
        return [bytes(content)]
    read = getattr(content, "read", None)
    if read is not None:
        return _check_chunks(iter(lambda: read(_STREAM_BYTES), b""))
    # Text is iterable too, but its characters are not bytes.
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
