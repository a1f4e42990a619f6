"""Takeover of a job from a silent process, which is first prevented from committing."""

from __future__ import annotations

from collections.abc import Iterable

from freezeframe.runs.model.request import RunRequest, request_store, request_tenant
from freezeframe.settings import Settings, load_settings
from freezeframe.store.transaction.job_status import revoke_job


def revoke(
    request: RunRequest, reason: str, *, tokens: Iterable[str] = (), settings: Settings | None = None
) -> None:
    """Land a ``revoke`` in the tenant's log for every run of the request's job that is under way.

    Such a run's commit is refused with ``JobRevoked`` from then on: of runs that have announced
    themselves, and of those that ``tokens`` or the request's own token name, wherever they are. A run that
    had committed before stays committed: running the request again is then answered with its receipt.
    Nothing is written where there is nothing to revoke. A tenant that is not there yet is made where a
    token is named, as the run would make it: its log is the only place that keeps the run from committing.
    """
    settings = load_settings() if settings is None else settings
    named = {*tokens, request.token} - {""}
    if named:
        request_store(request, settings).tenant(request.tenant, create=True)
    tenant = request_tenant(request, settings)
    if tenant is not None:
        revoke_job(tenant.place, request.job_id, reason, tokens=named)
