"""The paths of the API, a noun to a file."""
