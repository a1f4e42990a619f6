"""Registry of a store's tenants."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from freezeframe.clock import now_ms
from freezeframe.errors import ConflictError, CorruptLog, FreezeframeError, OutcomeUnknown, TenantNotFound
from freezeframe.log.primitives.paths import commit_name, version_prefix
from freezeframe.log.segments.commit import Committed, Unknown, land_file
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.model.directory import REGISTRY_FOLDER
from freezeframe.store.tenant_log.entry import Chain, Link, from_signed_line, to_signed_line
from freezeframe.store.tenant_log.log import CheckpointedLog
from freezeframe.store.tenant_log.state import NO_VERSION
from freezeframe.store.tenants.lifecycle import remove_tree

# A tenant id maps to a folder with an opaque name. A recreated tenant has a new folder, so no data of the
# deleted one can reappear.

Kind = Literal["create", "delete", "removed"]
_KINDS = ("create", "delete", "removed")
_FOLDER_LENGTH = 32
_STORED = ("kind", "environment", "tenant", "folder", "write_id", "timestamp_ms")


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """A tenant is created (``create``), deleted (``delete``), or its folder is removed (``removed``)."""

    kind: Kind
    environment: str
    tenant: str
    folder: str
    write_id: str
    timestamp_ms: int
    link: Link | None = None
    sha256: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"the kind {self.kind!r} is not known")
        if len(self.folder) != _FOLDER_LENGTH or not set(self.folder) <= set("0123456789abcdef"):
            raise ValueError(f"{self.folder!r} is not a folder of a tenant")

    def to_bytes(self) -> bytes:
        """Return the entry as one line of JSON, with a checksum."""
        record = {name: getattr(self, name) for name in _STORED}
        linked = {} if self.link is None else self.link.to_json()
        # ASCII only: some letters count as the end of a line, and a log's entry is one line.
        return to_signed_line({**record, **linked}, is_ascii=True)


@dataclass(frozen=True, slots=True)
class RegistryState:
    """Each environment's tenants and their folders; ``leaving``: folders pending removal."""

    version: int = NO_VERSION
    timestamp_ms: int = 0
    tenants: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    leaving: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    chain: Chain = field(default_factory=Chain)

    def folder(self, environment: str, tenant: str) -> str | None:
        """Return the tenant's folder; None for an unknown tenant."""
        return self.tenants.get(environment, {}).get(tenant)

    @property
    def folders(self) -> frozenset[str]:
        """The folders of all tenants of all environments."""
        return frozenset(folder for known in self.tenants.values() for folder in known.values())

    def after(self, version: int, *entries: RegistryEntry) -> RegistryState:
        """Return the state after ``entries``, which are ``version`` and the versions after it."""
        if not entries:
            return self
        # One copy for all entries, because it contains every tenant of the store.
        tenants = {name: dict(known) for name, known in self.tenants.items()}
        leaving = dict(self.leaving)
        chain = self.chain
        for number, entry in enumerate(entries, version):
            chain = chain.after(number, entry.link, entry.sha256, "the store's registry")
            _carry_out(entry, number, tenants.setdefault(entry.environment, {}), leaving)
        return replace(
            self,
            version=version + len(entries) - 1,
            timestamp_ms=entries[-1].timestamp_ms,
            tenants=MappingProxyType({name: MappingProxyType(known) for name, known in tenants.items()}),
            leaving=MappingProxyType(leaving),
            chain=chain,
        )

    def to_checkpoint(self) -> bytes:
        """Return the state as the content of a checkpoint file; tenants are in order of their ids."""
        record = {
            "version": self.version,
            "timestamp": self.timestamp_ms,
            "tenants": {name: dict(sorted(tenants.items())) for name, tenants in self.tenants.items()},
            "leaving": {folder: list(names) for folder, names in self.leaving.items()},
            **self.chain.to_json(),
        }
        return to_signed_line(record, is_ascii=True)


def _carry_out(
    entry: RegistryEntry, version: int, known: dict[str, str], leaving: dict[str, tuple[str, str]]
) -> None:
    if entry.kind == "create" and entry.tenant not in known:
        known[entry.tenant] = entry.folder
    elif entry.kind == "delete" and known.get(entry.tenant) == entry.folder:
        del known[entry.tenant]
        leaving[entry.folder] = (entry.environment, entry.tenant)
    elif entry.kind == "removed" and entry.folder in leaving:
        del leaving[entry.folder]
    else:
        raise CorruptLog(
            f"Entry {version} of the store's registry does not continue the one before it.",
            cause=f"It is a {entry.kind!r} of the folder {entry.folder}.",
            remedy="Restore the store's registry from a backup.",
            version=version,
        )


def parse_registry_entry(content: bytes, name: str) -> RegistryEntry:
    """Return the entry in a file's bytes; ``name`` is for messages."""
    try:
        record, sha256 = from_signed_line(content, is_ascii=True)
        known = {name: record[name] for name in _STORED}
        return RegistryEntry(**known, link=Link.of_record(record), sha256=sha256)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damage_error(f"entry {name!r}", error) from error


def parse_registry_checkpoint(content: bytes, name: str) -> RegistryState:
    """Return the state in a checkpoint file's bytes; ``name`` is for messages."""
    try:
        record, _ = from_signed_line(content, is_ascii=True)
        tenants = {env: MappingProxyType(dict(known)) for env, known in record["tenants"].items()}
        leaving = {folder: (env, tenant) for folder, (env, tenant) in record["leaving"].items()}
        return RegistryState(
            int(record["version"]),
            int(record["timestamp"]),
            MappingProxyType(tenants),
            MappingProxyType(leaving),
            Chain.of_record(record),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damage_error(f"checkpoint {name!r}", error) from error


def _damage_error(what: str, error: Exception) -> CorruptLog:
    return CorruptLog(
        f"The {what} of the store's registry cannot be read.",
        cause=f"It is damaged or cut off ({error}).",
        remedy="Restore it from a backup; a checkpoint can be deleted, for it is made again.",
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
        """Return the entry of a version."""
        name = commit_name(version)
        return parse_registry_entry(self.storage.read(f"{self.folder}/{name}"), name)

    def parse_checkpoint(self, content: bytes, name: str) -> RegistryState:
        """See ``CheckpointedLog.parse_checkpoint``."""
        return parse_registry_checkpoint(content, name)

    def checkpoint_content(self, state: RegistryState) -> bytes:
        """See ``CheckpointedLog.checkpoint_content``."""
        return state.to_checkpoint()

    def knows(self, folder: str) -> bool:
        """Return whether the folder belongs to a current tenant; constant time."""
        state = self.current_state()
        known, folders = self._folders
        if known is not state:
            folders = state.folders
            self._folders = (state, folders)
        return folder in folders

    def create(self, environment: str, tenant: str, folder: str) -> str:
        """Return the tenant's folder: ``folder``, or that of a concurrent creation that won."""
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
        self, kind: Kind, environment: str, tenant: str, folder: str, is_due: Callable[[RegistryState], bool]
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
                    f"It is unknown whether the registry has the {kind} of {tenant!r}.",
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


class RegistryGuard:
    """Guard of a store's tenant, which exists while the registry has its folder."""

    def __init__(self, registry: Registry, folder: str, place: Storage) -> None:
        self._registry = registry
        self._folder = folder
        self._place = place

    def require_writable(self) -> None:
        """See ``TenantGuard.require_writable``."""

    def require_open(self) -> None:
        """See ``TenantGuard.require_open``."""
        if not self._registry.knows(self._folder):
            raise TenantNotFound(
                "The tenant was deleted while the job was under way.",
                cause="The store's registry no longer names its folder.",
                remedy="Nothing of the job was kept; make the tenant again, then run it once more.",
            )

    def remove_orphans(self) -> None:
        """See ``TenantGuard.remove_orphans``; ``Store.sweep`` retries failures."""
        with suppress(FreezeframeError):
            try:
                self.require_open()
            except TenantNotFound:
                remove_tree(self._place)
