"""What a transformation script calls: reading what a sync left, and the snapshots of a tenant.

Each name is loaded when it is first used: the service shares modules of this package and needs no pandas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.script.inputs.transfer import export_stream, import_stream
    from freezeframe.script.reading import read_csv_folder, read_json_folder, read_parquet_folder
    from freezeframe.script.snapshots import get_snapshot, snapshot_views, update_snapshot
    from freezeframe.script.spark_format import spark
    from freezeframe.script.tenants import open_tenant

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
            "open_tenant": ".tenants",
            "read_csv_folder": ".reading",
            "read_json_folder": ".reading",
            "read_parquet_folder": ".reading",
            "snapshot_views": ".snapshots",
            "spark": ".spark_format",
            "update_snapshot": ".snapshots",
        },
    )
