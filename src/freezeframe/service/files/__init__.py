"""A tenant's files as the service changes them."""
