"""Audit: entries, their chain, their export."""

from __future__ import annotations

import csv
import hmac
import io
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, func, insert, select

from freezeframe.control.database import ControlDatabase
from freezeframe.control.tables import audit
from freezeframe.errors import ConflictError, FixTheRequest, FreezeframeError
from freezeframe.service.base.json_values import rfc3339
from freezeframe.service.base.secret import ServiceSecret

# An entry of the audit, what it is about, and how entries are filtered.


@dataclass(frozen=True, slots=True)
class AuditPlace:
    """What an entry is about: a tenant of an environment, or the service where both are empty."""

    environment: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was done; ``hash`` is made of all other fields and of the hash of the entry before."""

    number: int
    environment: str
    tenant: str
    moment_ms: int
    principal: str
    action: str
    subject: str
    request_id: str
    details: str
    hash: str

    def to_record(self) -> dict[str, Any]:
        """All fields but the hash, by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "hash"}

    def to_json(self) -> dict[str, Any]:
        """The entry as JSON: the time is RFC 3339, the details are an object."""
        return {
            "number": self.number,
            "moment": rfc3339(self.moment_ms),
            "principal": self.principal,
            "action": self.action,
            "subject": self.subject,
            "request_id": self.request_id,
            "details": json.loads(self.details),
            "hash": self.hash,
        }


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filter of entries: each given field must match.

    ``principal`` is any part of who asked (``key:0a1b``, a name); moments are milliseconds since 1970,
    ``until_ms`` is not included.
    """

    action: str | None = None
    subject: str | None = None
    principal: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AuditProof:
    """Result of a verification; ``broken_at`` is the first entry that differs, with the reason.

    ``entries`` is how many were looked at, ``logged`` how many lines of the log were compared;
    ``head_number`` and ``head_hash`` are of the newest entry, None and empty where there is none.
    """

    broken_at: int | None
    reason: str
    entries: int
    logged: int
    head_number: int | None
    head_hash: str

    @property
    def is_whole(self) -> bool:
        """Whether every entry is there as it was written, up to the newest that the log knows."""
        return self.broken_at is None


# The audit: one append-only table, whose entries are chained so that changed and removed ones are found.
#
# The hash of an entry is an HMAC of its fields and of the hash of the entry before, with a key that is
# derived
# from the service's secret. Each entry is also a line of the logger ``freezeframe.audit``: a log that is
# kept
# elsewhere shows that the newest entries were cut off, or that whoever has the secret wrote the table anew.

UNCHANGED = "unchanged"
_CHANGE_NOTHING = (FixTheRequest, ConflictError)
# Made once: to put a statement together takes longer than SQLite needs to carry it out.
_INSERT = insert(audit)
_LAST = select(audit).order_by(audit.c.number.desc()).limit(1)
_EVERYTHING = AuditFilter()
_PAGE = 1000
_FIRST = ""
_LABEL = b"freezeframe audit"
_LOCK = 7_346_021_906
_log = logging.getLogger("freezeframe.audit")


@dataclass(slots=True)
class AuditedOperation:
    """An operation whose audit entry is written before it begins.

    ``outcome`` is set by who finds that there was nothing to be done.
    """

    entries: Sequence[AuditEntry]
    outcome: str = ""


class Audit:
    """The audit in one service's control database."""

    def __init__(self, database: ControlDatabase, secret: ServiceSecret) -> None:
        self._database = database
        self._secret = secret

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
        """Add an entry; it is durable when this returns."""
        trace = {"principal": principal, "action": action, "request_id": request_id}
        return self._write(place, (subject,), details, trace)[0]

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
        A process that dies meanwhile leaves the first one.
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

    def entries(
        self,
        place: AuditPlace,
        wanted: AuditFilter = _EVERYTHING,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[AuditEntry, ...]:
        """Entries about a place, the newest first: those below the number ``before``, at most ``limit``."""
        query = _select_entries(place, wanted)
        if before is not None:
            query = query.where(audit.c.number < before)
        return self._read(query.order_by(audit.c.number.desc()).limit(limit))

    def all_entries(self, place: AuditPlace, wanted: AuditFilter = _EVERYTHING) -> Iterator[AuditEntry]:
        """All entries about a place, the oldest first."""
        return self._pages(_select_entries(place, wanted))

    def verify(self, logged: Mapping[int, str] | None = None) -> AuditProof:
        """Whether each entry of the table is as it was written, and none is missing.

        ``logged`` has the hashes by number that the lines of ``freezeframe.audit`` told; without them newest
        entries that were cut off are not missed.
        """
        known = logged or {}
        last: AuditEntry | None = None
        count = compared = 0
        for entry in self._pages(select(audit)):
            number = last.number + 1 if last else 0
            expected = self._hash(entry.to_record(), last.hash if last else _FIRST)
            if entry.number != number:
                reason = "the entry is missing"
            elif not hmac.compare_digest(entry.hash, expected):
                reason = "its content is not what was written"
            elif known.get(number, expected) != expected:
                reason = "the log has it with another hash"
            else:
                last, count, compared = entry, count + 1, compared + (number in known)
                continue
            return _proof(number, reason, count, compared, last)
        end = last.number + 1 if last else 0
        if cut := sum(number >= end for number in known):
            return _proof(end, f"the audit ends here, the log has {cut} more", count, compared, last)
        return _proof(None, "", count, compared, last)

    def _write(
        self,
        place: AuditPlace,
        subjects: Sequence[str],
        details: Mapping[str, Any] | None,
        trace: Mapping[str, str],
    ) -> list[AuditEntry]:
        """Write an entry for each subject, all in one transaction."""
        text = json.dumps(dict(details or {}), ensure_ascii=False, sort_keys=True)
        made: list[AuditEntry] = []
        with self._database.begin() as connection:
            _lock(connection)
            found = connection.execute(_LAST).one_or_none()
            last = None if found is None else _entry(found)
            now = self._database.now_ms(connection)
            for subject in subjects:
                record: dict[str, Any] = {
                    "number": last.number + 1 if last else 0,
                    "environment": place.environment,
                    "tenant": place.tenant,
                    "moment_ms": max(now, last.moment_ms if last else 0),
                    **trace,
                    "subject": subject,
                    "details": text,
                }
                last = AuditEntry(**record, hash=self._hash(record, last.hash if last else _FIRST))
                made.append(last)
            connection.execute(_INSERT, [{**item.to_record(), "hash": item.hash} for item in made])
        for item in made:
            _log.info(item.action, extra=log_fields(item))
        return made

    def _hash(self, record: Mapping[str, Any], before: str) -> str:
        text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return self._secret.sign(_LABEL, f"{before}\n{text}".encode()).hex()

    def _pages(self, query: Select[Any]) -> Iterator[AuditEntry]:
        after = -1
        while True:
            found = self._read(query.where(audit.c.number > after).order_by(audit.c.number).limit(_PAGE))
            yield from found
            if len(found) < _PAGE:
                return
            after = found[-1].number

    def _read(self, query: Select[Any]) -> tuple[AuditEntry, ...]:
        with self._database.read() as connection:
            return tuple(_entry(row) for row in connection.execute(query))


def log_fields(entry: AuditEntry) -> dict[str, Any]:
    """The fields of an entry's line in the log: all but the details.

    Number and hash come first, so that no name that a caller chose can stand before them.
    """
    told = entry.to_json()
    place = {"environment": entry.environment, "tenant": entry.tenant}
    return {"number": told["number"], "hash": told["hash"], **place} | {
        name: told[name] for name in ("moment", "principal", "subject", "request_id")
    }


def _proof(number: int | None, reason: str, count: int, compared: int, last: AuditEntry | None) -> AuditProof:
    head = (None, "") if last is None else (last.number, last.hash)
    return AuditProof(number, reason, count, compared, *head)


def _lock(connection: Connection) -> None:
    # SQLite's write transaction is alone already; on PostgreSQL two would read the same last entry.
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))


def _select_entries(place: AuditPlace, wanted: AuditFilter) -> Select[Any]:
    query = select(audit).where(audit.c.environment == place.environment, audit.c.tenant == place.tenant)
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


# Audit export: JSON lines, exact, or CSV for spreadsheets.

EXPORT_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_COLUMNS = (
    "number",
    "moment",
    "principal",
    "action",
    "subject",
    "request_id",
    "details",
    "hash",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export_lines(entries: Iterable[AuditEntry], kind: Literal["jsonl", "csv"]) -> Iterator[str]:
    """The entries as lines of text."""
    if kind == "jsonl":
        for entry in entries:
            yield f"{json.dumps(entry.to_json(), ensure_ascii=False)}\n"
        return
    yield _line(_COLUMNS)
    for entry in entries:
        told = {**entry.to_json(), "details": entry.details}
        yield _line(str(told[name]) for name in _COLUMNS)


def _line(cells: Iterable[str]) -> str:
    # A spreadsheet would evaluate such a cell, and names come from callers.
    safe = [f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells]
    written = io.StringIO()
    csv.writer(written).writerow(safe)
    return written.getvalue()
