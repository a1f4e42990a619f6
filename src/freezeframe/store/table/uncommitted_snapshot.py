"""A table snapshot that includes the transaction's own uncommitted commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from freezeframe.log import DeltaLog, Snapshot
from freezeframe.log.commits.commit import commit_name
from freezeframe.log.primitives.paths import LOG_FOLDER, parse_name
from freezeframe.storage.base import FileStatus, Storage
from freezeframe.storage.overlay import OverlayStorage


class StagedTable(OverlayStorage):
    """``inner`` with ``commits`` (by version) as the only ones of the table after version ``base``."""

    def __init__(
        self, inner: Storage, table: str, base: int, commits: Mapping[int, str], timestamp_ms: int
    ) -> None:
        files = {commit_name(table, version): text.encode() for version, text in commits.items()}
        super().__init__(inner, files, timestamp_ms)
        self._log_folder = f"{table}/{LOG_FOLDER}"
        self._base = base

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
        newer = meaning is not None and meaning.version > self._base
        return not newer or f"{self._log_folder}/{name}" in self._files


def staged_view(
    storage: Storage, table: str, base: int, contents: tuple[str, ...], timestamp_ms: int
) -> Snapshot:
    """The table at version ``base`` plus uncommitted commits, visible to this process only."""
    commits = dict(enumerate(contents, start=base + 1))
    return DeltaLog(StagedTable(storage, table, base, commits, timestamp_ms), table).current_snapshot
