"""Earlier versions: what differs, restoring, tags."""
