"""The service's operations on health.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import cast

from freezeframe.client.connection import Connection, path_of
from freezeframe.client.types import (
    Health,
)


class HealthOperations:
    """Operations on health; see ``Client``."""

    _connection: Connection

    def live(self) -> Health:
        """Whether the process lives."""
        path = path_of("/health/live", {})
        return cast("Health", self._connection.json("GET", path))

    def ready(self) -> Health:
        """Whether the store and the control database can be used."""
        path = path_of("/health/ready", {})
        return cast("Health", self._connection.json("GET", path))

    def metrics(self) -> bytes:
        """Numbers for Prometheus; no tenant's name is among them."""
        path = path_of("/metrics", {})
        return self._connection.content("GET", path)
