"""Files of a tenant: bytes by path, each change a version of the tenant.

The same face serves a tenant (each change is a job of its own), an open job (changes appear with
the job's others) and a moment of the past (reading only); which of them it is, the scope knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from freezeframe.errors import AlreadyExists, InvalidOption, StorageUnavailable, TryAgain
from freezeframe.identifiers import FilePath
from freezeframe.store.blobs.blob_store import from_json_bytes, merge_patch, to_json_bytes, write_blob
from freezeframe.store.blobs.sealing import data_key, seal
from freezeframe.store.model.directory import blob_file
from freezeframe.store.readers.file_reader import FileReader
from freezeframe.store.tenant_log.entry import FileChange
from freezeframe.store.tenant_log.state import FileEntry, HeldFile, file_entry
from freezeframe.store.transaction.unit_of_work import UnitOfWork

Content = bytes | bytearray | memoryview | BinaryIO | Iterable[bytes]
_STREAM_BYTES = 1024 * 1024


class Files(FileReader):
    """Reading and changing files by path: ``tenant-config.json``, ``mappings/a.csv``.

    Changing a sealed file keeps it sealed unless the call says otherwise.
    """

    def write(self, path: str, content: Content, *, sealed: bool | None = None) -> FileEntry:
        """Write ``content`` (bytes, an open binary file, or chunks) as the file's new version.

        ``sealed`` None: as the file is, and a new one is not sealed.

        Raises:
            InvalidName: the path cannot be one, or cannot lie beside those that are there.
            InvalidOption: the content is not bytes.
            SealingUnavailable: it is to be sealed and there is no master key; nothing was written.
            ConflictError: in a job: somebody else changed the file meanwhile.
        """
        known = FilePath(path)
        with self._scope.change() as work:
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
        """Change a JSON file by a merge patch (RFC 7396) and return the new value; no file counts as ``{}``.

        Raises:
            UnreadableInput: the file is there and is not JSON.
            ConflictError: somebody else changed the file at the same moment; as ``write`` otherwise.
        """
        known = FilePath(path)
        with self._scope.change() as work:
            held = work.state().files.get(str(known))
            # The content is based on what was read, so another writer's change in between is a conflict.
            work.note_read(known)
            before = None
            if held is not None:
                before = from_json_bytes(self._content(known, held), str(known))
            value = merge_patch({} if held is None else before, patch)
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
        with self._scope.change() as work:
            self._held_file(known, work.state())
            self._remove(work, known)

    def move(self, path: str, target: str) -> FileEntry:
        """Move the file, in one change; a sealed one is sealed anew, bound to the new path.

        Raises:
            FileNotFound: there is no such file.
            AlreadyExists: there is a file under ``target`` already.
            InvalidName, SealingUnavailable: as ``write``.
        """
        source, goal = FilePath(path), FilePath(target)
        with self._scope.change() as work:
            state = work.state()
            held = self._held_file(source, state)
            if str(goal) in state.files:
                raise AlreadyExists(
                    f"There is a file {str(goal)!r} already.", remedy="Delete it first, or use another path."
                )
            work.require_place(goal, moved=str(source))
            work.note_read(source)
            self._stage(work, goal, self._pieces(source, held), is_sealed=held.sealed)
            self._remove(work, source)
            staged = work.state().files[str(goal)]
        return self._staged_entry(goal, staged)

    def _staged_entry(self, path: FilePath, staged: HeldFile) -> FileEntry:
        """The file's entry from the commit, unless it was changed again or the log cannot be read now."""
        now = None
        with suppress(TryAgain):
            now = self._scope.state().files.get(str(path))
        return file_entry(str(path), now if now is not None and now.blob == staged.blob else staged)

    def _stage(self, work: UnitOfWork, path: FilePath, content: Iterable[bytes], *, is_sealed: bool) -> None:
        """Write the blob and stage the change; an earlier blob of the same work is deleted."""
        before = work.state().files.get(str(path))
        work.announce()
        if is_sealed:
            key = data_key(work.storage, work.settings, create=True)
            content = seal(content, key.secret, key.tenant, path)
        blob = write_blob(work.storage, work.write_id, content)
        work.stage_file(FileChange(str(path), blob.name, blob.sha256, blob.size, is_sealed))
        _forget_own(work, before)

    def _remove(self, work: UnitOfWork, path: FilePath) -> None:
        before = work.state().files.get(str(path))
        work.announce()
        work.stage_file(FileChange(str(path), None))
        _forget_own(work, before)


def _forget_own(work: UnitOfWork, before: HeldFile | None) -> None:
    """Delete the blob that the same job staged before for the path: nothing else can name it."""
    if before is not None and before.blob.startswith(f"{work.write_id}/"):
        with suppress(StorageUnavailable):
            work.storage.delete(blob_file(before.blob))


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
