"""A tenant's jobs and the staged blobs that they import."""
