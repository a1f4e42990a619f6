"""The user of this machine, who calls an operation by a command, and the audit of what it changes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from freezeframe.cli.location import Control, TenantLocation, control, open_store, present_control
from freezeframe.store.model.update_options import Author, RequestContext, system_user

if TYPE_CHECKING:
    from freezeframe.cli.output import Output
    from freezeframe.service.access.audit import Audit, AuditedOperation, AuditScope
    from freezeframe.service.access.keys import Scope
    from freezeframe.store import Tenant
    from freezeframe.store.transaction.conditions import Subject


def command_principal() -> str:
    """Return the principal of a command, for the audit."""
    return f"command:{system_user()}"


@dataclass(slots=True)
class Unaudited:
    """A change of a tenant whose log is its only record; see ``AuditedOperation``."""

    outcome: str = ""


@dataclass(frozen=True, slots=True)
class AuditedControl:
    """An open control database with its audit."""

    control: Control
    audit: Audit

    def audit_change(
        self,
        action: str,
        *subjects: str,
        scope: AuditScope | Sequence[AuditScope] | None = None,
        request_id: str = "",
        **details: Any,
    ) -> AbstractContextManager[AuditedOperation]:
        """Return a block for a change, of the service without ``scope``; its entry is durable before it."""
        from freezeframe.service.access.audit import AuditScope

        trace = {"principal": command_principal(), "action": action, "request_id": request_id}
        return self.audit.operation(scope or AuditScope(), subjects or ("",), details=details, **trace)


@contextmanager
def opened_audit(
    root: str, environment: str | None = None, *, create: bool = False
) -> Iterator[AuditedControl]:
    """Yield the control database of the store at ``root`` and the audit in it; see ``control``."""
    with control(root, environment, create=create) as found:
        yield _audited(found)


@contextmanager
def audited_change(
    root: str,
    environment: str | None,
    tenants: Sequence[Tenant | str],
    action: str,
    *subjects: str,
    request_id: str = "",
    **details: Any,
) -> Iterator[AuditedOperation | Unaudited]:
    """Open a ``with`` block for a change of tenants, or without any of the service.

    Its entry is durable before it begins. None is written where the store has no control database: the logs
    of the tenants then tell what was changed, by whom and when.
    """
    with present_control(root, environment) as found:
        if found is None:
            yield Unaudited()
            return
        scope = [_scope(root, found.environment, tenant) for tenant in tenants]
        audited = _audited(found)
        with audited.audit_change(action, *subjects, scope=scope, request_id=request_id, **details) as begun:
            yield begun


def create_tenant(root: str, environment: str | None, tenant_id: str) -> Tenant:
    """Return the tenant, made if it was not there; the store is made with it.

    The entry before it is there is about the service; its own audit begins with what made it.
    """
    store = open_store(root, environment, create=True)
    if store.folder(tenant_id):
        return store.tenant(tenant_id)
    with audited_change(root, environment, [], "tenant.create", f"{store.environment}/{tenant_id}"):
        made = store.tenant(tenant_id, create=True)
    with audited_change(root, environment, [made], "tenant.create", tenant_id):
        return made


def audited_jobs(
    found: Control, tenants: Sequence[str], action: str, subject: str, **details: Any
) -> AbstractContextManager[AuditedOperation]:
    """Return a block for a change of the tenants' jobs or schedules; its entry is durable before it.

    Of a tenant that is not there yet the service's audit has the entry.
    """
    from freezeframe.identifiers import TenantId
    from freezeframe.service.access.access import tenant_scope
    from freezeframe.service.access.audit import AuditScope

    store = open_store(found.settings.root, found.environment, create=True)
    scope = [
        tenant_scope(store, TenantId(tenant)) if store.folder(tenant) else AuditScope() for tenant in tenants
    ]
    return _audited(found).audit_change(action, subject, scope=scope, **details)


class LocalCaller:
    """The local user before one tenant, with every right.

    A change through it is in the audit as one over HTTP is, under the ``request_id`` that its version has.
    """

    def __init__(self, location: TenantLocation, who: str | None = None) -> None:
        self.location = location
        self.who = who or system_user()
        self.request_id = uuid.uuid4().hex if location.root is not None else ""

    def author(self, message: str) -> Author:
        """Return who makes a change and why."""
        return Author(self.who, message)

    def tenant(self, scope: Scope = "admin", subject: Subject | None = None) -> Tenant:  # noqa: ARG002 - none fails
        """Return the tenant, which must be there; the local user has every right, and makes no conditions."""
        return self._tenant

    @cached_property
    def _tenant(self) -> Tenant:
        from freezeframe.store.tenant import with_request

        return with_request(self.location.tenant(), RequestContext(self.request_id))

    @contextmanager
    def filling(self, output: Output, *, dry_run: bool) -> Iterator[None]:
        """Open a ``with`` block in which the tenant is there; see ``TenantLocation.tenant_to_fill``."""
        from freezeframe.store.tenant import with_request

        with self.location.tenant_to_fill(output, dry_run=dry_run) as tenant:
            self._tenant = with_request(tenant, RequestContext(self.request_id))
            yield

    @contextmanager
    def audit_change(
        self, action: str, *subjects: str, **details: Any
    ) -> Iterator[AuditedOperation | Unaudited]:
        """Open a ``with`` block for a change of the tenant; see ``audited_change``.

        A tenant's own directory has no audit, only the tenant's log.
        """
        place, tenant = self.location, self.tenant()  # an unknown tenant has no audit
        if place.root is None:
            yield Unaudited()
            return
        change = audited_change(
            place.root, place.environment, [tenant], action, *subjects, request_id=self.request_id, **details
        )
        with change as begun:
            yield begun


def _scope(root: str, environment: str, tenant: Tenant | str) -> AuditScope:
    """Return a tenant as the audit names it; only for one that is not opened the store is."""
    from freezeframe.identifiers import TenantId
    from freezeframe.service.access.access import opened_scope, tenant_scope

    if isinstance(tenant, str):
        return tenant_scope(open_store(root, environment), TenantId(tenant))
    return opened_scope(environment, tenant)


def _audited(found: Control) -> AuditedControl:
    from freezeframe.service.access.audit import Audit, load_audit_secret

    secret = load_audit_secret(found.settings, found.settings.root, found.database)
    return AuditedControl(found, Audit(found.database, secret))
