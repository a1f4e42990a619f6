"""Conversion of Spark's errors."""
