"""A store: many tenants under one root, each in a folder of its own.

The registry maps a tenant to its folder, ``paths`` builds the folder's name, and the tenant's
storage is restricted to it; callers never join tenant ids and paths. Protocol:
``docs/reference/tenant-log.md``.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial

from freezeframe.clock import now_ms
from freezeframe.engine.protocol import TableEngine
from freezeframe.errors import AlreadyExists, InvalidOption, TenantNotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.settings import Settings
from freezeframe.storage import PrefixStorage, Storage
from freezeframe.storage.probe import require_proven
from freezeframe.storage.read_ahead import run_concurrently
from freezeframe.store.blobs.sealing import MasterKey, rewrap
from freezeframe.store.maintenance.verification import Verification, verify_tenant
from freezeframe.store.model.directory import (
    OURS,
    TENANTS_FOLDER,
    ensure_format,
    require_known_format,
    require_no_tenant,
    require_own_place,
    tenant_folder,
    tenant_of,
)
from freezeframe.store.model.receipt import html_table
from freezeframe.store.model.update_options import NO_REQUEST, RequestContext
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenant_log.state import NO_VERSION
from freezeframe.store.tenants import (
    WHOLE,
    ClonePart,
    Deletion,
    Registry,
    RegistryGuard,
    RegistryState,
    clone_into,
    remove_tenant,
    remove_tree,
)
from freezeframe.store.transaction.changes import TenantGuard

TENANTS_PAGE = 1000
_SHOWN_TENANTS, _SHOWN_STREAMS = 20, 8


class Store:
    """The tenants of one environment of a store; nothing is written before the first one is created."""

    def __init__(
        self, storage: Storage, engine: TableEngine, settings: Settings, environment: str = "default"
    ) -> None:
        _, _, registry = run_concurrently(
            storage,
            lambda: require_known_format(storage),
            lambda: require_no_tenant(storage),
            lambda: Registry(storage, settings),
        )
        self._storage = storage
        self._engine = engine
        self._settings = settings
        self._environment = str(EnvironmentName(environment))
        self._registry: Registry = registry
        self._lock = threading.Lock()
        self._tenants: dict[str, Tenant] = {}
        self._sorted: tuple[RegistryState, list[str]] = (RegistryState(), [])

    def __repr__(self) -> str:
        return f"Store({self._storage.root!r}, environment={self._environment!r})"

    def _repr_html_(self) -> str:
        """Return the first tenants in a notebook, with their versions and streams."""
        shown = [(name, self[name]) for name in self.tenants(limit=_SHOWN_TENANTS)]
        rows = [
            (name, tenant.version, ", ".join(tenant.streams()[:_SHOWN_STREAMS])) for name, tenant in shown
        ]
        more = f", the first {len(shown)}" if len(shown) < len(self) else ""
        caption = f"{self._environment}, {len(self):,} {'tenant' if len(self) == 1 else 'tenants'}{more}"
        return html_table(caption, ("tenant", "version", "streams"), rows)

    def __getitem__(self, tenant_id: str) -> Tenant:
        """Return the tenant of that id; errors as of ``tenant``."""
        return self.tenant(tenant_id)

    def __contains__(self, tenant_id: object) -> bool:
        return str(tenant_id) in self._registry.current_state().tenants.get(self._environment, {})

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(self.tenant_pages())

    def __len__(self) -> int:
        return len(self._names())

    def __bool__(self) -> bool:
        return True  # a store without tenants is one

    @property
    def environment(self) -> str:
        """The environment of the visible tenants."""
        return self._environment

    def tenant(self, tenant_id: str | TenantId, *, create: bool = False) -> Tenant:
        """Return the tenant of that id; with ``create`` it is created if it does not exist.

        Of any number of processes that make the same tenant at once, all get the same one.

        Raises:
            InvalidName: no tenant can have that id.
            TenantNotFound: there is none, and ``create`` is not set.
            StorageUnsuitable: a new store's storage has no atomic create.
        """
        known = _tenant_id(tenant_id)
        folder = self.folder(known)
        if folder is None:
            if not create:
                raise self._not_found(known)
            folder = self._create(known, uuid.uuid4().hex, lambda place: ensure_format(place, probe=False))
        return self._open(folder, str(known))

    def unlisted_tenant(self, tenant_id: str | TenantId, token: str) -> Tenant:
        """Return the tenant; if there is none, an empty one that only calls with the same ``token`` find.

        It is for a dry run. ``remove_unlisted`` removes it; after a crash ``sweep`` does.

        Raises:
            InvalidName: no tenant can have that id.
            StorageUnsuitable: a new store's storage has no atomic create.
        """
        known = _tenant_id(tenant_id)
        if self.folder(known) is not None:
            return self.tenant(known)
        if not require_known_format(self._storage):
            require_proven(self._storage, OURS)
        storage = self._folder(_unlisted_folder(token))
        ensure_format(storage, probe=False)
        return Tenant(storage, self._engine, self._settings, TenantGuard(), str(known))

    def remove_unlisted(self, token: str) -> None:
        """Remove what ``unlisted_tenant`` made for that token, if it made anything."""
        remove_tree(self._folder(_unlisted_folder(token)))
        if not require_known_format(self._storage):
            self._storage.prune(OURS)  # of a new store: the probe made it

    def folder(self, tenant_id: str | TenantId) -> str | None:
        """Return the opaque name of the tenant's folder; None: there is no such tenant.

        No other tenant has it, not even an earlier one of the same id.
        """
        return self._registry.current_state().folder(self._environment, str(_tenant_id(tenant_id)))

    def tenants(
        self, prefix: str = "", after: str | None = None, limit: int = TENANTS_PAGE
    ) -> tuple[str, ...]:
        """Return a page of the tenants' ids in order: those that begin with ``prefix`` and follow ``after``.

        Raises:
            InvalidOption: ``limit`` is less than 1.
        """
        if limit < 1:
            raise InvalidOption(f"limit cannot be {limit}.", remedy="Ask for at least one tenant.")
        names = self._names()
        start = bisect.bisect_left(names, prefix)
        if after is not None:
            start = max(start, bisect.bisect_right(names, after))
        end = bisect.bisect_left(names, prefix + chr(0x10FFFF)) if prefix else len(names)
        return tuple(names[start : min(end, start + limit)])

    def tenant_pages(self, limit: int = TENANTS_PAGE) -> Iterator[tuple[str, ...]]:
        """Return the ids of all tenants, in order, page by page, each page read when it is reached.

        Raises:
            InvalidOption: ``limit`` is less than 1.
        """
        after = None
        while page := self.tenants(after=after, limit=limit):
            yield page
            after = page[-1]

    def environments(self) -> tuple[str, ...]:
        """Return the environments of the whole store with tenants, sorted."""
        tenants = self._registry.current_state().tenants
        return tuple(sorted(name for name, known in tenants.items() if known))

    def delete_tenant(self, tenant_id: str | TenantId) -> Deletion:
        """Delete the tenant with all its data; also finishes an interrupted deletion.

        The tenant disappears from the store at once, then its keys are deleted, then its data. Its running
        jobs fail at their end and delete what they wrote; ``sweep`` deletes what a killed job left.

        Raises:
            TenantNotFound: there is none.
            TryAgain: the storage failed on the way; the same call goes on from there.
        """
        known = str(_tenant_id(tenant_id))
        state = self._registry.current_state()
        folder = state.folder(self._environment, known)
        leaving = [folder for folder, names in state.leaving.items() if names == (self._environment, known)]
        if folder is None and not leaving:
            raise self._not_found(TenantId(known))
        if folder is not None:
            self._registry.delete(self._environment, known, folder)
            leaving.append(folder)
        deletions = [self._remove(self._environment, known, item) for item in leaving]
        return deletions[-1]

    def sweep(self) -> tuple[Deletion, ...]:
        """Finish what crashes left half done in this store: deletions, and unfinished tenants.

        A folder with a name as tenants' folders have it that the registry does not know is removed once
        nobody has written into it for as long as a job may stand still (``lease_dead_seconds`` and
        ``gc_grace_seconds``); its deletion has no environment, and the folder's name as the tenant.
        """
        state = self._registry.current_state()
        finished = [
            self._remove(environment, tenant, folder)
            for folder, (environment, tenant) in state.leaving.items()
        ]
        patience_ms = 1000 * (self._settings.lease_dead_seconds + self._settings.gc_grace_seconds)
        touched: dict[str, int] = {}
        for status in self._storage.list_below(TENANTS_FOLDER):
            folder = status.name.partition("/")[0]
            if tenant_of(tenant_folder(folder)):
                touched[folder] = max(touched.get(folder, 0), status.modified_ms)
        # Read again after the listing: the registry now has tenants created meanwhile.
        known = self._registry.current_state().folders
        for folder, modified_ms in touched.items():
            if folder not in known and modified_ms + patience_ms < now_ms():
                finished.append(remove_tenant(self._folder(folder), "", folder, self._settings))
        return tuple(finished)

    def clone_tenant(
        self,
        source: str | TenantId,
        target: str | TenantId,
        request_context: RequestContext = NO_REQUEST,
        *,
        to: Store | None = None,
    ) -> Tenant:
        """Create a tenant with the newest streams and files of ``source``, without its past.

        ``to`` is the store of the new tenant; without it, this one. All bytes are copied: the two share
        nothing, so neither's gc, erasure or deletion can touch the other. Sealed files are sealed anew, under
        the new tenant's own key. The target appears in the store once it is complete. If the same request is
        repeated, it returns the same clone.

        Raises:
            TenantNotFound: there is no ``source``.
            AlreadyExists: there is a ``target`` already.
            SealingUnavailable: ``source`` has sealed files and there is no master key.
        """
        folder = self._folder_of(_tenant_id(source))
        return (to or self).create_clone(folder, _tenant_id(target), request_context)

    def create_clone(
        self,
        source: Storage,
        target: TenantId,
        request_context: RequestContext = NO_REQUEST,
        part: ClonePart = WHOLE,
    ) -> Tenant:
        """Create a tenant with a part of what a tenant's storage has, for packages built on this one."""
        made = self.folder(target)
        if made is not None and request_context.job_id is not None:
            again = self._open(made, str(target))
            log = again.context.log
            if log.known_job(log.current_state(), request_context.job_id) is not None:
                return again
        self._require_free(target)
        folder = uuid.uuid4().hex
        fill = partial(
            clone_into, source, settings=self._settings, request_context=request_context, part=part
        )
        if self._create(target, folder, fill) != folder:
            self._require_free(target)
        return self._open(folder, str(target))

    def verify_tenant(self, tenant_id: str | TenantId) -> Verification:
        """Report the damage of a tenant, also if its log cannot be opened; see ``Tenant.verify``.

        Raises:
            TenantNotFound: there is none.
        """
        return verify_tenant(self._folder_of(_tenant_id(tenant_id)), self._settings)

    def rotate_master_key(self, old: MasterKey, new: MasterKey) -> int:
        """Encrypt the data keys of all tenants, in all environments, with ``new``; return their number.

        Files are not written anew. A crash on the way is finished by calling it again.

        Raises:
            SealingUnavailable: a data key is under neither of the two.
        """
        folders = self._registry.current_state().folders
        return sum(rewrap(self._folder(folder), old, new) for folder in sorted(folders))

    def _names(self) -> list[str]:
        """Return the sorted ids of all tenants, cached for each state of the registry."""
        state = self._registry.current_state()
        known, names = self._sorted
        if known is not state:
            names = sorted(state.tenants.get(self._environment, {}))
            self._sorted = (state, names)
        return names

    def _create(self, tenant: TenantId, folder: str, fill: Callable[[Storage], object]) -> str:
        """Create a tenant in ``folder`` and return its folder, or that of a concurrent creation that won.

        It is filled and opened before its registration, after which no failure may reach the caller.
        """
        self._prepare()
        fill(self._folder(folder))
        self._open(folder, str(tenant))
        winner = self._registry.create(self._environment, str(tenant), folder)
        if winner != folder:
            self._tenants.pop(folder, None)
            remove_tree(self._folder(folder))
        return winner

    def _prepare(self) -> None:
        """Check the directory before a tenant's creation: before the first, it may be of another kind."""
        if self._registry.current_state().version == NO_VERSION:
            require_no_tenant(self._storage)
            require_own_place(self._storage)
        ensure_format(self._storage)

    def _require_free(self, tenant: TenantId) -> None:
        if self.folder(tenant) is not None:
            raise AlreadyExists(
                f"There is a tenant {str(tenant)!r} already.", remedy="Delete it first, or use another id."
            )

    def _remove(self, environment: str, tenant: str, folder: str) -> Deletion:
        with self._lock:
            self._tenants.pop(folder, None)
        removed = remove_tenant(self._folder(folder), environment, tenant, self._settings)
        self._registry.commit_removal(environment, tenant, folder)
        return removed

    def _open(self, folder: str, tenant_id: str) -> Tenant:
        known = self._tenants.get(folder)
        if known is not None:
            return known
        guard = RegistryGuard(self._registry, folder)
        # Without the lock: in a bucket this takes some requests, and many tenants are opened at once.
        made = Tenant(self._folder(folder), self._engine, self._settings, guard, tenant_id)
        with self._lock:
            return self._tenants.setdefault(folder, made)

    def _folder(self, folder: str) -> PrefixStorage:
        return PrefixStorage(self._storage, tenant_folder(folder))

    def _folder_of(self, tenant: TenantId) -> PrefixStorage:
        folder = self.folder(tenant)
        if folder is None:
            raise self._not_found(tenant)
        return self._folder(folder)

    def _not_found(self, tenant: TenantId) -> TenantNotFound:
        return TenantNotFound(
            f"There is no tenant {str(tenant)!r}.",
            cause=f"The environment {self._environment!r} of {self._storage.root} has none of that id.",
            remedy="Check the id, or create the tenant: freezeframe tenant create; in Python "
            "store.tenant(id, create=True).",
            tenant=str(tenant),
        )


def _unlisted_folder(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _tenant_id(tenant: str | TenantId) -> TenantId:
    return tenant if isinstance(tenant, TenantId) else TenantId(tenant)
