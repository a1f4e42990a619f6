"""Access of a caller to stores and tenants."""

import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from freezeframe.control.job import QueuedJob
from freezeframe.errors import NotAllowed, TenantNotFound
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.script.tenants import storage_at
from freezeframe.service.access.audit import AuditScope
from freezeframe.service.access.keys import Principal, Scope
from freezeframe.settings import Settings
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.model.update_options import NO_REQUEST, RequestContext
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenants import Deletion

_DEFAULT_ENVIRONMENT = EnvironmentName("default")


class Stores:
    """The environments of one root; each is opened on first use."""

    def __init__(self, root: str, settings: Settings) -> None:
        self.root = root
        self.settings = settings
        self._storage = storage_at(root, settings)
        self._engine = ArrowEngine()
        # The service has no Spark, whatever the size of a stream.
        self._searching = settings.model_copy(update={"engine": "auto", "searched_rows_max": sys.maxsize})
        self._lock = threading.Lock()
        self._stores: dict[EnvironmentName, Store] = {}

    def environment(self, name: EnvironmentName) -> Store:
        """Return the store of one environment, whether or not it has tenants yet."""
        known = self._stores.get(name)
        if known is not None:
            return known
        with self._lock:
            if name not in self._stores:
                self._stores[name] = Store(self._storage, self._engine, self._searching, name)
            return self._stores[name]

    def environments(self) -> tuple[EnvironmentName, ...]:
        """Return the environments that have tenants, in order."""
        return tuple(map(EnvironmentName, self.environment(_DEFAULT_ENVIRONMENT).environments()))

    def is_current(self, job: QueuedJob) -> bool:
        """Return whether a job belongs to the tenant that has the id now, not to an earlier one."""
        folder = self.environment(EnvironmentName(job.environment)).folder(job.tenant)
        return job.incarnation in {"", folder}

    def require_readable(self) -> None:
        """Read the registry once, so that a failing storage is found before the first request."""
        self.environments()


# Routes get tenants from here and from nowhere else. A tenant that is not the principal's business is
# answered like one that is not there: the same error, the same words, after the same look into the
# registry.

_T = TypeVar("_T")
# The room in the audit's table beside the folder; the name is only for readers of the table.
_NAMED_LETTERS = 160
_TENANTS_OF_PAGE = 1000


@dataclass(frozen=True, slots=True)
class TenantPage:
    """A page of tenant ids, and the id after which the next one begins (None: this is the last)."""

    tenants: tuple[str, ...]
    next_after: str | None


class TenantAccess:
    """Opens tenants for one principal."""

    def __init__(self, stores: Stores, principal: Principal) -> None:
        self._stores = stores
        self.principal = principal

    def tenant(self, environment: EnvironmentName, tenant: TenantId, scope: Scope) -> Tenant:
        """Return the tenant, if the principal has ``scope`` there."""
        self.principal.require(scope)
        return self._find(environment, tenant, lambda store, known: store.tenant(known))

    def require(self, environment: EnvironmentName, tenant: TenantId, scope: Scope) -> None:
        """Check what ``tenant`` checks, for data that is kept elsewhere under the tenant's name."""
        self.tenant(environment, tenant, scope)

    def audit_scope(self, environment: EnvironmentName, tenant: TenantId) -> AuditScope:
        """Return the tenant as the audit names it; an earlier tenant of the same id has another name."""
        return audit_scope(self._stores, environment, tenant)

    def folder(self, environment: EnvironmentName, tenant: TenantId) -> str:
        """Return the tenant's folder in the store, empty if it has none; the principal must see it."""
        return self._stores.environment(environment).folder(tenant) or ""

    def find(self, environment: EnvironmentName, tenant: TenantId) -> Tenant | None:
        """Return the tenant, or None; the principal must have the right to create it."""
        self.principal.require("snapshots:write")
        self._require_seen(environment, tenant)
        store = self._stores.environment(environment)
        return store.tenant(tenant) if self._is_there(store, tenant) else None

    def create(self, environment: EnvironmentName, tenant: TenantId) -> tuple[Tenant, bool]:
        """Return the tenant, made if it was not there, and whether it was made by this call."""
        self.principal.require("snapshots:write")
        self._require_seen(environment, tenant)
        store = self._stores.environment(environment)
        is_new = not self._is_there(store, tenant)
        return store.tenant(tenant, create=True), is_new

    def delete(self, environment: EnvironmentName, tenant: TenantId) -> Deletion:
        """Remove all that is kept for the tenant; errors as of ``tenant``."""
        self.principal.require("snapshots:delete")
        return self._find(environment, tenant, lambda store, known: store.delete_tenant(known))

    def require_clone(self, environment: EnvironmentName, source: TenantId, target: TenantId) -> None:
        """Check that the principal may clone ``source`` to ``target``, and sees both."""
        self.principal.require("snapshots:read")
        self.principal.require("snapshots:write")
        self.tenant(environment, source, "snapshots:read")
        self._require_seen(environment, target)

    def clone(
        self,
        environment: EnvironmentName,
        source: TenantId,
        target: TenantId,
        request_context: RequestContext = NO_REQUEST,
    ) -> Tenant:
        """Return a new tenant with the newest content of another; the principal must see both."""
        self.require_clone(environment, source, target)
        return self._find(
            environment, source, lambda store, known: store.clone_tenant(known, target, request_context)
        )

    def page(self, environment: EnvironmentName, prefix: str, after: str | None, limit: int) -> TenantPage:
        """Return the tenants of an environment that the principal sees, by id."""
        self.principal.require("tenants:read")
        store = self._stores.environment(environment)
        if not self.principal.sees_environment(environment):
            return TenantPage((), None)
        if self.principal.tenants is None:
            found = store.tenants(prefix, after, limit + 1)
        else:
            visible = sorted(tenant for tenant in self.principal.tenants if tenant.startswith(prefix))
            there = (item for item in visible if (after is None or item > after))
            found = tuple(item for item in there if self._is_there(store, item))[: limit + 1]
        return TenantPage(found[:limit], found[limit - 1] if len(found) > limit else None)

    def all_tenants(self, environment: EnvironmentName, prefix: str = "") -> Iterator[str]:
        """Yield all tenants of an environment that the principal sees, by id; of a prefix only those."""
        after: str | None = None
        while True:
            page = self.page(environment, prefix, after, _TENANTS_OF_PAGE)
            yield from page.tenants
            if (after := page.next_after) is None:
                return

    def environments(self) -> tuple[str, ...]:
        """Return the environments with tenants that the principal sees."""
        self.principal.require("tenants:read")
        return tuple(
            str(environment)
            for environment in self._stores.environments()
            if self.principal.sees_environment(environment)
        )

    def _find(
        self, environment: EnvironmentName, tenant: TenantId, use: Callable[[Store, TenantId], _T]
    ) -> _T:
        # A foreign tenant is handled like a missing one: a lookup of an id that does not exist.
        is_seen = self.principal.sees(environment, tenant)
        try:
            store = self._stores.environment(environment)
            return use(store, tenant) if is_seen else use(store, TenantId(uuid.uuid4().hex))
        except TenantNotFound:
            raise TenantNotFound(
                f"There is no tenant {tenant!r} in the environment {environment!r}.",
                cause="No tenant has that id, or the caller has no access to it.",
                remedy="Check the id and the key.",
                tenant=tenant,
            ) from None

    def _is_there(self, store: Store, tenant: TenantId) -> bool:
        return str(tenant) in store.tenants(str(tenant), limit=1)

    def _require_seen(self, environment: EnvironmentName, tenant: TenantId) -> None:
        if not self.principal.sees(environment, tenant):
            raise NotAllowed(
                "This key cannot create that tenant.",
                cause="The key is bound to other tenants or environments.",
                remedy="Use a key without a binding, or one bound to that tenant.",
            )


def audit_scope(stores: Stores, environment: EnvironmentName, tenant: TenantId) -> AuditScope:
    """Return the tenant that has the id now, as the audit names it."""
    return tenant_scope(stores.environment(environment), tenant)


def tenant_scope(store: Store, tenant: TenantId) -> AuditScope:
    """Return the tenant that has the id in ``store`` now, as the audit names it."""
    return _scope(store.environment, tenant, store.folder(tenant) or "")


def opened_scope(environment: str, tenant: Tenant) -> AuditScope:
    """Return an opened tenant as the audit names it, without a look into the registry."""
    return _scope(environment, tenant.context.tenant_id, tenant.context.guard.folder)


def _scope(environment: str, tenant: str, folder: str) -> AuditScope:
    return AuditScope(environment, f"{tenant[:_NAMED_LETTERS]}@{folder}")


CONFIGURATION_SUFFIX = "config.json"
TENANTS_LOOKED_AT = 100


def unsealed_configurations(stores: Stores, tenants_max: int = TENANTS_LOOKED_AT) -> Iterator[str]:
    """``environment/tenant/path`` of each unsealed ``*config.json``, of the first tenants only.

    A large store would take minutes to look through, and one such file is enough to be warned.
    """
    left = tenants_max
    for environment in stores.environments():
        if left < 1:
            return
        store = stores.environment(environment)
        names = store.tenants(limit=left)
        left -= len(names)
        for name in names:
            for path, held in store.tenant(name).context.log.current_state().files.items():
                if path.endswith(CONFIGURATION_SUFFIX) and not held.sealed:
                    yield f"{environment}/{name}/{path}"
