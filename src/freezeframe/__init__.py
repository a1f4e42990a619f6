"""Versioned snapshot storage for multi-tenant ETL, as Delta tables.

The public names are here; each is loaded when it is first used, so that ``import freezeframe``
costs next to nothing and a program that only reads never loads Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freezeframe.script.snapshots import get_snapshot, update_snapshot
    from freezeframe.script.tenant.stores import open  # noqa: A004 - freezeframe.open
    from freezeframe.script.tenant.tenants import open_tenant, spark
    from freezeframe.store.model.receipt import Receipt
    from freezeframe.store.snapshot_store import Store
    from freezeframe.store.stream import Stream
    from freezeframe.store.tenant import Tenant

__all__ = [
    "Receipt",
    "Store",
    "Stream",
    "Tenant",
    "get_snapshot",
    "open",
    "open_tenant",
    "spark",
    "update_snapshot",
]

_HOME = {
    "Receipt": "freezeframe.store.model.receipt",
    "Stream": "freezeframe.store.stream",
    "Tenant": "freezeframe.store.tenant",
    "Store": "freezeframe.store.snapshot_store",
    "open": "freezeframe.script.tenant.stores",
    "get_snapshot": "freezeframe.script.snapshots",
    "open_tenant": "freezeframe.script.tenant.tenants",
    "spark": "freezeframe.script.tenant.tenants",
    "update_snapshot": "freezeframe.script.snapshots",
}


def __getattr__(name: str) -> Any:
    """A public name, from the module where it lives; ``__version__`` is that of the installed package."""
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("freezeframe")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
