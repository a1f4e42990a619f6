"""Conditions of a request, cursors, timestamps, buffers of a response: used by all of the service."""
