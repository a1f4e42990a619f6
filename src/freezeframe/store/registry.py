"""The registry of a store: a log that maps a tenant's id to its folder, one put-if-absent a change.

It is a log of the same shape as the tenant log and stands on the same ``SnapshotManagement``: so a
creator that loses a race reads the winner's folder, and ten thousand tenants are one checkpoint and
the few entries after it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from freezeframe.clock import now_ms
from freezeframe.errors import ConflictError, CorruptLog, OutcomeUnknown, StorageUnavailable
from freezeframe.log import LogOptions, LogSegment, SnapshotManagement
from freezeframe.log.checkpoint import CHECKPOINT_DAMAGED
from freezeframe.log.commit import Committed, Unknown, land_file
from freezeframe.log.hint import Hint, hint_text
from freezeframe.log.parallel_reads import read_all
from freezeframe.log.paths import HINT_NAME, LogFile, commit_name, version_prefix
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.entry_chain import Link, require_version
from freezeframe.store.layout import REGISTRY_FOLDER
from freezeframe.store.log_tail import LogTail
from freezeframe.store.registry_entries import (
    Kind,
    RegistryEntry,
    RegistryState,
    parse_registry_checkpoint,
    parse_registry_entry,
)

# A checkpoint holds every tenant, so it is written less often than a tenant log's.
_CHECKPOINT_INTERVAL = 100
_CHECKPOINTS_KEPT = 2
_CHECKPOINTS_LISTED = 5
_READERS_MAX = 16
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RegistrySnapshot:
    """The registry's state and the files it was read from."""

    segment: LogSegment
    state: RegistryState

    @property
    def version(self) -> int:
        """The registry's version; -1 before the first tenant."""
        return self.state.version

    def uncache(self) -> None:
        """Nothing is kept that could be read again."""


class Registry(SnapshotManagement[RegistrySnapshot]):
    """Which tenants a store has, and where each of them is."""

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self._tries_max = settings.commit_tries_max
        options = LogOptions(staleness_limit_ms=settings.staleness_limit_ms)
        self._tail = LogTail(storage, REGISTRY_FOLDER)
        self._folders: tuple[RegistryState, frozenset[str]] = (RegistryState(), frozenset())
        super().__init__(storage, REGISTRY_FOLDER, options)

    def create_snapshot(
        self,
        segment: LogSegment,
        previous: RegistrySnapshot | None = None,
        new_commits: Sequence[LogFile] | None = None,
    ) -> RegistrySnapshot:
        """The state that the segment's files make.

        Raises:
            CorruptLog: an entry or the checkpoint is damaged.
        """
        if previous is not None and new_commits is not None:
            state, files = previous.state, tuple(new_commits)
        else:
            state, files = self._checkpointed(segment), segment.commits
        names = [commit_name(file.version) for file in files]
        contents = read_all(lambda name: self.storage.read(f"{self.folder}/{name}"), names, _READERS_MAX)
        entries = [parse_registry_entry(content, name) for content, name in zip(contents, names, strict=True)]
        return RegistrySnapshot(segment, state.after(state.version + 1, *entries))

    def current_state(self) -> RegistryState:
        """The registry now, as the storage has it."""
        return self.update().state

    def update_internal(self, *, is_async: bool = False) -> RegistrySnapshot:
        """See ``SnapshotManagement.update_internal``; a log that has not grown is not listed."""
        started = self.options.clock()
        if self._tail.is_at(self.current_snapshot.version):
            return self._touch(started)
        snapshot = super().update_internal(is_async=is_async)
        self._tail.note(snapshot.version)
        return snapshot

    def knows(self, folder: str) -> bool:
        """Whether the folder is a tenant's now; quick for any number of tenants."""
        state = self.current_state()
        known, folders = self._folders
        if known is not state:
            folders = state.folders
            self._folders = (state, folders)
        return folder in folders

    def create(self, environment: str, tenant: str, folder: str) -> str:
        """The tenant's folder: ``folder``, or the one of whoever was first.

        Raises:
            ConflictError, OutcomeUnknown, StorageUnavailable: see ``ConflictError`` and so on.
        """
        self._commit(
            "create", environment, tenant, folder, lambda state: state.folder(environment, tenant) is None
        )
        return self.current_state().folder(environment, tenant) or folder

    def delete(self, environment: str, tenant: str, folder: str) -> None:
        """From now on the tenant is not to be found, and its folder is to be removed."""
        self._commit(
            "delete", environment, tenant, folder, lambda state: state.folder(environment, tenant) == folder
        )

    def removed(self, environment: str, tenant: str, folder: str) -> None:
        """Nothing is left of the folder."""
        self._commit("removed", environment, tenant, folder, lambda state: folder in state.leaving)

    def _commit(
        self,
        kind: Kind,
        environment: str,
        tenant: str,
        folder: str,
        is_due: Callable[[RegistryState], bool],
    ) -> None:
        """Land an entry while ``is_due`` says that it still changes something."""
        write_id = uuid.uuid4().hex
        for _ in range(self._tries_max):
            state = self.current_state()
            if not is_due(state):
                return
            moment = max(now_ms(), state.timestamp_ms + 1)
            version = state.version + 1
            link = Link(version, self._head_of(state))
            entry = RegistryEntry(kind, environment, tenant, folder, write_id, moment, link)
            name = f"{self.folder}/{commit_name(version)}"
            outcome = land_file(self.storage, name, version, entry.to_bytes())
            if isinstance(outcome, Committed):
                self._checkpoint_if_due(version)
                return
            if isinstance(outcome, Unknown):
                raise OutcomeUnknown(
                    f"It is not known whether the registry has taken the {kind} of {tenant!r}.",
                    cause=outcome.reason,
                    remedy="Run the same call again.",
                )
        raise ConflictError(
            f"The store's registry kept changing: {self._tries_max} tries were not enough.",
            cause="Other processes made or deleted tenants at the same time.",
            remedy="Run the same call again; nothing of it was done.",
        )

    def _head_of(self, state: RegistryState) -> str:
        """The hash that the next entry names; read where the state is a checkpoint's from before chains."""
        if state.chain.head is not None:
            return state.chain.head
        name = commit_name(state.version)
        return parse_registry_entry(self.storage.read(f"{self.folder}/{name}"), name).sha256

    def _checkpoint_if_due(self, version: int) -> None:
        """Keep the whole state every so many versions. A failure costs speed only."""
        if version == 0 or version % _CHECKPOINT_INTERVAL:
            return
        name = f"{version_prefix(version)}.checkpoint.{uuid.uuid4()}.json"
        try:
            content = self.snapshot_at(version=version).state.to_checkpoint()
            self.storage.put_if_absent(f"{self.folder}/{name}", content)
            hint = hint_text(Hint(version=version, size=1, size_in_bytes=len(content)))
            self.storage.replace(f"{self.folder}/{HINT_NAME}", hint.encode())
            self._forget_old_checkpoints(version)
        except StorageUnavailable:
            _logger.warning("The registry's checkpoint %s was not written", version, exc_info=True)

    def _forget_old_checkpoints(self, version: int) -> None:
        # Each holds all tenants; the entries from which they were made stay. Their names would be the
        # most of a listing from the beginning on, so it starts where checkpoints may still be.
        start = version_prefix(max(0, version - _CHECKPOINTS_LISTED * _CHECKPOINT_INTERVAL))
        found = [
            status.name
            for status in self.storage.list_from(self.folder, start)
            if ".checkpoint." in status.name
        ]
        for name in found[:-_CHECKPOINTS_KEPT]:
            self.storage.delete(f"{self.folder}/{name}")

    def _checkpointed(self, segment: LogSegment) -> RegistryState:
        if segment.checkpoint is None:
            return RegistryState()
        (file,) = segment.checkpoint.files
        try:
            state = parse_registry_checkpoint(self.storage.read(segment.path(file)), file.name)
            require_version(state.version, file.version, "the store's registry")
        except (CorruptLog, FileNotFoundError) as error:
            # With this code the next older checkpoint, or the entries alone, are tried.
            raise CorruptLog(
                f"The registry's checkpoint {file.name!r} cannot be used.",
                cause=str(error),
                remedy="Delete it: the state is rebuilt without it.",
                code=CHECKPOINT_DAMAGED,
                file=file.name,
            ) from error
        return state
