"""What tests of freezeframe, and of scripts that use it, need: invented data in real shapes."""

from freezeframe.testing.sync_output import SyncSize, sync_output, write_sync_output

__all__ = ["SyncSize", "sync_output", "write_sync_output"]
