"""Tenants, their streams, and the one log in which all of a job's changes appear together."""

from freezeframe.store.model.receipt import Receipt
from freezeframe.store.stream import Stream
from freezeframe.store.tenant import Tenant
from freezeframe.store.tenant_log.log import TenantLog

__all__ = ["Receipt", "Stream", "Tenant", "TenantLog"]
