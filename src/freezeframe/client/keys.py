"""The service's operations on keys.

Written by tools/write_client.py; change the service's routes and models.
"""

from __future__ import annotations

from typing import cast

from freezeframe.client.connection import Connection, path_of
from freezeframe.client.types import (
    Key,
    KeyPage,
    KeyWithSecret,
    NewKey,
    Rotation,
)


class KeysOperations:
    """Operations on keys; see ``Client``."""

    _connection: Connection

    def list_keys(self, *, limit: int | None = None, cursor: str | None = None) -> KeyPage:
        """List the service's keys by id, without their secrets."""
        place = path_of("/api/v1/keys")
        query = {"limit": limit, "cursor": cursor}
        return cast("KeyPage", self._connection.json("GET", place, query=query))

    def create_key(self, body: NewKey, *, idempotency_key: str | None = None) -> KeyWithSecret:
        """Make a key; its secret is told this once."""
        place = path_of("/api/v1/keys")
        headers = {"idempotency-key": idempotency_key}
        return cast("KeyWithSecret", self._connection.json("POST", place, headers=headers, body=body))

    def revoke_key(self, key_id: str) -> Key:
        """Revoke a key: it is good for nothing from the next second on."""
        place = path_of("/api/v1/keys/{key_id}", key_id)
        return cast("Key", self._connection.json("DELETE", place))

    def rotate_key(self, key_id: str, body: Rotation, *, idempotency_key: str | None = None) -> KeyWithSecret:
        """Give a key a new secret; the one from before is good for some hours more."""
        place = path_of("/api/v1/keys/{key_id}/rotate", key_id)
        headers = {"idempotency-key": idempotency_key}
        return cast("KeyWithSecret", self._connection.json("POST", place, headers=headers, body=body))
