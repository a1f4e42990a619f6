"""Principals, keys, sessions, access to tenants, and the audit."""
