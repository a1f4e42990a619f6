"""Notifications of a control database: queued once, due again after each attempt that failed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, update

from freezeframe.control.database.backoff import Backoff
from freezeframe.control.database.database import ControlDatabase, insert_if_absent
from freezeframe.control.tables import notifications as table

ATTEMPTS_MAX = 12
_AT_ONCE_MAX = 100
_KEPT_MS = 60 * 86_400_000


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification: an id for deduplication by the receiver, and its JSON text."""

    id: str
    body: str
    attempts: int


class Notifications:
    """The notifications of one environment; any number of processes may send them."""

    def __init__(self, database: ControlDatabase, environment: str, backoff: Backoff | None = None) -> None:
        self._database = database
        self._environment = environment
        self._backoff = backoff or Backoff(30.0, 3600.0)

    def queue(self, events: Iterable[Mapping[str, Any]]) -> int:
        """Keep the events that were not kept before, those that were sent included; how many were new.

        Raises:
            TryAgain: the database cannot be reached.
        """
        new = 0
        with self._database.begin() as connection:
            now_ms = self._database.now_ms(connection)
            connection.execute(delete(table).where(table.c.created_ms < now_ms - _KEPT_MS))
            for event in events:
                body = json.dumps(event, ensure_ascii=False, sort_keys=True)
                values = {
                    "environment": self._environment,
                    "id": hashlib.sha256(body.encode()).hexdigest()[:32],
                    "body": body,
                    "created_ms": now_ms,
                    "attempts": 0,
                    "next_ms": now_ms,
                }
                new += insert_if_absent(connection, table, values)
        return new

    def due(self) -> tuple[Notification, ...]:
        """Up to 100 that are to be sent now, the oldest first; for other processes they are not due then.

        Raises:
            TryAgain: the database cannot be reached.
        """
        found = []
        with self._database.begin() as connection:
            now_ms = self._database.now_ms(connection)
            rows = connection.execute(
                select(table)
                .where(table.c.environment == self._environment, table.c.next_ms <= now_ms)
                .order_by(table.c.created_ms, table.c.id)
                .limit(_AT_ONCE_MAX)
                .with_for_update(skip_locked=True)
            )
            for row in rows.all():
                attempts = row.attempts + 1
                is_last = attempts >= ATTEMPTS_MAX
                wait_ms = round(self._backoff.seconds_after(attempts) * 1000)
                connection.execute(
                    update(table)
                    .where(table.c.environment == self._environment, table.c.id == row.id)
                    .values(attempts=attempts, next_ms=None if is_last else now_ms + wait_ms)
                )
                found.append(Notification(row.id, row.body, attempts))
        return tuple(found)

    def note_delivered(self, notification: Notification) -> None:
        """It arrived, and is not due again."""
        with self._database.begin() as connection:
            connection.execute(
                update(table)
                .where(table.c.environment == self._environment, table.c.id == notification.id)
                .values(next_ms=None, delivered_ms=self._database.now_ms(connection))
            )

    def count_waiting(self) -> int:
        """How many did not arrive yet and will be sent again."""
        query = select(func.count()).where(
            table.c.environment == self._environment, table.c.next_ms.is_not(None)
        )
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())
