"""Rows of streams for callers: previews, differences, searches, statistics."""
