"""Snapshot files of before: taken over, migrated, kept equal."""
