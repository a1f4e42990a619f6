"""The audit: who did what to which tenant, in a chain that shows if an entry was changed or taken out.

Each entry holds the hash of the one before it in its tenant's chain. What concerns no tenant (keys and
people) has a chain of its own, that of the environment ``""`` and the tenant ``""``.

Entries that are written at the same time share a transaction: whoever comes while one is under way
waits for the next, which takes all that have come.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select

from freezeframe.control.database import ControlDatabase
from freezeframe.control.schema.audit import audit
from freezeframe.errors import ConflictError, FixTheRequest, FreezeframeError
from freezeframe.service.base.timestamps import rfc3339

FIRST = "0" * 64
UNCHANGED = "unchanged"
_CHANGE_NOTHING = (FixTheRequest, ConflictError)
# Made once: to put a statement together takes longer than SQLite needs to carry it out.
_INSERT = insert(audit)
_LAST = (
    select(audit)
    .where(
        audit.c.environment == bindparam("place_environment"),
        audit.c.tenant == bindparam("place_tenant"),
    )
    .order_by(audit.c.number.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class AuditPlace:
    """Whose chain: a tenant of an environment, or the service's own where both are empty."""

    environment: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was done. ``hash`` is of all the other fields, ``previous_hash`` of the entry before."""

    environment: str
    tenant: str
    number: int
    moment_ms: int
    principal: str
    action: str
    subject: str
    request_id: str
    details: str
    previous_hash: str
    hash: str

    @property
    def own_hash(self) -> str:
        """What ``hash`` must be."""
        return _hash(self.to_record())

    def to_record(self) -> dict[str, Any]:
        """All fields but the hash, by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "hash"}

    def to_json(self) -> dict[str, Any]:
        """What is told of it; the moment is RFC 3339, the details are an object."""
        return {
            "number": self.number,
            "moment": rfc3339(self.moment_ms),
            "principal": self.principal,
            "action": self.action,
            "subject": self.subject,
            "request_id": self.request_id,
            "details": json.loads(self.details),
            "previous_hash": self.previous_hash,
            "hash": self.hash,
        }


@dataclass(slots=True)
class AuditedOperation:
    """Something that is about to be done and has its entries already.

    ``outcome`` is set by who finds that there was nothing to be done.
    """

    entries: Sequence[AuditEntry]
    outcome: str = ""


@dataclass(slots=True, eq=False)
class _Waiting:
    """An entry that is to be written, and what became of it."""

    place: AuditPlace
    values: dict[str, Any]
    entry: AuditEntry | None = None
    error: BaseException | None = None


class Audit:
    """The chains of one service's control database."""

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: list[_Waiting] = []

    def write(
        self,
        place: AuditPlace,
        *,
        principal: str,
        action: str,
        subject: str = "",
        request_id: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> AuditEntry:
        """Add an entry to the chain; it is durable when this returns.

        Raises:
            TryAgain: it could not be written. What was asked must not be answered then.
        """
        trace = {"principal": principal, "action": action, "request_id": request_id}
        return self._write(place, (subject,), details, trace)[0]

    def _write(
        self,
        place: AuditPlace,
        subjects: Sequence[str],
        details: Mapping[str, Any] | None,
        trace: Mapping[str, str],
    ) -> list[AuditEntry]:
        """An entry for each of the subjects, all in one transaction."""
        text = json.dumps(dict(details or {}), ensure_ascii=False, sort_keys=True)
        mine = [_Waiting(place, {**trace, "subject": one, "details": text}) for one in subjects]
        with self._lock:
            self._waiting += mine
        with self._writing:
            if mine and mine[0].entry is None and mine[0].error is None:  # else somebody took them along
                with self._lock:
                    taken, self._waiting = self._waiting, []
                self._write_together(taken)
        for one in mine:
            if one.error is not None:
                raise one.error
        return [one.entry for one in mine if one.entry is not None]

    @contextmanager
    def undertaking(
        self,
        place: AuditPlace,
        subjects: Sequence[str],
        *,
        details: Mapping[str, Any] | None = None,
        **trace: str,
    ) -> Iterator[AuditedOperation]:
        """Do something in the ``with`` block, once its entries (one for each subject) are durable.

        ``trace`` is ``principal``, ``action`` and ``request_id`` as of ``write``. They are all that a success
        costs. Where the block raises, a second entry of the same request has the ``outcome``: ``refused``
        (nothing was changed), or ``failed`` (what has the request's id in the tenant's history was changed).
        Who dies meanwhile leaves the first one.

        Raises:
            TryAgain: an entry could not be written; the block was not entered.
        """
        begun = AuditedOperation(self._write(place, subjects, details, trace))
        told: dict[str, Any] = {}
        try:
            yield begun
            told = {"outcome": begun.outcome}
        except BaseException as error:
            told = {"outcome": "refused" if isinstance(error, _CHANGE_NOTHING) else "failed"}
            if isinstance(error, FreezeframeError):
                told["code"] = error.error_code
            raise
        finally:
            if told.get("outcome"):
                first = min((entry.number for entry in begun.entries), default=None)
                with suppress(FreezeframeError):  # the first entry stands, and says enough
                    self._write(place, subjects, {"entry": first, **told}, trace)

    def _write_together(self, taken: list[_Waiting]) -> None:
        """Add entries in one transaction; each learns what became of it."""
        last: dict[AuditPlace, AuditEntry | None] = {}
        made: list[AuditEntry] = []
        try:
            with self._database.begin() as connection:
                _lock(connection)
                now = self._database.now_ms(connection)
                for one in taken:
                    if one.place not in last:
                        last[one.place] = self._last(connection, one.place)
                    made.append(_following(last[one.place], one, now))
                    last[one.place] = made[-1]
                connection.execute(_INSERT, [{**one.to_record(), "hash": one.hash} for one in made])
        except BaseException as error:  # noqa: BLE001 - raised again by each who waits
            for one in taken:
                one.error = error
            return
        for one, entry in zip(taken, made, strict=True):
            one.entry = entry

    def entries(
        self,
        place: AuditPlace,
        *,
        before: int | None = None,
        limit: int = 100,
        action: str | None = None,
        subject: str | None = None,
    ) -> tuple[AuditEntry, ...]:
        """The newest entries of a chain first: those below the number ``before``, at most ``limit``."""
        query = select(audit).where(*_chain(place))
        if before is not None:
            query = query.where(audit.c.number < before)
        if action is not None:
            query = query.where(audit.c.action == action)
        if subject is not None:
            query = query.where(audit.c.subject == subject)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(audit.c.number.desc()).limit(limit))
            return tuple(_entry(row) for row in rows)

    def broken_at(self, place: AuditPlace) -> int | None:
        """The number of the first entry that was changed, or lacks the one before it; None: all are whole."""
        expected_number, previous = 0, FIRST
        query = select(audit).where(*_chain(place)).order_by(audit.c.number)
        with self._database.read() as connection:
            for row in connection.execute(query):
                entry = _entry(row)
                is_linked = entry.number == expected_number and entry.previous_hash == previous
                if not is_linked or entry.own_hash != entry.hash:
                    return expected_number
                expected_number, previous = expected_number + 1, entry.hash
        return None

    def _last(self, connection: Connection, place: AuditPlace) -> AuditEntry | None:
        values = {"place_environment": place.environment, "place_tenant": place.tenant}
        found = connection.execute(_LAST, values).one_or_none()
        return None if found is None else _entry(found)


def _following(last: AuditEntry | None, waiting: _Waiting, now_ms: int) -> AuditEntry:
    record: dict[str, Any] = {
        "environment": waiting.place.environment,
        "tenant": waiting.place.tenant,
        "number": last.number + 1 if last else 0,
        "moment_ms": max(now_ms, last.moment_ms if last else 0),
        **waiting.values,
        "previous_hash": last.hash if last else FIRST,
    }
    return AuditEntry(**record, hash=_hash(record))


def _lock(connection: Connection) -> None:
    # SQLite's write transaction is alone already; on PostgreSQL two would read the same last entry.
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(7_346_021_906)))


def _chain(place: AuditPlace) -> tuple[Any, Any]:
    return (audit.c.environment == place.environment, audit.c.tenant == place.tenant)


def _entry(row: Row[Any]) -> AuditEntry:
    return AuditEntry(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it


def _hash(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
