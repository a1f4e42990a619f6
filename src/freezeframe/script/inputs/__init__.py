"""Rows of files on their way into a stream."""
