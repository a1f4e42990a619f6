"""Earlier versions: differences, restoring, tags."""
