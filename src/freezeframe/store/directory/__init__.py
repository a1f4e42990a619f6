"""A tenant's directory: its paths, its format, the folders of its jobs, pending uploads."""
