"""Request context: the service request that caused a change."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class AuditHead:
    """The newest entry of the tenant's audit for a request; None before the first one."""

    number: int | None = None
    hash: str = ""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The service request that causes a change.

    ``request_id`` goes into the entries of the log, where whoever has another trace of the request can find
    them by it. With ``job_id`` a change that names no job of its own is that job: made once, however often
    the request comes (see ``Tenant.job``). ``audit`` goes into the entries too: what the audit had by then
    can not be taken out of it unseen.
    """

    request_id: str = ""
    job_id: str | None = None
    audit: AuditHead = field(default_factory=AuditHead, compare=False)


NO_REQUEST = RequestContext()
