"""The table of stored responses to idempotent requests."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, String, Table, Text

from freezeframe.control.schema.metadata import metadata

# Without a status the request is being answered, until ``begun_until_ms`` at most; after that it may be
# carried out again. The key is taken until ``expires_ms``.
idempotency = Table(
    "idempotency",
    metadata,
    Column("principal", String(100), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("status", Integer),
    Column("headers", Text, nullable=False, server_default="{}"),
    Column("body", LargeBinary),
    Column("expires_ms", BigInteger, nullable=False),
    Column("begun_until_ms", BigInteger),
    Column("body_sha256", String(64), nullable=False, server_default=""),
)
Index("ix_idempotency_expires", idempotency.c.expires_ms)
