"""Files of a tenant: their bytes as immutable blobs, and the rules of their paths."""
