"""The table of notifications: each event once, sent until it arrives or is given up."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, String, Table, Text

from freezeframe.control.schema.metadata import metadata

# ``next_ms`` is when it is sent next; null: it arrived at ``delivered_ms``, or was given up.
notifications = Table(
    "notifications",
    metadata,
    Column("environment", String(200), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("body", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_ms", BigInteger),
    Column("delivered_ms", BigInteger),
)
