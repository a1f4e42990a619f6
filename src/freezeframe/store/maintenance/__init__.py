"""Care of a tenant: restoring, row history, retention, garbage collection, erasure, verification, repair."""
