"""Spark's options, and where a server is."""
