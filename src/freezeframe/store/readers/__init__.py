"""What can be read of a tenant: its streams, files and versions."""
