"""Content of a tenant's files as immutable blobs, and validation of their paths."""
