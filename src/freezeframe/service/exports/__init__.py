"""Streams and files as downloads, and the names that hotglue knows."""
