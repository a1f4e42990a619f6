"""The REST service without HTTP: authentication, authorization, and operations on tenants."""
