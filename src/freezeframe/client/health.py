"""The service's operations on health.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import cast

from freezeframe.client.connection import Connection, path_of
from freezeframe.client.types import (
    Condition,
    Health,
)


class HealthOperations:
    """Operations on health; see ``Client``."""

    _connection: Connection

    def show_status(self) -> Condition:
        """Whether the service is ready (503 if not), or degraded: it answers, and somebody should look."""
        place = path_of("/health")
        return cast("Condition", self._connection.json("GET", place))

    def live(self) -> Health:
        """Whether the process lives."""
        place = path_of("/health/live")
        return cast("Health", self._connection.json("GET", place))

    def ready(self) -> Health:
        """Whether the store and the control database can be used."""
        place = path_of("/health/ready")
        return cast("Health", self._connection.json("GET", place))

    def metrics(self) -> bytes:
        """Numbers for Prometheus; no tenant's name is among them."""
        place = path_of("/metrics")
        return self._connection.content("GET", place)
