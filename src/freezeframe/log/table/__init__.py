"""One table: its log, snapshots, history, transactions, upkeep and verification."""
