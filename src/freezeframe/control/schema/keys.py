"""The tables of API keys and their sessions; of a secret only a keyed hash is stored."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, String, Table, Text

from freezeframe.control.schema.metadata import metadata

# ``environments`` and ``tenants`` are JSON arrays, or null for all. After a rotation the secret from
# before is good until ``previous_until_ms``.
keys = Table(
    "keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("secret_hash", String(64), nullable=False),
    Column("previous_hash", String(64), nullable=False, server_default=""),
    Column("previous_until_ms", BigInteger),
    Column("scopes", Text, nullable=False),
    Column("environments", Text),
    Column("tenants", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("created_by", String(200), nullable=False, server_default=""),
    Column("expires_ms", BigInteger),
    Column("revoked_ms", BigInteger),
    Column("last_used_ms", BigInteger),
)

# ``secret_hash`` is of the secret that the session was begun with: it ends when that is no longer good.
key_sessions = Table(
    "key_sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("key", String(40), ForeignKey("keys.id", ondelete="CASCADE"), nullable=False),
    Column("secret_hash", String(64), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
)
Index("ix_key_sessions_expires", key_sessions.c.expires_ms)
