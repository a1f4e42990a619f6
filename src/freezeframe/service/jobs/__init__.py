"""A tenant's jobs and the uploads that they import."""
