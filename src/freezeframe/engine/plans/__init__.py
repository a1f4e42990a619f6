"""Spark's work on rows: reading, searching, merging and writing the files of a stream."""
