"""Delta's format: actions as values and columns, protocol features, schemas and their conversion."""
