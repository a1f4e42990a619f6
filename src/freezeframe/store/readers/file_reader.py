"""The reading half of a tenant's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from freezeframe.errors import FileNotFound, InvalidOption, UnreadableInput
from freezeframe.identifiers import FilePath
from freezeframe.store.blobs.blob_store import (
    Blob,
    blob_chunks,
    blob_part,
    folders_in,
    from_json_bytes,
    paths_in,
    read_blob,
)
from freezeframe.store.blobs.sealing import data_key, unseal
from freezeframe.store.tenant_log.state import (
    FileEntry,
    FileRevision,
    HeldFile,
    TenantState,
    file_entry,
    file_revision,
)
from freezeframe.store.transaction.scope import TenantScope


class FileReader:
    """Reads files by path in a scope: a tenant, an open job, or a past version.

    Paths are as ``FilePath`` checks them; a bad one is ``InvalidName``. ``version`` (a tenant version;
    ``tenant_version`` is the same) or ``as_of`` (a moment) say when; without one the scope's own state
    counts. A sealed file is read like any other, where the master key is at hand.
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
        """The file's bytes, verified by their SHA-256.

        Raises:
            FileNotFound: there is no such file (then).
            VersionNotFound: there is no such version or moment.
            CorruptData: the stored bytes are damaged.
            SealingUnavailable: the file is sealed and the master key is not at hand.
        """
        known = FilePath(path)
        held = self._held_file(known, self._state(version, as_of, tenant_version))
        self._scope.note_read(known)
        return self._content(known, held)

    def chunks(
        self,
        path: str,
        version: int | None = None,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> Iterator[bytes]:
        """The file's bytes in chunks, for large files; errors as for ``read``, the first ones at the call."""
        known = FilePath(path)
        held = self._held_file(known, self._state(version, as_of, tenant_version))
        self._scope.note_read(known)
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
        """The file's bytes from ``first`` to ``last``, both included, in chunks; errors as for ``read``.

        Of a large file that is not sealed no more is read than that, once all of it was proved.
        """
        known = FilePath(path)
        held = self._held_file(known, self._state(None, as_of, tenant_version))
        self._scope.note_read(known)
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
                f"The file {path!r} is not text.",
                cause=f"Its byte {error.start} is not UTF-8.",
                remedy="Read it as bytes.",
                path=path,
            ) from None

    def read_json(self, path: str, version: int | None = None, **moment: Any) -> Any:
        """The value of a JSON file; errors as of ``read``.

        Raises:
            UnreadableInput: it is not JSON.
        """
        return from_json_bytes(self.read(path, version, **moment), path)

    def exists(self, path: str) -> bool:
        """Whether the file exists now."""
        return str(FilePath(path)) in self._scope.state().files

    def entry(
        self,
        path: str,
        version: int | None = None,
        *,
        as_of: datetime | str | None = None,
        tenant_version: int | None = None,
    ) -> FileEntry:
        """The metadata of one file; errors as of ``read`` except those of its content."""
        known = FilePath(path)
        self._scope.note_read(known)
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
        """Lazy ``list`` after the path ``after``; the cost is proportional to the entries taken."""
        files = self._state(None, None, tenant_version).files
        found = paths_in(files, _within(folder), after, recursive=recursive)
        return (file_entry(path, files[path]) for path in found)

    def folders(
        self, folder: str = "", *, recursive: bool = False, tenant_version: int | None = None
    ) -> tuple[str, ...]:
        """The folders in a folder, with those below them if ``recursive``, by path; errors as of ``list``."""
        files = self._state(None, None, tenant_version).files
        return tuple(sorted(folders_in(files, _within(folder), recursive=recursive)))

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
        if sum(item is not None for item in (version, as_of, tenant_version)) > 1:
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

    def _content(self, path: FilePath, held: HeldFile) -> bytes:
        stored = read_blob(self._scope.storage, _blob(held))
        return b"".join(self._decrypt(path, [stored])) if held.sealed else stored

    def _pieces(self, path: FilePath, held: HeldFile) -> Iterator[bytes]:
        stored = blob_chunks(self._scope.storage, _blob(held))
        return self._decrypt(path, stored) if held.sealed else stored

    def _decrypt(self, path: FilePath, stored: Iterable[bytes]) -> Iterator[bytes]:
        key = data_key(self._scope.storage, self._scope.settings)
        return unseal(stored, key.secret, key.tenant, path)


def _within(folder: str) -> str:
    return f"{FilePath(folder)}/" if folder else ""


def _blob(held: HeldFile) -> Blob:
    return Blob(held.blob, held.sha256, held.size)
