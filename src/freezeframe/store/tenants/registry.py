"""The registry of a store: a log that maps tenant ids to folders.

The log has the shape of the tenant log and the same base, ``SnapshotManagement``: a creator that loses
a race reads the winner's folder, and opening ten thousand tenants reads one checkpoint and the few
entries after it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from freezeframe.clock import now_ms
from freezeframe.errors import ConflictError, OutcomeUnknown
from freezeframe.log.commits.commit import Committed, Unknown, land_file
from freezeframe.log.primitives.paths import commit_name, version_prefix
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.directory.paths import REGISTRY_FOLDER
from freezeframe.store.tenant_log.checkpointed_log import CheckpointedLog
from freezeframe.store.tenant_log.entry_chain import Link
from freezeframe.store.tenants.registry_entries import (
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


class Registry(CheckpointedLog[RegistryState]):
    """The tenants of a store and their folders."""

    title = "the store's registry"

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self._tries_max = settings.commit_tries_max
        self._folders: tuple[RegistryState, frozenset[str]] = (RegistryState(), frozenset())
        super().__init__(storage, REGISTRY_FOLDER, settings, RegistryState(), _CHECKPOINT_INTERVAL)

    def entry(self, version: int) -> RegistryEntry:
        """The entry of a version.

        Raises:
            CorruptLog: it is damaged.
        """
        name = commit_name(version)
        return parse_registry_entry(self.storage.read(f"{self.folder}/{name}"), name)

    def parse_checkpoint(self, content: bytes, name: str) -> RegistryState:
        """See ``CheckpointedLog.parse_checkpoint``."""
        return parse_registry_checkpoint(content, name)

    def checkpoint_content(self, state: RegistryState) -> bytes:
        """See ``CheckpointedLog.checkpoint_content``."""
        return state.to_checkpoint()

    def knows(self, folder: str) -> bool:
        """Whether the folder belongs to a current tenant; constant time."""
        state = self.current_state()
        known, folders = self._folders
        if known is not state:
            folders = state.folders
            self._folders = (state, folders)
        return folder in folders

    def create(self, environment: str, tenant: str, folder: str) -> str:
        """The tenant's folder: ``folder``, or that of a concurrent creation that won.

        Raises:
            ConflictError, OutcomeUnknown, StorageUnavailable: see ``ConflictError`` and so on.
        """
        self._commit(
            "create", environment, tenant, folder, lambda state: state.folder(environment, tenant) is None
        )
        return self.current_state().folder(environment, tenant) or folder

    def delete(self, environment: str, tenant: str, folder: str) -> None:
        """Commit the deletion of a tenant: it is no longer found, and its folder is pending removal."""
        self._commit(
            "delete", environment, tenant, folder, lambda state: state.folder(environment, tenant) == folder
        )

    def commit_removal(self, environment: str, tenant: str, folder: str) -> None:
        """Commit the completed removal of a tenant's folder."""
        self._commit("removed", environment, tenant, folder, lambda state: folder in state.leaving)

    def _commit(
        self,
        kind: Kind,
        environment: str,
        tenant: str,
        folder: str,
        is_due: Callable[[RegistryState], bool],
    ) -> None:
        """Commit an entry, retrying after conflicts while ``is_due`` holds."""
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
                self.checkpoint_if_due(version)
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

    def write_checkpoint(self, state: RegistryState) -> None:
        """See ``CheckpointedLog.write_checkpoint``; old ones are deleted."""
        super().write_checkpoint(state)
        self._forget_old_checkpoints(state.version)

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
