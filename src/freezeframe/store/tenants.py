"""The tenants of a store: their registry, and how they are built, cloned and deleted."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Literal

import pyarrow as pa

from freezeframe import progress
from freezeframe.clock import now_ms
from freezeframe.errors import (
    ConflictError,
    CorruptData,
    CorruptLog,
    FreezeframeError,
    OutcomeUnknown,
    TenantNotFound,
)
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log import Snapshot
from freezeframe.log.primitives.paths import commit_name, version_prefix
from freezeframe.log.segments.commit import Committed, Unknown, land_file
from freezeframe.settings import Settings
from freezeframe.storage import FileStatus, LocalStorage, PrefixStorage, Storage
from freezeframe.storage.read_ahead import map_concurrently
from freezeframe.store.blobs.blob_store import CHUNK_BYTES, Blob, FileNames, Measured, blob_chunks, write_blob
from freezeframe.store.blobs.sealing import DataKey, data_key, seal, unseal
from freezeframe.store.model.directory import (
    KEYS_FOLDER,
    OURS,
    REGISTRY_FOLDER,
    StreamTable,
    ensure_format,
    is_store,
    remove_job_roots,
    remove_waiting,
    table_folder,
    table_name,
    tenant_folder,
    tenant_of,
)
from freezeframe.store.model.json_fields import JsonFields
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import NO_REQUEST, RequestContext
from freezeframe.store.schema.columns import written_columns
from freezeframe.store.table.commit import CommitIdentity, PortableFile, portable_stream
from freezeframe.store.table.keys import rows_with_keys
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.entry import (
    Chain,
    Change,
    Entry,
    FileChange,
    Link,
    StreamChange,
    from_signed_line,
    to_signed_line,
)
from freezeframe.store.tenant_log.log import CheckpointedLog, TenantLog
from freezeframe.store.tenant_log.roll_forward import (
    keep_long_commits,
    require_no_case_twin,
    roll_forward,
    shorten_entry,
    table_snapshot,
)
from freezeframe.store.tenant_log.state import NO_VERSION, HeldFile, TenantState
from freezeframe.store.transaction.changes import NO_GUARD, TenantGuard

# Writing a file is mostly waiting: for the disk's sync or the bucket's response.
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
        """Copy a file of a table, verified against its recorded size and SHA-256."""
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
        """Add a stream with this single table commit."""
        require_no_case_twin(self._streams, name)
        self._streams[str(name)] = StreamChange(name, 0, content, Counts())

    def add_rows(self, name: StreamName, table: Snapshot, keys: pa.Table) -> None:
        """Add a stream with the rows of a table that have one of the keys, written anew."""
        staging = StagingFolder(StreamTable.of(self._storage, name), f"{self.identity.write_id}-rows")
        staging.prepare()
        schema = written_columns(table.delta_schema)
        rows = rows_with_keys(table, [column["name"] for column in schema["fields"]], keys)
        files = staging.seal(staging.write(rows, schema), schema)
        self.add_stream(name, portable_stream(table, self.identity, "CLONE", files).content)

    def add_files(self, files: Sequence[NewFile]) -> None:
        """Write files concurrently from their plain content; all are durable when this returns."""
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
        """Commit everything as the tenant's version 0, attributed to the request."""
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
                cause="Another process created a tenant there, or the storage's response was lost.",
                remedy="Run the same call again.",
            )
        roll_forward(log, entry, 0, self._settings.checkpoint_interval)


# The registry already has the tenant's deletion, so no process can open it. A process with an open tenant
# may still write, so listing and deletion repeat until no file is left.

_ROUNDS_MAX = 20


@dataclass(frozen=True, slots=True)
class Deletion(JsonFields):
    """Result of deleting a tenant, whose folder was empty afterwards.

    ``versions``, ``streams`` and ``files`` are counts from the tenant's log (-1: unreadable); ``objects`` and
    ``size_bytes`` are what this call removed from its folder. ``keys`` data keys were removed first: from
    then on no copy of a sealed file can be opened.
    """

    environment: str
    tenant: str
    versions: int
    streams: int
    files: int
    objects: int
    size_bytes: int
    keys: int


def remove_tenant(target: Storage, environment: str, tenant: str, settings: Settings) -> Deletion:
    """Delete all that a tenant's storage holds."""
    versions, streams, files = _count_held(target, settings)
    keys = len(list(target.list_from(KEYS_FOLDER)))
    remove_job_roots(target, settings)
    remove_waiting(target, settings)
    listing = {status.name: status.size for status in target.list_below("")}
    _remove(target, [name for name in listing if name.startswith(f"{KEYS_FOLDER}/")])
    listing |= remove_tree(target)
    size = sum(listing.values())
    return Deletion(environment, tenant, versions, streams, files, len(listing), size, keys)


def remove_tree(target: Storage) -> dict[str, int]:
    """Delete every file of a storage; return their names and sizes.

    The tenant log is deleted last, so a concurrent reader finds a damaged tenant, not an empty tenant.
    """
    removed: dict[str, int] = {}
    for _ in range(_ROUNDS_MAX):
        found: list[FileStatus] = sorted(
            target.list_below(""), key=lambda item: item.name.startswith(f"{OURS}/")
        )
        removed |= {status.name: status.size for status in found}
        _remove(target, [status.name for status in found])
        target.prune("")
        if not found:
            return removed
    raise ConflictError(
        f"{target.root} could not be emptied.",
        cause="A process kept writing into it, for example a job that had started before.",
        remedy="Stop the job, then run the same call again, which continues from here.",
    )


def _remove(target: Storage, names: Iterable[str]) -> None:
    for name in names:
        target.delete(name)


def _count_held(target: Storage, settings: Settings) -> tuple[int, int, int]:
    try:
        state: TenantState = TenantLog(target, settings).current_state()
    except FreezeframeError:
        # Unreadable files are deleted too.
        return (NO_VERSION, NO_VERSION, NO_VERSION)
    return (state.version + 1, len(state.streams), len(state.files))


# A clone copies every byte. With hard links two tenants would share a file: an erasure or a damaged block
# in one would affect the other. Sealed files are encrypted again, because a seal is bound to its tenant.


@dataclass(frozen=True, slots=True)
class ClonePart:
    """What a clone has: a state (None: the newest) and of it these streams and files (None: all).

    Of a stream with ``keys`` only the rows with these keys.
    """

    state: TenantState | None = None
    streams: Collection[str] | None = None
    files: Collection[str] | None = None
    keys: Mapping[str, pa.Table] = field(default_factory=lambda: MappingProxyType({}))


WHOLE = ClonePart()


def clone_into(
    source: Storage,
    target: Storage,
    settings: Settings,
    request_context: RequestContext = NO_REQUEST,
    part: ClonePart = WHOLE,
) -> None:
    """Clone a part of the streams and files of ``source`` into the empty ``target``."""
    log = TenantLog(source, settings)
    state = part.state or log.current_state()
    builder = TenantBuilder(target, settings)
    progress.begin("copying", "bytes")
    try:
        for name in map(StreamName, sorted(_chosen(state.streams, part.streams))):
            table = table_snapshot(log, state, name)
            if str(name) in part.keys:
                builder.add_rows(name, table, part.keys[str(name)])
            else:
                _copy_stream(name, table, builder)
        paths = sorted(_chosen(state.files, part.files))
        files = [(FilePath(path), state.files[path]) for path in paths]
        builder.add_files(
            [
                NewFile(path, partial(_content, source, settings, path, held), held.sealed)
                for path, held in files
            ]
        )
        builder.commit(f"cloned from version {state.version} of another tenant", request_context)
    except Exception:
        remove_tree(target)
        raise


def _chosen(there: Iterable[str], wanted: Collection[str] | None) -> list[str]:
    return [name for name in there if wanted is None or name in wanted]


def _content(storage: Storage, settings: Settings, path: FilePath, held: HeldFile) -> Iterator[bytes]:
    """Return the plain content of a file in chunks; errors as in ``Files.chunks``."""
    stored = blob_chunks(storage, Blob(held.blob, held.sha256, held.size))
    if not held.sealed:
        return progress.count_bytes(stored)
    key = data_key(storage, settings)
    return progress.count_bytes(unseal(stored, key.secret, key.tenant, path))


def _copy_stream(name: StreamName, table: Snapshot, builder: TenantBuilder) -> None:
    stream = portable_stream(table, builder.identity, "CLONE")

    def copy(file: PortableFile) -> None:
        builder.add_table_file(name, file, progress.count_bytes(_table_file_chunks(table, file)))

    map_concurrently(copy, stream.files, WRITERS_MAX)
    builder.add_stream(name, stream.content)


def _table_file_chunks(table: Snapshot, file: PortableFile) -> Iterator[bytes]:
    """Return the bytes of a table's file, in chunks."""
    offset = 0
    while True:
        try:
            chunk = table.storage.read(f"{table.table}/{file.path}", offset, CHUNK_BYTES)
        except FileNotFoundError:
            raise CorruptData(
                f"The file {file.path!r} of the stream {table_name(table.table)!r} is gone.",
                cause="Another program deleted it.",
                remedy="Restore the tenant's directory from a backup.",
                path=file.path,
            ) from None
        yield chunk
        offset += len(chunk)
        if len(chunk) < CHUNK_BYTES:
            return


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
        content = self.storage.read(f"{self.folder}/{name}")
        try:
            record, sha256 = from_signed_line(content, is_ascii=True)
            known = {name: record[name] for name in _STORED}
            return RegistryEntry(**known, link=Link.of_record(record), sha256=sha256)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damage_error(f"entry {name!r}", error) from error

    def parse_checkpoint(self, content: bytes, name: str) -> RegistryState:
        """See ``CheckpointedLog.parse_checkpoint``."""
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
        is_made = self._commit(
            "create", environment, tenant, folder, lambda state: state.folder(environment, tenant) is None
        )
        return folder if is_made else self.current_state().folder(environment, tenant) or folder

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
    ) -> bool:
        """Commit an entry, retrying conflicts while ``is_due`` holds; return whether it was committed."""
        write_id = uuid.uuid4().hex
        for _ in range(self._tries_max):
            state = self.current_state()
            if not is_due(state):
                return False
            moment = max(now_ms(), state.timestamp_ms + 1)
            version = state.version + 1
            link = Link(version, self._head_of(state))
            entry = RegistryEntry(kind, environment, tenant, folder, write_id, moment, link)
            name = f"{self.folder}/{commit_name(version)}"
            outcome = land_file(self.storage, name, version, entry.to_bytes())
            if isinstance(outcome, Committed):
                self.checkpoint_if_due(version)
                return True
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


class RegistryGuard(TenantGuard):
    """Guard of a store's tenant, which exists while the registry has its folder."""

    def __init__(self, registry: Registry, folder: str) -> None:
        self._registry = registry
        self.folder = folder

    def require_open(self) -> None:
        """See ``TenantGuard.require_open``."""
        if not self._registry.knows(self.folder):
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
                remove_tree(PrefixStorage(self._registry.storage, tenant_folder(self.folder)))


class _PlaceGuard(RegistryGuard):
    """Return the guard of a directory that is opened by its path: its store's registry, if in one."""

    def remove_orphans(self) -> None:
        """See ``TenantGuard.remove_orphans``; ``Store.sweep`` removes them."""


def guard_of_place(storage: Storage, settings: Settings) -> TenantGuard:
    """Return the guard of a directory that is opened by its path: its store's registry, if it has one."""
    path = storage.local_path("")
    place = None if path is None else path.resolve()
    if place is None or not (folder := tenant_of(str(place))):
        return NO_GUARD
    store = LocalStorage(str(place).removesuffix(f"/{tenant_folder(folder)}"))
    return _PlaceGuard(Registry(store, settings), folder) if is_store(store) else NO_GUARD
