"""What a transformation script calls: reading what a sync left, and the snapshots of a tenant.

Each name is loaded when it is first used: the service shares modules of this package and needs no pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freezeframe.script.inputs.transfer import export_stream, import_stream
    from freezeframe.script.reading import read_csv_folder, read_json_folder, read_parquet_folder
    from freezeframe.script.snapshots import get_snapshot, update_snapshot
    from freezeframe.script.tenant.tenants import open_tenant, spark
    from freezeframe.script.views import snapshot_views

__all__ = [
    "export_stream",
    "get_snapshot",
    "import_stream",
    "open_tenant",
    "read_csv_folder",
    "read_json_folder",
    "read_parquet_folder",
    "snapshot_views",
    "spark",
    "update_snapshot",
]

_HOME = {
    "export_stream": "inputs.transfer",
    "get_snapshot": "snapshots",
    "import_stream": "inputs.transfer",
    "open_tenant": "tenant.tenants",
    "read_csv_folder": "reading",
    "read_json_folder": "reading",
    "read_parquet_folder": "reading",
    "snapshot_views": "views",
    "spark": "tenant.tenants",
    "update_snapshot": "snapshots",
}


def __getattr__(name: str) -> Any:
    """A name of the package, from the module where it lives."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """The names of the package."""
    return sorted(__all__)
