"""Versioned snapshot storage for multi-tenant ETL, as Delta tables.

The public names are here; each is loaded when it is first used, so that ``import freezeframe``
costs next to nothing and a program that only reads never loads Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from freezeframe.lazy_names import lazy_names

if TYPE_CHECKING:
    from freezeframe.errors import (
        BadInput,
        ConflictError,
        FileNotFound,
        FreezeframeError,
        InvalidOption,
        NotFound,
        OutcomeUnknown,
        SchemaDriftError,
        StreamNotFound,
        TenantNotFound,
        TooManyDeletions,
        TryAgain,
        VersionNotFound,
    )
    from freezeframe.log.delta_log import DeltaLog
    from freezeframe.script.reading import read_csv_folder, read_json_folder, read_parquet_folder
    from freezeframe.script.snapshots import get_snapshot, update_snapshot
    from freezeframe.script.spark_format import read, register, spark
    from freezeframe.script.spark_sql import sql
    from freezeframe.script.tenants import (
        open,  # noqa: A004 - freezeframe.open
        open_tenant,
    )
    from freezeframe.settings import Settings
    from freezeframe.store.files import Files
    from freezeframe.store.model.receipt import Receipt
    from freezeframe.store.snapshot_store import Store
    from freezeframe.store.stream import Stream
    from freezeframe.store.tenant import Job, Tenant
    from freezeframe.version import __version__

__all__ = [
    "BadInput",
    "ConflictError",
    "DeltaLog",
    "FileNotFound",
    "Files",
    "FreezeframeError",
    "InvalidOption",
    "Job",
    "NotFound",
    "OutcomeUnknown",
    "Receipt",
    "SchemaDriftError",
    "Settings",
    "Store",
    "Stream",
    "StreamNotFound",
    "Tenant",
    "TenantNotFound",
    "TooManyDeletions",
    "TryAgain",
    "VersionNotFound",
    "__version__",
    "get_snapshot",
    "open",
    "open_tenant",
    "read",
    "read_csv_folder",
    "read_json_folder",
    "read_parquet_folder",
    "register",
    "spark",
    "sql",
    "update_snapshot",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BadInput": "freezeframe.errors",
            "ConflictError": "freezeframe.errors",
            "FileNotFound": "freezeframe.errors",
            "FreezeframeError": "freezeframe.errors",
            "InvalidOption": "freezeframe.errors",
            "NotFound": "freezeframe.errors",
            "OutcomeUnknown": "freezeframe.errors",
            "SchemaDriftError": "freezeframe.errors",
            "StreamNotFound": "freezeframe.errors",
            "TenantNotFound": "freezeframe.errors",
            "TooManyDeletions": "freezeframe.errors",
            "TryAgain": "freezeframe.errors",
            "VersionNotFound": "freezeframe.errors",
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
            "read": "freezeframe.script.spark_format",
            "read_csv_folder": "freezeframe.script",
            "read_json_folder": "freezeframe.script",
            "read_parquet_folder": "freezeframe.script",
            "register": "freezeframe.script.spark_format",
            "spark": "freezeframe.script",
            "sql": "freezeframe.script.spark_sql",
            "update_snapshot": "freezeframe.script",
        },
    )
