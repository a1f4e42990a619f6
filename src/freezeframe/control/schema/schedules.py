"""The table of schedules and their next due times."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, String, Table, Text, UniqueConstraint

from freezeframe.control.schema.metadata import metadata, sequence_type

schedules = Table(
    "schedules",
    metadata,
    Column("sequence", sequence_type, primary_key=True, autoincrement=True),
    Column("environment", String(200), nullable=False),
    Column("tenant", String(200), nullable=False),
    Column("name", String(200), nullable=False),
    Column("cron", String(200), nullable=False),
    Column("zone", String(100), nullable=False),
    Column("missed", String(20), nullable=False),
    Column("request", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("attempts_max", Integer, nullable=False),
    Column("running_max", Integer, nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("next_due_ms", BigInteger),
    Column("last_due_ms", BigInteger),
    Column("incarnation", String(40), nullable=False, server_default=""),
    UniqueConstraint("environment", "tenant", "name"),
    sqlite_autoincrement=True,
)
Index("ix_schedules_due", schedules.c.is_enabled, schedules.c.next_due_ms)
