"""Versioned snapshot storage for multi-tenant ETL, as Delta tables.

The public names are here; each is loaded when it is first used, so that ``import freezeframe``
costs next to nothing and a program that only reads never loads Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.log.delta_log import DeltaLog
    from freezeframe.script.reading import read_csv_folder, read_json_folder, read_parquet_folder
    from freezeframe.script.snapshots import get_snapshot, update_snapshot
    from freezeframe.script.tenants import (
        open,  # noqa: A004 - freezeframe.open
        open_tenant,
        spark,
    )
    from freezeframe.settings import Settings
    from freezeframe.store.files import Files
    from freezeframe.store.job import Job
    from freezeframe.store.model.receipt import Receipt
    from freezeframe.store.snapshot_store import Store
    from freezeframe.store.stream import Stream
    from freezeframe.store.tenant import Tenant
    from freezeframe.version import __version__

__all__ = [
    "DeltaLog",
    "Files",
    "Job",
    "Receipt",
    "Settings",
    "Store",
    "Stream",
    "Tenant",
    "__version__",
    "get_snapshot",
    "open",
    "open_tenant",
    "read_csv_folder",
    "read_json_folder",
    "read_parquet_folder",
    "spark",
    "update_snapshot",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "DeltaLog": "freezeframe.log",
            "Files": "freezeframe.store",
            "Job": "freezeframe.store",
            "Receipt": "freezeframe.store",
            "Settings": "freezeframe.settings",
            "Store": "freezeframe.store",
            "Stream": "freezeframe.store",
            "Tenant": "freezeframe.store",
            "__version__": "freezeframe.version",
            "get_snapshot": "freezeframe.script",
            "open": "freezeframe.script.tenants",
            "open_tenant": "freezeframe.script",
            "read_csv_folder": "freezeframe.script",
            "read_json_folder": "freezeframe.script",
            "read_parquet_folder": "freezeframe.script",
            "spark": "freezeframe.script",
            "update_snapshot": "freezeframe.script",
        },
    )
