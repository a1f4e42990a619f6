"""Answers that are given again: a request with an ``Idempotency-Key`` is carried out once.

Keys belong to who asks. An answer is kept for a day. While a request is being answered its key is renewed
again and again, so one whose process died may be sent again within half a minute: changes are then made
on what the first attempt has left, and a job is known by its id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, select, update

from freezeframe.control.database import ControlDatabase, insert_if_absent
from freezeframe.control.schema.idempotency import idempotency
from freezeframe.errors import IdempotencyConflict, RequestInFlight

_KEPT_MS = 86_400_000
_IN_FLIGHT_MS = 30_000
RENEWED_EVERY_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer that a request was given the first time."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """Whose request it is, the key that it came with, and the hash of what it says."""

    principal: str
    key: str
    fingerprint: str


class KeptAnswers:
    """The answers that are kept in one service's control database."""

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database

    def begin(self, request: RequestIdentity) -> KeptAnswer | None:
        """None: carry the request out, then ``finish`` or ``forget`` it. Else the answer to give again.

        Raises:
            IdempotencyConflict: the key came with another request before.
            RequestInFlight: the same request is being answered.
        """
        with self._database.begin() as connection:
            now = self._database.now_ms(connection)
            connection.execute(delete(idempotency).where(idempotency.c.expires_ms <= now))
            values = {
                "principal": request.principal,
                "key": request.key,
                "fingerprint": request.fingerprint,
                "expires_ms": now + _IN_FLIGHT_MS,
            }
            if insert_if_absent(connection, idempotency, values):
                return None
            query = select(idempotency).where(*_row(request))
            row = connection.execute(query).mappings().one()
        if row["fingerprint"] != request.fingerprint:
            raise IdempotencyConflict(
                "This Idempotency-Key came with another request before.",
                cause="Its path, its parameters or its body were different.",
                remedy="Use a new key for each request; send the same request again with the same key.",
            )
        if row["status"] is None:
            raise RequestInFlight(
                "The same request is being answered at this moment.",
                remedy="Wait and send it again with the same Idempotency-Key.",
            )
        return KeptAnswer(row["status"], json.loads(row["headers"]), row["body"] or b"")

    def renew(self, request: RequestIdentity) -> None:
        """The request is still being answered."""
        with self._database.begin() as connection:
            values = {"expires_ms": self._database.now_ms(connection) + _IN_FLIGHT_MS}
            open_row = (*_row(request), idempotency.c.status.is_(None))
            connection.execute(update(idempotency).where(*open_row).values(values))

    def finish(self, request: RequestIdentity, answer: KeptAnswer) -> None:
        """Keep the answer."""
        with self._database.begin() as connection:
            values = {
                "status": answer.status,
                "headers": json.dumps(dict(answer.headers)),
                "body": answer.body,
                "expires_ms": self._database.now_ms(connection) + _KEPT_MS,
            }
            connection.execute(update(idempotency).where(*_row(request)).values(values))

    def forget(self, request: RequestIdentity) -> None:
        """Nothing was done, so the request may come again."""
        with self._database.begin() as connection:
            connection.execute(delete(idempotency).where(*_row(request)))


def _row(request: RequestIdentity) -> tuple[ColumnElement[bool], ...]:
    return (idempotency.c.principal == request.principal, idempotency.c.key == request.key)
