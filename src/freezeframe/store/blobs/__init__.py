"""Content of files: immutable blobs, sealed files, and the index of paths."""
