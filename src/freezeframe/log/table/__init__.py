"""One table: its log, snapshots, history, verification and cleanup."""
