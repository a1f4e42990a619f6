"""The tables of people who sign in with a password, and of their sessions."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, String, Table, Text

from freezeframe.control.schema.metadata import metadata

people = Table(
    "people",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("password_hash", String(300), nullable=False),
    Column("role", String(20), nullable=False),
    Column("environments", Text),
    Column("tenants", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("disabled_ms", BigInteger),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("person", String(40), ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
)
Index("ix_sessions_expires", sessions.c.expires_ms)
