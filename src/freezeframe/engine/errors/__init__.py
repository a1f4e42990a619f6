"""Spark's errors as ours."""
