"""The one way to a tenant, and the audit of what was done to it."""
