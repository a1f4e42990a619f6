"""The table of the audit: for each tenant a chain of entries, each holding the hash of the one before."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, String, Table, Text

from freezeframe.control.schema.metadata import metadata

# What concerns no tenant (keys, people) is the chain of the tenant ''.
audit = Table(
    "audit",
    metadata,
    Column("environment", String(200), primary_key=True),
    Column("tenant", String(200), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("moment_ms", BigInteger, nullable=False),
    Column("principal", String(300), nullable=False),
    Column("action", String(60), nullable=False),
    Column("subject", Text, nullable=False),
    Column("request_id", String(60), nullable=False),
    Column("details", Text, nullable=False),
    Column("previous_hash", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    # Empty in entries from before hashes had a key.
    Column("signing_key", String(16), nullable=False, server_default=""),
)
