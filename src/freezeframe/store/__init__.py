"""Tenants, their streams and files, and the tenant log that commits a job's changes atomically."""

from freezeframe.store.model.receipt import Receipt
from freezeframe.store.stream import Stream
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenant_log.log import TenantLog

__all__ = ["Receipt", "Stream", "Tenant", "TenantLog"]
