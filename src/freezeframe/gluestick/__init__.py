"""The drop-in for gluestick: ``import freezeframe.gluestick as gs`` in place of ``import gluestick as gs``.

What is about snapshots is freezeframe's, with gluestick's names and parameters, over versioned
streams; where a result differs, it does so on purpose and ``docs/reference/gluestick.md`` says why.
``to_export`` and ``to_singer`` are gluestick's, and take Spark frames as well. Every other name
(``Reader`` ...) is that of the installed gluestick, which is loaded when such a name is first used.
"""

from freezeframe.gluestick.redundancy import drop_redundant, get_row_hash, merge_id_from_snapshot
from freezeframe.gluestick.snapshot_streams import read_snapshots, snapshot_records
from freezeframe.gluestick.spark_export import installed_name as __getattr__  # noqa: F401 - all other names
from freezeframe.gluestick.spark_export import to_export, to_singer
from freezeframe.script.reading import read_csv_folder, read_parquet_folder

__all__ = [
    "drop_redundant",
    "get_row_hash",
    "merge_id_from_snapshot",
    "read_csv_folder",
    "read_parquet_folder",
    "read_snapshots",
    "snapshot_records",
    "to_export",
    "to_singer",
]
