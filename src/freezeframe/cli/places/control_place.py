"""The control database that a command means, and the audit of what it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freezeframe.cli.places.place import require_root
from freezeframe.control.control_file import control_file
from freezeframe.errors import InvalidOption, NotFound

if TYPE_CHECKING:
    from freezeframe.cli.places.place import Place
    from freezeframe.control.database import ControlDatabase
    from freezeframe.control.job import QueuedJob
    from freezeframe.control.queue import JobQueue
    from freezeframe.control.schedules import Schedules
    from freezeframe.service.access.audit import Audit, AuditedOperation
    from freezeframe.settings import Settings
    from freezeframe.store.snapshot_store import Store


# The control database of a command: the store's own, or the one in the settings.


@dataclass(frozen=True, slots=True)
class Control:
    """An open control database with its queue, schedules and settings."""

    settings: Settings
    database: ControlDatabase
    environment: str

    @property
    def queue(self) -> JobQueue:
        """The jobs."""
        from freezeframe.control.queue import JobQueue

        return JobQueue(self.database)

    @property
    def schedules(self) -> Schedules:
        """The schedules."""
        from freezeframe.control.schedules import Schedules

        return Schedules(self.database)

    def job(self, job_id: str, tenant: str | None) -> QueuedJob:
        """The job of that id; the tenant is needed only if two tenants have a job of the same id."""
        if tenant is None:
            from freezeframe.control.job import JobFilter

            wanted = JobFilter(environment=self.environment, job_id=job_id)
            found = self.queue.list(wanted, limit=2).jobs
            if len(found) > 1:
                raise InvalidOption(
                    f"Several tenants have a job {job_id}.", remedy="Name the tenant by --tenant."
                )
            if not found:
                raise NotFound(
                    f"There is no job {job_id}.", remedy="See freezeframe job list.", code="JOB_NOT_FOUND"
                )
            return found[0]
        return self.queue.get(self.environment, tenant, job_id)


@contextmanager
def control(root: str, environment: str | None = None, *, create: bool = False) -> Iterator[Control]:
    """The control database of the store at ``root``, closed at the end.

    With ``create`` neither need be there yet; without, a mistyped root is an error and no new store.
    """
    from freezeframe.settings import load_settings

    settings = load_settings(root=root, environment=environment)
    if not create and not settings.database_url:
        require_root(root)
    with _open_control(root, settings) as found:
        yield found


@contextmanager
def present_control(root: str, environment: str | None = None) -> Iterator[Control | None]:
    """The control database of the store at ``root`` as ``control`` gives it; None where it has none."""
    from freezeframe.settings import load_settings

    settings = load_settings(root=root, environment=environment)
    if not settings.database_url and ("://" in root or not control_file(root).is_file()):
        yield None
        return
    with _open_control(root, settings) as found:
        yield found


@contextmanager
def _open_control(root: str, settings: Settings) -> Iterator[Control]:
    from freezeframe.control.database import ControlDatabase, database_url

    database = ControlDatabase.open(database_url(settings, root))
    try:
        yield Control(settings, database, settings.environment)
    finally:
        database.close()


def forget_jobs(root: str, environment: str, tenant: str) -> None:
    """Take a tenant's schedules and jobs out of the control database of its store, where it has one."""
    with present_control(root, environment) as found:
        if found is not None:
            found.schedules.forget(environment, tenant)  # first, because due schedules create jobs
            found.queue.forget(environment, tenant)


# Audit entries of commands: changes of keys, people and tenants, and sealed files that were read.


def command_principal() -> str:
    """The principal of a command, for the audit."""
    from freezeframe.store.model.update_options import system_user

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
        from freezeframe.service.access.audit import AuditPlace

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
        from freezeframe.service.access.audit import AuditPlace

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
