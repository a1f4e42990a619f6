"""A client of the REST service, generated from its OpenAPI document."""

from freezeframe.client.client import Client

__all__ = ["Client"]
