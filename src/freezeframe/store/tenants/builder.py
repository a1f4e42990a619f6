"""Builds a tenant in an empty folder: table files, blobs, then one entry that names them.

Used by clones. Nothing is visible before ``commit``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from freezeframe.clock import now_ms
from freezeframe.errors import ConflictError, CorruptData
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log.commits.commit import Committed
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.concurrency import map_concurrently
from freezeframe.store.blobs.blob_store import Measured, write_blob
from freezeframe.store.blobs.path_conflicts import FileNames
from freezeframe.store.directory.format import ensure_format
from freezeframe.store.directory.paths import table_folder
from freezeframe.store.encryption.cipher import seal
from freezeframe.store.encryption.data_key import DataKey, data_key
from freezeframe.store.model.request_context import NO_REQUEST, RequestContext
from freezeframe.store.model.row_counts import Counts
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.table.export import PortableFile
from freezeframe.store.tenant_log.entry import Entry, FileChange, StreamChange
from freezeframe.store.tenant_log.entry_actions import Change
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import keep_long_commits, roll_forward, shorten_entry
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.tenant_log.table_lookup import require_no_case_twin

# What a file costs is mostly waiting: for the disk's sync, or for the bucket's answer.
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
        """Copy a file of a table, verified against its recorded size and SHA-256.

        Raises:
            CorruptData: its size or SHA-256 is another one.
        """
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
        """Add a stream with this single table commit.

        Raises:
            InvalidName: it differs from another stream's name only by case.
        """
        require_no_case_twin(self._streams, name)
        self._streams[str(name)] = StreamChange(name, 0, content, Counts())

    def add_files(self, files: Sequence[NewFile]) -> None:
        """Add files with their plain content, side by side; all are durable when this returns.

        Raises:
            InvalidName: one cannot lie beside the others.
            SealingUnavailable: one is to be sealed and there is no master key.
        """
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
        """Commit everything as the tenant's version 0, attributed to the request.

        Raises:
            ConflictError: the folder was not empty.
            StorageUnavailable, OutcomeUnknown: as of a commit.
        """
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
