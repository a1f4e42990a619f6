"""What a transformation script calls: reading what a sync left, and the snapshots of a tenant.

Each name is loaded when it is first used: the service shares modules of this package and needs no pandas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "export_stream": ".inputs.transfer",
            "get_snapshot": ".snapshots",
            "import_stream": ".inputs.transfer",
            "open_tenant": ".tenant.tenants",
            "read_csv_folder": ".reading",
            "read_json_folder": ".reading",
            "read_parquet_folder": ".reading",
            "snapshot_views": ".views",
            "spark": ".tenant.tenants",
            "update_snapshot": ".snapshots",
        },
    )
