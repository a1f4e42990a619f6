"""Whole tenants: the registry of a store, deletion, clones."""
