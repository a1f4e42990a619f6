"""The control database: what is kept about jobs, keys and people beside the snapshots themselves."""
