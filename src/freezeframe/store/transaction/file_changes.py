"""File changes of a transaction over its base state.

A job may write ten thousand files, and a tenant have more, so no call here goes through all of them
one by one, but where another job has committed meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from freezeframe.identifiers import FilePath
from freezeframe.store.blobs.blob_store import FileNames, SpareNames
from freezeframe.store.tenant_log.entry import FileChange
from freezeframe.store.tenant_log.state import HeldFile, TenantState


class StagedFiles:
    """Staged file changes of a transaction and the resulting files; not thread-safe."""

    def __init__(self, base: TenantState, timestamp_ms: int, spare: SpareNames) -> None:
        self.changes: dict[str, FileChange] = {}
        self._base_version = base.version
        self._timestamp_ms = timestamp_ms
        self._seen = dict(base.files)
        self._is_shown = False
        self._spare = spare
        self._names: FileNames | None = None
        self._placed: set[str] = set()

    def current_files(self) -> Mapping[str, HeldFile]:
        """The files by path, without later changes."""
        self._is_shown = True
        return MappingProxyType(self._seen)

    def add(self, change: FileChange) -> None:
        """Stage a change; a later one of the same path replaces it."""
        if self._is_shown:
            self._seen, self._is_shown = dict(self._seen), False
        self.changes[change.path] = change
        self._seen.pop(change.path, None)
        if change.blob is not None:
            held = (change.blob, change.sha256, change.size, change.sealed)
            self._seen[change.path] = HeldFile(*held, self._base_version, self._timestamp_ms)
        if self._names is not None:
            if change.blob is None:
                self._names.remove(change.path)
            else:
                self._names.add(change.path)

    def require_place(self, path: FilePath, moved: str | None = None) -> None:
        """Refuse a path that conflicts with the current files, except the one being moved."""
        if str(path) not in self._seen:  # a file that is there already lies well
            if self._names is None:
                self._names = self._spare.take(self._seen.keys())
            if moved is not None:
                self._names.remove(moved)
            try:
                self._names.require(path)
            finally:
                if moved is not None and moved in self._seen:
                    self._names.add(moved)
        self._placed.add(str(path))

    def close(self) -> None:
        """End the transaction and return its path index to the pool."""
        if self._names is not None:
            self._spare.give_back(self._names)
            self._names = None

    def require_places(self, newest: TenantState) -> None:
        """Repeat the conflict check of all new paths against ``newest``."""
        if newest.version == self._base_version:
            return
        others = [
            path
            for path, held in newest.files.items()
            if held.version > self._base_version and path not in self.changes
        ]
        if not others:
            return
        names = FileNames((*self._seen, *others))
        for path in sorted(self._placed & self._seen.keys()):
            names.require(FilePath(path))
