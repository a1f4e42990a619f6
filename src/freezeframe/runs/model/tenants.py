"""Opens the tenant of a request with the run's settings."""

from __future__ import annotations

from pathlib import Path

from freezeframe.errors import TenantNotFound
from freezeframe.runs.model.request import RunRequest
from freezeframe.script.tenant.stores import storage_at
from freezeframe.script.tenant.tenants import shared_engine
from freezeframe.settings import Settings
from freezeframe.store.snapshot_store import Store
from freezeframe.store.tenant import Tenant


def request_store(request: RunRequest, settings: Settings) -> Store:
    """The store of the request; errors as of ``freezeframe.open``."""
    return Store(storage_at(request.root, settings), shared_engine(), settings, request.environment)


def request_folder(request: RunRequest, settings: Settings) -> str | None:
    """The folder of the request's tenant, which no other tenant has; None where there is no such tenant."""
    return request_store(request, settings).folder(request.tenant)


def request_tenant(request: RunRequest, settings: Settings) -> Tenant | None:
    """The tenant of the request, or None where the store has none of that id (yet)."""
    if "://" not in request.root and not Path(request.root).exists():
        return None
    try:
        return request_store(request, settings).tenant(request.tenant)
    except TenantNotFound:
        return None
