"""The audit: entries in a hash chain that reveals changed and removed ones.

Each entry holds the hash of the one before it in its tenant's chain, and a hash of its own that is made with
a key of the service. What concerns no tenant (keys, people, sign-ins) has a chain of its own, that of the
environment ``""`` and the tenant ``""``. Versions of the tenant and the sink hold the numbers and hashes of
its newest entries, so that a chain that was cut off is found too.

Entries that are written at the same time share a transaction: whoever comes while one is under way
waits for the next, which takes all that have come.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, func, insert, select

from freezeframe.control.database.database import ControlDatabase
from freezeframe.control.tables import audit
from freezeframe.errors import ConflictError, FixTheRequest, FreezeframeError
from freezeframe.service.access.audit_entry import (
    FIRST,
    SEAL,
    TRIM,
    AuditEntry,
    AuditFilter,
    AuditKeys,
    AuditPlace,
    Head,
)
from freezeframe.service.access.audit_proof import AuditProof, prove
from freezeframe.service.base.secret import ServiceSecret

UNCHANGED = "unchanged"
_CHANGE_NOTHING = (FixTheRequest, ConflictError)
# Made once: to put a statement together takes longer than SQLite needs to carry it out.
_INSERT = insert(audit)
_EVERYTHING = AuditFilter()
_PAGE = 1000
_LAST = (
    select(audit)
    .where(
        audit.c.environment == bindparam("place_environment"),
        audit.c.tenant == bindparam("place_tenant"),
    )
    .order_by(audit.c.number.desc())
    .limit(1)
)


@dataclass(slots=True)
class AuditedOperation:
    """An operation whose audit entry is written before it begins.

    ``outcome`` is set by who finds that there was nothing to be done.
    """

    entries: Sequence[AuditEntry]
    outcome: str = ""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A pending entry and its result."""

    place: AuditPlace
    values: dict[str, Any]
    entry: AuditEntry | None = None
    error: BaseException | None = None


class Audit:
    """The chains of one service's control database.

    ``send`` gets the entries that have become durable, for a sink outside of the database.
    """

    def __init__(
        self,
        database: ControlDatabase,
        secret: ServiceSecret,
        send: Callable[[Sequence[AuditEntry]], None] | None = None,
    ) -> None:
        self._database = database
        self._keys = AuditKeys.of(secret)
        self._send = send
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
        """Write an entry for each subject, all in one transaction."""
        text = json.dumps(dict(details or {}), ensure_ascii=False, sort_keys=True)
        mine = [_Waiting(place, {**trace, "subject": one, "details": text}) for one in subjects]
        with self._lock:
            self._waiting += mine
        with self._writing:
            if mine and mine[0].entry is None and mine[0].error is None:  # else another thread wrote them
                with self._lock:
                    taken, self._waiting = self._waiting, []
                self._write_together(taken)
        for one in mine:
            if one.error is not None:
                raise one.error
        return [one.entry for one in mine if one.entry is not None]

    @contextmanager
    def operation(
        self,
        place: AuditPlace,
        subjects: Sequence[str],
        *,
        details: Mapping[str, Any] | None = None,
        **trace: str,
    ) -> Iterator[AuditedOperation]:
        """A ``with`` block for a change; it is entered after its entries (one for each subject) are durable.

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
        """Add entries in one transaction; each request gets its own result."""
        last: dict[AuditPlace, AuditEntry | None] = {}
        made: list[AuditEntry] = []
        try:
            with self._database.begin() as connection:
                _lock(connection)
                now = self._database.now_ms(connection)
                for one in taken:
                    if one.place not in last:
                        last[one.place] = self._last(connection, one.place)
                    made.append(_following(last[one.place], one, now, self._keys))
                    last[one.place] = made[-1]
                connection.execute(_INSERT, [{**one.to_record(), "hash": one.hash} for one in made])
        except BaseException as error:  # noqa: BLE001 - raised again by each who waits
            for one in taken:
                one.error = error
            return
        for one, entry in zip(taken, made, strict=True):
            one.entry = entry
        if self._send is not None:
            self._send(made)

    def entries(
        self,
        place: AuditPlace,
        wanted: AuditFilter = _EVERYTHING,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[AuditEntry, ...]:
        """Entries of a chain, the newest first: those below the number ``before``, at most ``limit``."""
        query = _select_entries(place, wanted)
        if before is not None:
            query = query.where(audit.c.number < before)
        return self._read(query.order_by(audit.c.number.desc()).limit(limit))

    def all_entries(self, place: AuditPlace, wanted: AuditFilter = _EVERYTHING) -> Iterator[AuditEntry]:
        """All entries of a chain, the oldest first."""
        after = -1
        while True:
            query = _select_entries(place, wanted).where(audit.c.number > after)
            found = self._read(query.order_by(audit.c.number).limit(_PAGE))
            yield from found
            if len(found) < _PAGE:
                return
            after = found[-1].number

    def places(self) -> tuple[AuditPlace, ...]:
        """The names of the chains."""
        query = select(audit.c.environment, audit.c.tenant).distinct()
        with self._database.read() as connection:
            return tuple(sorted((AuditPlace(*row) for row in connection.execute(query)), key=repr))

    def prove(self, place: AuditPlace, heads: Iterable[Head] = ()) -> AuditProof:
        """Whether a chain is whole; the caller has read ``heads`` from the other places that keep them."""
        known = tuple(heads)
        return prove(self.all_entries(place), self._keys, known)

    def seal(self, principal: str) -> None:
        """Give each chain a signed entry at its end, if no entry in the database is signed yet.

        From then on a chain that ends unsigned was made by somebody else.
        """
        with self._database.read() as connection:
            if connection.execute(select(audit.c.number).where(audit.c.signing_key != "").limit(1)).first():
                return
        for place in self.places():
            self.write(place, principal=principal, action=SEAL)

    def trim(self, place: AuditPlace, before_ms: int, principal: str) -> int:
        """Delete the entries from before a moment except the newest one; return how many.

        An entry that tells the last deleted one's number and hash comes first, so the rest stays provable.
        """
        with self._database.read() as connection:
            newest = self._last(connection, place)
        if newest is None:
            return 0
        old = AuditFilter(until_ms=before_ms)
        last = next(iter(self.entries(place, old, before=newest.number, limit=1)), None)
        if last is None:
            return 0
        told = {"removed_through": last.number, "hash": last.hash}
        self.write(place, principal=principal, action=TRIM, details=told)
        with self._database.begin() as connection:
            gone = delete(audit).where(*_chain(place), audit.c.number <= last.number)
            return connection.execute(gone).rowcount

    def _read(self, query: Select[Any]) -> tuple[AuditEntry, ...]:
        with self._database.read() as connection:
            return tuple(_entry(row) for row in connection.execute(query))

    def _last(self, connection: Connection, place: AuditPlace) -> AuditEntry | None:
        values = {"place_environment": place.environment, "place_tenant": place.tenant}
        found = connection.execute(_LAST, values).one_or_none()
        return None if found is None else _entry(found)


def _following(last: AuditEntry | None, waiting: _Waiting, now_ms: int, keys: AuditKeys) -> AuditEntry:
    record: dict[str, Any] = {
        "environment": waiting.place.environment,
        "tenant": waiting.place.tenant,
        "number": last.number + 1 if last else 0,
        "moment_ms": max(now_ms, last.moment_ms if last else 0),
        **waiting.values,
        "previous_hash": last.hash if last else FIRST,
        "signing_key": keys.current,
    }
    return AuditEntry(**record, hash=str(keys.hash(record)))


def _lock(connection: Connection) -> None:
    # SQLite's write transaction is alone already; on PostgreSQL two would read the same last entry.
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(7_346_021_906)))


def _chain(place: AuditPlace) -> tuple[Any, Any]:
    return (audit.c.environment == place.environment, audit.c.tenant == place.tenant)


def _select_entries(place: AuditPlace, wanted: AuditFilter) -> Select[Any]:
    query = select(audit).where(*_chain(place))
    for column, value in ((audit.c.action, wanted.action), (audit.c.subject, wanted.subject)):
        if value is not None:
            query = query.where(column == value)
    if wanted.principal is not None:
        query = query.where(audit.c.principal.contains(wanted.principal, autoescape=True))
    if wanted.since_ms is not None:
        query = query.where(audit.c.moment_ms >= wanted.since_ms)
    if wanted.until_ms is not None:
        query = query.where(audit.c.moment_ms < wanted.until_ms)
    return query


def _entry(row: Row[Any]) -> AuditEntry:
    return AuditEntry(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
