"""Maintenance of a tenant: retention, garbage collection, erasure, verification, repair."""
