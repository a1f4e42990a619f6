"""Request context: the service request that caused a change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The service request that causes a change.

    ``request_id`` goes into the entries of the log, where whoever has another trace of the request can find
    them by it. With ``job_id`` a change that names no job of its own is that job: made once, however often
    the request comes (see ``Tenant.job``).
    """

    request_id: str = ""
    job_id: str | None = None


NO_REQUEST = RequestContext()
