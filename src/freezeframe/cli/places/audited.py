"""Audit entries of commands: changes of keys, people and tenants, and sealed files that were read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
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
    """The control database of the store at ``root`` and the audit in it; see ``control``.

    When the block ends, the sink has been sent each entry.
    """
    with control(root, environment, create=create) as found, _audited(found, root) as audited:
        yield audited


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

    With ``outlives_tenant`` the entry is in the service's own chain as well, with the head of the tenant's,
    because a deleted tenant has no audit to query.
    """
    with present_control(root, store.environment) as found:
        if found is None:
            yield
            return
        from freezeframe.identifiers import TenantId
        from freezeframe.service.access.access import tenant_chain
        from freezeframe.service.access.audit_entry import AuditPlace

        chain = tenant_chain(store, TenantId(tenant))
        trace = {"principal": command_principal(), "action": action, "request_id": ""}
        with (
            _audited(found, root) as audited,
            audited.audit.operation(chain, (subject,), details=details, **trace) as begun,
        ):
            if not outlives_tenant:
                yield
                return
            newest = begun.entries[-1]
            head = {"environment": chain.environment, "chain": chain.tenant}
            told = {**details, "audit": {**head, "number": newest.number, "hash": newest.hash}}
            named = (f"{store.environment}/{tenant}",)
            with audited.audit.operation(AuditPlace(), named, details=told, **trace):
                yield


def audited_place(place: Place, action: str, subject: str, **details: Any) -> AbstractContextManager[None]:
    """``audited_change`` of a command's tenant; nothing for a tenant's own directory, which has no audit."""
    if place.root is None or place.tenant_id is None:
        return nullcontext()
    from freezeframe.cli.places.place import open_store

    store = open_store(place.root, place.environment)
    return audited_change(place.root, store, place.tenant_id, action, subject, **details)


@contextmanager
def _audited(found: Control, root: str) -> Iterator[AuditedControl]:
    from freezeframe.service.access.audit import Audit
    from freezeframe.service.access.audit_sink import audit_sink
    from freezeframe.service.base.secret import load_secret

    secret = load_secret(found.settings, root)
    sink = audit_sink(found.settings)
    with closing(sink) if sink else nullcontext():
        audit = Audit(found.database, secret, sink)
        audit.seal(command_principal())
        yield AuditedControl(found, audit)
