"""Tenants, their streams and files, and the tenant log that commits a job's changes atomically."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.store.files import Files
    from freezeframe.store.model.receipt import Receipt
    from freezeframe.store.snapshot_store import Store
    from freezeframe.store.stream import Stream
    from freezeframe.store.tenant import Job, Tenant
    from freezeframe.store.tenant_log.log import TenantLog

__all__ = [
    "Files",
    "Job",
    "Receipt",
    "Store",
    "Stream",
    "Tenant",
    "TenantLog",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Files": ".files",
            "Job": ".tenant",
            "Receipt": ".model.receipt",
            "Store": ".snapshot_store",
            "Stream": ".stream",
            "Tenant": ".tenant",
            "TenantLog": ".tenant_log.log",
        },
    )
