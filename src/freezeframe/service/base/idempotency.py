"""Stored responses: a request with an ``Idempotency-Key`` is carried out once.

Keys belong to who asks. An answer is kept for a day. While a request is being answered its key is renewed
again and again, so one whose process died may be sent again within half a minute. Its effect is not had
twice: what it makes is named after the request's identity (``RequestIdentity.job_id``), so the second
attempt finds what the first one made, and answers with that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, select, update

from freezeframe.control.database.database import ControlDatabase, insert_if_absent
from freezeframe.control.schema.idempotency import idempotency
from freezeframe.errors import IdempotencyConflict, RequestInFlight

_KEPT_MS = 86_400_000
_IN_FLIGHT_MS = 30_000
RENEWED_EVERY_SECONDS = 8.0
JOB_PREFIX = "request-"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The stored response to a request's first occurrence."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    body_sha256: str = ""
    """Of the request's own body, where that is not part of its fingerprint."""


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """Principal, idempotency key and content hash of a request."""

    principal: str
    key: str
    fingerprint: str

    @property
    def job_id(self) -> str:
        """The id of what the request creates: a job of the tenant's log or of the queue, an upload, a key."""
        text = json.dumps([self.principal, self.key, self.fingerprint])
        return f"{JOB_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:32]}"


class StoredResponses:
    """The answers that are kept in one service's control database."""

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database

    def begin(self, request: RequestIdentity) -> StoredResponse | None:
        """The stored answer to give again; None: carry the request out, then ``finish`` or ``forget`` it.

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
                "expires_ms": now + _KEPT_MS,
                "begun_until_ms": now + _IN_FLIGHT_MS,
            }
            if insert_if_absent(connection, idempotency, values):
                return None
            query = select(idempotency).where(*_row(request))
            row = connection.execute(query).mappings().one()
            if row["fingerprint"] != request.fingerprint:
                raise other_request()
            if row["status"] is None and self._take_over(connection, request, row["begun_until_ms"], now):
                return None
        if row["status"] is None:
            raise RequestInFlight(
                "The same request is being answered at this moment.",
                remedy="Wait and send it again with the same Idempotency-Key.",
            )
        return StoredResponse(
            row["status"], json.loads(row["headers"]), row["body"] or b"", row["body_sha256"]
        )

    def renew(self, request: RequestIdentity) -> None:
        """Renew the claim of a request that is still being answered."""
        with self._database.begin() as connection:
            values = {"begun_until_ms": self._database.now_ms(connection) + _IN_FLIGHT_MS}
            open_row = (*_row(request), idempotency.c.status.is_(None))
            connection.execute(update(idempotency).where(*open_row).values(values))

    def let_go(self, request: RequestIdentity) -> None:
        """Release a request whose answer must not be kept: the same request is carried out once more."""
        with self._database.begin() as connection:
            connection.execute(update(idempotency).where(*_row(request)).values(begun_until_ms=0))

    def finish(self, request: RequestIdentity, answer: StoredResponse) -> None:
        """Store the answer."""
        with self._database.begin() as connection:
            values = {
                "status": answer.status,
                "headers": json.dumps(dict(answer.headers)),
                "body": answer.body,
                "body_sha256": answer.body_sha256,
                "expires_ms": self._database.now_ms(connection) + _KEPT_MS,
            }
            connection.execute(update(idempotency).where(*_row(request)).values(values))

    def forget(self, request: RequestIdentity) -> None:
        """Release a request that changed nothing, so it may come again."""
        with self._database.begin() as connection:
            connection.execute(delete(idempotency).where(*_row(request)))

    def _take_over(
        self, connection: Connection, request: RequestIdentity, until_ms: int | None, now_ms: int
    ) -> bool:
        """Whether this attempt, and no other, takes over a request whose worker fell silent."""
        if until_ms is not None and until_ms > now_ms:
            return False
        seen = idempotency.c.begun_until_ms
        as_seen = seen.is_(None) if until_ms is None else seen == until_ms
        values = {"begun_until_ms": now_ms + _IN_FLIGHT_MS}
        taken = connection.execute(update(idempotency).where(*_row(request), as_seen).values(values))
        return taken.rowcount == 1


def other_request() -> IdempotencyConflict:
    """The refusal of another request under an Idempotency-Key that is taken."""
    return IdempotencyConflict(
        "This Idempotency-Key came with another request before.",
        cause="Its path, its parameters or its body were different.",
        remedy="Use a new key for each request; send the same request again with the same key.",
    )


def _row(request: RequestIdentity) -> tuple[ColumnElement[bool], ...]:
    return (idempotency.c.principal == request.principal, idempotency.c.key == request.key)
