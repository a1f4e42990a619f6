"""Row difference between two versions of a stream, whole or in pages."""
