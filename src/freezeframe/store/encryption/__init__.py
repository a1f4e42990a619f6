"""Encryption at rest: the master key, a tenant's data key, sealed bytes."""
