"""Read interfaces of a tenant: its streams, files and versions."""
