"""Rows of files and frames on their way into a stream."""
