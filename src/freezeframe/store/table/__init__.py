"""A stream's Delta table: its data files, reading, and the bytes of its next commit."""
