"""The caller of an operation: the rights of its principal, conditions, and audit entries.

Operations and routes reach tenants through ``TenantCaller`` alone. On the command line ``cli.local_caller``
has callers of the same methods.
"""

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from freezeframe.errors import InvalidOption, NotAllowed
from freezeframe.identifiers import EnvironmentName, TenantId
from freezeframe.service.access.access import TenantAccess
from freezeframe.service.access.audit import AuditedOperation, AuditScope
from freezeframe.service.access.keys import Principal, Scope
from freezeframe.service.jobs import TenantJob
from freezeframe.service.service import Service
from freezeframe.service.signing import Cursors
from freezeframe.store import Tenant
from freezeframe.store.model.update_options import Author, RequestContext
from freezeframe.store.tenant import with_check, with_request
from freezeframe.store.transaction.conditions import TENANT, Conditions, Subject

JOB_PREFIX = "request-"


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """Principal, Idempotency-Key and target of a request; ``target`` is its method and its path."""

    principal: str
    key: str
    target: str

    @property
    def job_id(self) -> str:
        """The job id of the version that the request makes: no one else's key and no other route has it."""
        text = json.dumps([self.principal, self.key, self.target])
        return f"{JOB_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class Caller:
    """One request's principal before the service."""

    service: Service
    access: TenantAccess
    request_id: str
    identity: RequestIdentity | None
    identify_again: Callable[[], Principal] = field(repr=False)
    """Looks the principal up anew."""
    needs_reasons: bool
    """Whether a person's session makes the request, and the service requires reasons of them."""

    @property
    def principal(self) -> Principal:
        """The principal of the request."""
        return self.access.principal

    @property
    def who(self) -> str:
        """The principal as histories show it: a person who is called as a key is, is marked as a person."""
        name = self.principal.name
        return name if self.principal.kind == "key" else f"person {name}"

    @property
    def cursors(self) -> Cursors:
        """What makes and reads the cursors of pages."""
        return self.service.cursors

    @property
    def repetition(self) -> str:
        """What a request that is sent again is known by; empty where it could not be."""
        return "" if self.identity is None else self.identity.job_id

    def may(self, scope: Scope) -> bool:
        """Return whether the principal has the scope."""
        return self.principal.may(scope)

    def require(self, scope: Scope | Literal["everywhere"]) -> None:
        """Refuse a principal without the scope, or without all of the service."""
        if scope == "everywhere":
            self.principal.require_everywhere()
        else:
            self.principal.require(scope)

    def tenants(
        self, environment: EnvironmentName, prefix: str, after: str | None, limit: int
    ) -> tuple[tuple[str, ...], str | None]:
        """Return the tenants that the principal sees, by id, and after which the next page begins."""
        page = self.access.page(environment, prefix, after, limit)
        return page.tenants, page.next_after

    def audit_change(
        self, action: str, *subjects: str, **details: Any
    ) -> AbstractContextManager[AuditedOperation]:
        """Open a ``with`` block for a change; see ``audit_service_change``."""
        return self.audit_service_change(action, *subjects, details=details)

    def audit(
        self,
        action: str,
        subject: str = "",
        *,
        scope: AuditScope | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Write an audit entry; it is durable when this returns."""
        self.service.audit.write(
            scope or AuditScope(), subject=subject, details=details, **self._trace(action)
        )

    def audit_service_change(
        self,
        action: str,
        *subjects: str,
        scope: AuditScope | Sequence[AuditScope] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[AuditedOperation]:
        """Open a ``with`` block for a change; its audit entry is durable before the block begins."""
        self.require_unchanged()
        return self.service.audit.operation(
            scope or AuditScope(), subjects or ("",), details=details, **self._trace(action)
        )

    def audit_tenants_change(
        self,
        environment: EnvironmentName,
        tenants: Sequence[TenantId],
        action: str,
        subject: str,
        **details: Any,
    ) -> AbstractContextManager[AuditedOperation]:
        """Open a ``with`` block for a change of several tenants; each has its entry before it begins."""
        scopes = [self.access.audit_scope(environment, tenant) for tenant in tenants]
        return self.audit_service_change(action, subject, scope=scopes, details=details)

    def author(self, message: str) -> Author:
        """Return who makes a change and why; a reason that is required must not be missing."""
        if self.needs_reasons and not message.strip():
            raise InvalidOption(
                "The change has no reason.",
                cause="The service requires one of what a person changes (service_requires_reasons).",
                remedy="Say why in the message.",
            )
        return Author(self.who, message)

    def require_unchanged(self) -> None:
        """Refuse to go on where the caller's rights are no longer what they were at the request's start."""
        # A body may be under way for minutes after its first bytes were allowed.
        now, before = self.identify_again(), self.principal
        rights = [(item.scopes, item.environments, item.tenants) for item in (now, before)]
        if rights[0] != rights[1]:
            raise NotAllowed(
                "The caller's rights changed during the request.",
                cause="Nothing was changed.",
                remedy="Send the request again.",
            )

    def new_id(self) -> str:
        """Return an id for what the request creates; the same again under the same Idempotency-Key."""
        return uuid.uuid4().hex if self.identity is None else self.identity.job_id

    def new_job_id(self, chosen: str | None = None, prefix: str = "") -> str:
        """Return the id of the job that the request queues: the chosen one, or its Idempotency-Key."""
        given = chosen or (None if self.identity is None else self.identity.key)
        if given is None:
            return f"{prefix}{uuid.uuid4().hex}"
        if "/" in given or given in {".", ".."}:
            raise InvalidOption(
                f"{given!r} cannot be the id of a job over HTTP.",
                cause="The id is a part of the job's address, where a slash, `.` and `..` lead elsewhere.",
                remedy="Send a job_id or Idempotency-Key without slashes, for example sync-2026-11-28.",
            )
        return given

    def request_context(self) -> RequestContext:
        """Return the request context that is recorded with versions of tenants."""
        job_id = None if self.identity is None else self.identity.job_id
        return RequestContext(self.request_id, job_id)

    def _trace(self, action: str) -> dict[str, str]:
        who = f"{self.principal.kind}:{self.principal.id} {self.principal.name}"
        return {"principal": who, "action": action, "request_id": self.request_id}


@dataclass(frozen=True, slots=True)
class TenantCaller(Caller):
    """One request's principal before one tenant; nothing is opened before its scope is named."""

    environment: EnvironmentName
    tenant_id: TenantId
    conditions: Conditions

    def tenant(self, scope: Scope, subject: Subject | None = TENANT) -> Tenant:
        """Return the tenant, if the principal has ``scope``; see ``TenantAccess.tenant`` and ``changing``.

        Of several scopes, apart by spaces, all are needed; the last one says whether it is changed.
        """
        for needed in cast("list[Scope]", scope.split()):
            found = self.access.tenant(self.environment, self.tenant_id, needed)
        return found if scope.endswith(":read") else self.changing(found, subject)

    def changing(self, tenant: Tenant, subject: Subject | None = TENANT, job_id: str = "") -> Tenant:
        """Return the tenant for a change: its commits keep the request's conditions and the service's limits.

        The conditions are about ``subject``. With None each part of the change has conditions of its own,
        which its commit checks, and the request's are about the tenant. They are checked at once as well, so
        that a refusal comes before the audit entry; a request whose job is committed already is answered
        from that job.
        """
        context, log = self.request_context(), tenant.context.log
        conditions = self.conditions if subject else replace(self.conditions, strict=False)
        about = subject or TENANT
        if conditions.are_given or conditions.strict:
            ids = {context.job_id, job_id or None, None if self.identity is None else self.identity.key}
            if not any(log.known_job(log.current_state(), id_) for id_ in ids):
                conditions.require_now(about, tenant.context)
        checked = with_check(tenant, conditions.at_commit(about))
        return with_request(with_check(checked, self.service.stored_bytes.check_commit), context)

    def note(self, action: str, subject: str = "", **details: Any) -> None:
        """Write an entry to the tenant's audit."""
        self.audit(action, subject, scope=self.audit_scope(), details=details)

    def note_unsealing(self, path: str, **details: Any) -> None:
        """Require the right to open a sealed file, and write its opening to the audit."""
        self.principal.require("secrets:read")
        self.note("file.unseal", path, **details)

    def require(self, scope: Scope | Literal["everywhere"]) -> None:
        """Refuse a principal without the scope, or a tenant that is not there; see ``tenant``."""
        assert scope != "everywhere"  # noqa: S101 - of the service alone
        self.tenant(scope)

    def audit_change(
        self, action: str, *subjects: str, **details: Any
    ) -> AbstractContextManager[AuditedOperation]:
        """Open a ``with`` block for a change of the tenant; its audit entry is durable before it begins."""
        return self.audit_service_change(action, *subjects, scope=self.audit_scope(), details=details)

    def folder(self) -> str:
        """Return the tenant's folder in the store; no other tenant ever has it, also none of the same id."""
        return self.access.folder(self.environment, self.tenant_id)

    def job(self, job_id: str) -> TenantJob:
        """Return the tenant's job of that id."""
        return TenantJob(self.environment, self.tenant_id, job_id, self.folder())

    new_job = job

    def audit_scope(self) -> AuditScope:
        """Return the tenant as the audit names it."""
        return self.access.audit_scope(self.environment, self.tenant_id)

    def list_name(self, what: str, *parameters: object) -> str:
        """Return the name of a list of the tenant, which cursors are bound to."""
        return "\n".join(map(repr, (self.environment, self.tenant_id, what, *parameters)))
