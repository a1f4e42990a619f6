"""Rows and statistics of data files: scans, data skipping, deletion vectors."""
