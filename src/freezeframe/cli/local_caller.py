"""The user of this machine, who calls an operation by a command, and the audit of what it changes."""

from __future__ import annotations

import importlib
import json
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from freezeframe.cli.location import Control, TenantLocation, control, open_store, present_control
from freezeframe.cli.options import point
from freezeframe.errors import FreezeframeError, InvalidOption
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.store.model.update_options import Author, RequestContext, system_user

if TYPE_CHECKING:
    from freezeframe.cli.output import Output
    from freezeframe.service.access.audit import Audit, AuditedOperation, AuditScope
    from freezeframe.service.access.keys import Principal, Scope
    from freezeframe.service.jobs import TenantJob
    from freezeframe.store import Tenant
    from freezeframe.store.transaction.conditions import Conditions, Subject


_log = logging.getLogger(__name__)
_Position = TypeVar("_Position")


def command_principal() -> str:
    """Return the principal of a command, for the audit."""
    return f"command:{system_user()}"


@dataclass(slots=True)
class Unaudited:
    """A change of a tenant whose log is its only record; see ``AuditedOperation``."""

    outcome: str = ""


class PlainCursors:
    """Cursors of pages on the command line: nobody else reads them, so they are plain."""

    def encode(self, _listing: str, position: Any) -> str | None:
        """Return where a page begins as text; None stays None."""
        return position if position is None or isinstance(position, str) else json.dumps(position)

    def read(self, _listing: str, cursor: str | None) -> str | None:
        """Return the text that ``encode`` was given."""
        return cursor

    def read_as(self, kind: type[_Position], _listing: str, cursor: str | None) -> _Position | None:
        """Return the position, of this type, that ``encode`` was given; None stays None."""
        from pydantic import TypeAdapter

        if cursor is None:
            return None
        try:
            return TypeAdapter(kind).validate_json(cursor)
        except ValueError:
            raise InvalidOption(
                f"{cursor!r} is not a cursor.", remedy="Pass the cursor of the previous page unchanged."
            ) from None


class LocalParts:
    """The parts of a service that commands use, by the names that ``Service`` has; each is made when used."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.settings, self.database, self.queue = control.settings, control.database, control.queue

    def __getattr__(self, name: str) -> Any:
        """Make a part and keep it."""
        settings, queue, schedules = self.settings, self.queue, self._control.schedules
        root = settings.root
        make: dict[str, Callable[[], Any]] = {
            "audit": lambda: _audit(self._control),
            "blobs": lambda: _of("staged_blobs").StagedBlobs.of_store(root, settings, queue.has_ended),
            "jobs": lambda: _of("jobs").TenantJobs(
                queue, schedules, settings, root, self.blobs, shows_paths=True
            ),
            "keys": lambda: _of("access.keys").Keys(self.database),
            "schedules": lambda: _of("schedules").TenantSchedules(schedules, queue, self.jobs, self.stores),
            "sessions": lambda: _of("access.sessions").Sessions(self.database, self.keys, 0),
            "stores": lambda: _of("access.access").Stores(root, settings),
        }
        if name not in make:
            raise AttributeError(name)
        setattr(self, name, make[name]())
        return self.__dict__[name]


def _of(module: str) -> Any:
    return importlib.import_module(f"freezeframe.service.{module}")


class StoreCaller(AbstractContextManager["StoreCaller"]):
    """The local user before a store: its tenants, jobs, schedules, keys and audit, with every right.

    The control database is opened when it is needed, and closed with the ``with`` block; see ``control`` for
    ``create``. A change is about the tenants in ``about``: each has its entry, or the service if there is
    none. ``tenant_id`` tells two jobs of one id apart.
    """

    repetition = ""
    cursors = PlainCursors()

    def __init__(
        self, root: str, environment: str | None = None, tenant_id: str | None = None, *, create: bool = False
    ) -> None:
        self.root, self._named, self._tenant_id, self._create = root, environment, tenant_id, create
        self.about: Sequence[str] = ()
        self.who = system_user()
        self.request_id = uuid.uuid4().hex
        self._opened = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @cached_property
    def control(self) -> Control:
        """The control database."""
        return self._opened.enter_context(control(self.root, self._named, create=self._create))

    @cached_property
    def service(self) -> LocalParts:
        """The parts of a service."""
        return LocalParts(self.control)

    @cached_property
    def environment(self) -> EnvironmentName:
        """The environment that is named, or that of the settings."""
        from freezeframe.settings import load_settings

        return EnvironmentName(load_settings(root=self.root, environment=self._named).environment)

    @cached_property
    def principal(self) -> Principal:
        """The local user as a principal."""
        from freezeframe.service.access.keys import SCOPES, Principal

        return Principal("person", self.who, self.who, frozenset(SCOPES))

    def require(self, scope: str) -> None:
        """Refuse nothing: the local user has every right."""

    def job(self, job_id: str) -> TenantJob:
        """Return the job of that id, of the tenant that is named or the only one that has it."""
        from freezeframe.service.jobs import TenantJob

        found = self.control.job(job_id, self._tenant_id)
        self.about = [found.tenant]
        return TenantJob(EnvironmentName(found.environment), TenantId(found.tenant), job_id)

    def tenant(self, _: str) -> Tenant:
        """Return the tenant that is named, which must be there."""
        if self._tenant_id is None:
            raise InvalidOption("The tenant is not named.", remedy="Name it by --tenant.")
        self.about = [self._tenant_id]
        return open_store(self.root, self.environment).tenant(self._tenant_id)

    def new_job_id(self, chosen: str | None = None) -> str:
        """Return the id of a job that is made: the chosen one, or a new one."""
        return chosen or f"job-{uuid.uuid4().hex[:16]}"

    def new_job(self, job_id: str) -> TenantJob:
        """Return a job of the tenant that is named, which is to be queued."""
        from freezeframe.service.jobs import TenantJob

        folder = self.tenant("").context.guard.folder
        return TenantJob(self.environment, TenantId(str(self._tenant_id)), job_id, folder)

    def author(self, message: str) -> Author:
        """Return who makes a change and why."""
        return Author(self.who, message)

    def tenants(
        self, environment: str, prefix: str, after: str | None, limit: int
    ) -> tuple[tuple[str, ...], str | None]:
        """Return the store's tenants by id, and the id after which the next page begins."""
        found = open_store(self.root, environment).tenants(prefix, after, limit + 1)
        return found[:limit], found[limit - 1] if len(found) > limit else None

    def audit_change(
        self, action: str, *subjects: str, **details: Any
    ) -> AbstractContextManager[AuditedOperation]:
        """Open a ``with`` block for a change; its entry is durable before it begins.

        Of a tenant that is not there yet the service's audit has the entry.
        """
        return _change(self.control, self.about, action, subjects, details, self.request_id)

    def audit_tenants_change(
        self, _: EnvironmentName, tenants: Sequence[TenantId], action: str, subject: str, **details: Any
    ) -> AbstractContextManager[AuditedOperation]:
        """Open a ``with`` block for a change of several tenants; see ``audit_change``."""
        self.about = tenants
        return self.audit_change(action, subject, **details)


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
        with _change(found, tenants, action, subjects, details, request_id) as begun:
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


def note_made_tenant(
    root: str, environment: str | None, tenant_id: str, job_id: str, *, is_withdrawn: bool = False
) -> None:
    """Write into the audit that a run made a tenant, and with ``is_withdrawn`` took it back.

    The run has ended, so what fails here is a warning.
    """
    try:
        named = f"{open_store(root, environment).environment}/{tenant_id}"
        own = ([], "tenant.delete", named) if is_withdrawn else ([tenant_id], "tenant.create", tenant_id)
        for tenants, action, subject in (([], "tenant.create", named), own):
            with audited_change(root, environment, tenants, action, subject, job_id=job_id):
                pass
    except FreezeframeError as error:
        _log.warning("The audit has no entry of the new tenant %s: %s", tenant_id, error)


class LocalCaller:
    """The local user before one tenant, with every right.

    A change through it is in the audit as one over HTTP is, under the ``request_id`` that its version has.
    """

    cursors = PlainCursors()

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

    def may(self, _scope: Scope) -> bool:
        """Return that the local user has every right."""
        return True

    def version(self, text: str) -> int:
        """Return the version that an argument names by its number, a tag or a moment."""
        return self._tenant.at(point(text)).version

    @cached_property
    def conditions(self) -> Conditions:
        """No conditions."""
        from freezeframe.store.transaction.conditions import Conditions

        return Conditions()

    def list_name(self, *_: object) -> str:
        """Return no name: cursors on the command line are bound to no list."""
        return ""

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


def _audit(found: Control) -> Audit:
    from freezeframe.service.access.audit import Audit, load_audit_secret

    return Audit(found.database, load_audit_secret(found.settings, found.settings.root, found.database))


def _change(
    found: Control,
    tenants: Sequence[Tenant | str],
    action: str,
    subjects: Sequence[str],
    details: Mapping[str, Any],
    request_id: str = "",
) -> AbstractContextManager[AuditedOperation]:
    """Return the block of a change by the local user, of the service where there is no such tenant."""
    from freezeframe.service.access.access import opened_scope, tenant_scope
    from freezeframe.service.access.audit import AuditScope

    def scope(tenant: Tenant | str) -> AuditScope:
        if not isinstance(tenant, str):
            return opened_scope(found.environment, tenant)  # without a look into the registry
        store = open_store(found.settings.root, found.environment, create=True)
        return tenant_scope(store, TenantId(tenant)) if store.folder(tenant) else AuditScope()

    trace = {"principal": command_principal(), "action": action, "request_id": request_id}
    scopes = [scope(tenant) for tenant in tenants] or [AuditScope()]
    return _audit(found).operation(scopes, subjects or ("",), details=details, **trace)
