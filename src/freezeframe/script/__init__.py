"""What a transformation script calls: reading what a sync left, and the snapshots of a tenant."""

from freezeframe.script.reading import read_csv_folder, read_parquet_folder
from freezeframe.script.snapshots import get_snapshot, update_snapshot
from freezeframe.script.tenants import open_tenant

__all__ = ["get_snapshot", "open_tenant", "read_csv_folder", "read_parquet_folder", "update_snapshot"]
