"""Audit entries of commands: changes of keys, people and tenants, and sealed files that were read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freezeframe.cli.places.control_place import Control, control, present_control

if TYPE_CHECKING:
    from freezeframe.cli.places.place import Place
    from freezeframe.service.access.audit import Audit, AuditedOperation
    from freezeframe.store.snapshot_store import Store


def command_principal() -> str:
    """The principal of a command, for the audit."""
    from freezeframe.store.model.system_user import system_user

    return f"command:{system_user()}"


@dataclass(frozen=True, slots=True)
class AuditedControl:
    """An open control database with its audit."""

    control: Control
    audit: Audit

    def audit_change(
        self, action: str, subject: str = "", **details: Any
    ) -> AbstractContextManager[AuditedOperation]:
        """A ``with`` block for a change of keys or people, entered after its audit entry is durable."""
        from freezeframe.service.access.audit_entry import AuditPlace

        who = {"principal": command_principal(), "action": action, "request_id": ""}
        return self.audit.operation(AuditPlace(), (subject,), details=details, **who)


@contextmanager
def opened_audit(
    root: str, environment: str | None = None, *, create: bool = False
) -> Iterator[AuditedControl]:
    """The control database of the store at ``root`` and the audit in it; see ``control``."""
    with control(root, environment, create=create) as found:
        yield _audited(found, root)


@contextmanager
def audited_change(
    root: str,
    store: Store,
    tenant: str,
    action: str,
    subject: str,
    *,
    outlives_tenant: bool = False,
    **details: Any,
) -> Iterator[None]:
    """A change of a tenant, in its audit; nothing is written where the store has no control database.

    With ``outlives_tenant`` the entry is about the service, because a deleted tenant has no audit to query.
    """
    with present_control(root, store.environment) as found:
        if found is None:
            yield
            return
        from freezeframe.identifiers import TenantId
        from freezeframe.service.access.access import tenant_place
        from freezeframe.service.access.audit_entry import AuditPlace

        place, named = tenant_place(store, TenantId(tenant)), subject
        if outlives_tenant:
            place, named = AuditPlace(), f"{store.environment}/{tenant}"
        trace = {"principal": command_principal(), "action": action, "request_id": ""}
        with _audited(found, root).audit.operation(place, (named,), details=details, **trace):
            yield


def audited_place(place: Place, action: str, subject: str, **details: Any) -> AbstractContextManager[None]:
    """``audited_change`` of a command's tenant; nothing for a tenant's own directory, which has no audit."""
    if place.root is None or place.tenant_id is None:
        return nullcontext()
    from freezeframe.cli.places.place import open_store

    store = open_store(place.root, place.environment)
    return audited_change(place.root, store, place.tenant_id, action, subject, **details)


def _audited(found: Control, root: str) -> AuditedControl:
    from freezeframe.service.access.audit import Audit
    from freezeframe.service.base.secret import load_secret

    return AuditedControl(found, Audit(found.database, load_secret(found.settings, root)))
