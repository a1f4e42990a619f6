"""Spark's options, where a server is, and which Java starts it."""
