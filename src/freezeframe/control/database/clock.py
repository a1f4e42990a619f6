"""The database's clock, which all workers share and which alone decides about leases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, text

from freezeframe.clock import now_ms

Clock = Callable[[Connection], int]

# The time of the statement: the transaction's own would stand still while it waits for a lock.
_POSTGRESQL_NOW_MS = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")


def database_now_ms(connection: Connection) -> int:
    """Milliseconds since 1970, by the clock of the machine on which the database runs."""
    if connection.dialect.name == "sqlite":  # the database runs in this process, on this machine's clock
        return now_ms()
    return int(connection.execute(_POSTGRESQL_NOW_MS).scalar_one())


def milliseconds(moment: datetime) -> int:
    """A moment in milliseconds since 1970; ``moment`` has a zone."""
    return round(moment.timestamp() * 1000)
