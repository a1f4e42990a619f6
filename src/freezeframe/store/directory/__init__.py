"""Names of a tenant's directory: its paths, its format, the folders of its jobs, uploads that wait."""
