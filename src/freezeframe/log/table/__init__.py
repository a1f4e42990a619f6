"""One table: its log, its snapshots, its history, verification and cleanup."""
