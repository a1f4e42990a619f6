"""Differences between two versions: rows, whole or in pages, their counts, and all of a tenant."""
