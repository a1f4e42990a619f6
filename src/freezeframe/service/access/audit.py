"""Audit: entries, their chain, their export."""

import csv
import hmac
import io
import itertools
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlalchemy import Connection, Row, Select, func, insert, select

from freezeframe.clock import moment, rfc3339
from freezeframe.control.database import ControlDatabase
from freezeframe.control.tables import audit
from freezeframe.errors import ConflictError, FixTheRequest, FreezeframeError, SetupError
from freezeframe.service.signing import ServiceSecret, load_secret, secret_path
from freezeframe.settings import Settings


@dataclass(frozen=True, slots=True)
class AuditScope:
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
        """Return all fields but the hash, by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "hash"}

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON: the time is RFC 3339, the details are an object."""
        return {
            "number": self.number,
            "moment": rfc3339(moment(self.moment_ms), "milliseconds"),
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
    """Whether the audit is whole."""

    is_whole: bool
    broken_at: Annotated[int | None, Field(description="The first entry that is not as it was written.")]
    reason: Annotated[str, Field(description="What is wrong with it; empty where the audit is whole.")]
    entries: Annotated[int, Field(description="How many entries were looked at.")]
    logged: Annotated[
        int, Field(description="How many lines of the log were compared; the service compares none.")
    ]
    head_number: Annotated[int | None, Field(description="The newest entry; null where there is none.")]
    head_hash: str


# The hash of an entry is an HMAC of its fields and of the hash of the entry before, with a key that is
# derived from the service's secret. Each entry is also a line of the logger ``freezeframe.audit``: a log
# that is kept elsewhere shows that the newest entries were cut off, or that whoever has the secret wrote the
# table anew.

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

    The operation sets ``outcome`` if it finds nothing to do.
    """

    entries: Sequence[AuditEntry]
    outcome: str = ""


def load_audit_secret(settings: Settings, root: str, database: ControlDatabase) -> ServiceSecret:
    """Load the service's secret, as ``load_secret``; it is made only while the audit has no entry.

    Raises:
        SetupError: the audit has entries, and the secret that signed them is not at its place.
    """
    path = secret_path(settings, root)
    if not path.exists():
        with database.read() as connection:
            has_entries = connection.execute(_LAST).one_or_none() is not None
        if has_entries:
            raise SetupError(
                f"The service's secret {path} is missing.",
                cause="The audit has entries, which another secret signed.",
                remedy="Set service_secret_file as the service has it, or restore the file from a backup. "
                "If it is lost, write 32 random bytes to the file: older entries then cannot be verified.",
            )
    return load_secret(settings, root)


class Audit:
    """The audit in one service's control database."""

    def __init__(self, database: ControlDatabase, secret: ServiceSecret) -> None:
        self._database = database
        self._secret = secret

    def write(
        self,
        scope: AuditScope,
        *,
        principal: str,
        action: str,
        subject: str = "",
        request_id: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> AuditEntry:
        """Write an entry, which is durable when this returns."""
        trace = {"principal": principal, "action": action, "request_id": request_id}
        return self._write(scope, (subject,), details, trace)[0]

    @contextmanager
    def operation(
        self,
        scope: AuditScope | Sequence[AuditScope],
        subjects: Sequence[str],
        *,
        details: Mapping[str, Any] | None = None,
        **trace: str,
    ) -> Iterator[AuditedOperation]:
        """Open a ``with`` block for a change; its entries are durable before it begins: one for each subject.

        Of a change of several tenants each of these ``scope`` gets the entries.
        ``trace`` is ``principal``, ``action`` and ``request_id`` as of ``write``. They are all that a success
        costs. Where the block raises, a second entry of the same request has the ``outcome``: ``refused``
        (nothing was changed), or ``failed`` (what has the request's id in the tenant's history was changed).
        A process that dies meanwhile leaves the first one.
        """
        begun = AuditedOperation(self._write(scope, subjects, details, trace))
        end: dict[str, Any] = {}
        try:
            yield begun
            end = {"outcome": begun.outcome}
        except BaseException as error:
            end = {"outcome": "refused" if isinstance(error, _CHANGE_NOTHING) else "failed"}
            if isinstance(error, FreezeframeError):
                end["code"] = error.error_code
            raise
        finally:
            if end.get("outcome"):
                first = min((entry.number for entry in begun.entries), default=None)
                with suppress(FreezeframeError):  # the first entry is enough
                    self._write(scope, subjects, {"entry": first, **end}, trace)

    def entries(
        self,
        scope: AuditScope,
        requested: AuditFilter = _EVERYTHING,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[AuditEntry, ...]:
        """Return entries of a scope, newest first: those below the number ``before``, at most ``limit``."""
        query = _select_entries(scope, requested)
        if before is not None:
            query = query.where(audit.c.number < before)
        return self._read(query.order_by(audit.c.number.desc()).limit(limit))

    def all_entries(self, scope: AuditScope, requested: AuditFilter = _EVERYTHING) -> Iterator[AuditEntry]:
        """Return all entries of a scope, oldest first."""
        return self._pages(_select_entries(scope, requested))

    def verify(self, logged: Mapping[int, AbstractSet[str]] | None = None) -> AuditProof:
        """Return whether each entry of the table is as it was written, and none is missing.

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
            elif (hashes := known.get(number, {expected})) != {expected}:
                reason = (
                    f"the log has it with {'another hash' if len(hashes) == 1 else f'{len(hashes)} hashes'}"
                )
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
        scope: AuditScope | Sequence[AuditScope],
        subjects: Sequence[str],
        details: Mapping[str, Any] | None,
        trace: Mapping[str, str],
    ) -> list[AuditEntry]:
        """Write an entry for each scope and subject, all in one transaction."""
        scopes = [scope] if isinstance(scope, AuditScope) else scope
        text = json.dumps(dict(details or {}), ensure_ascii=False, sort_keys=True)
        made: list[AuditEntry] = []
        with self._database.begin() as connection:
            _lock(connection)
            found = connection.execute(_LAST).one_or_none()
            last = None if found is None else _entry(found)
            now = self._database.now_ms(connection)
            for place, subject in itertools.product(scopes, subjects):
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
    """Return the fields of an entry's line in the log: all but the details.

    Number and hash come first, so that no name that a caller chose can stand before them.
    """
    fields = entry.to_json()
    scope = {"environment": entry.environment, "tenant": entry.tenant}
    return {"number": fields["number"], "hash": fields["hash"], **scope} | {
        name: fields[name] for name in ("moment", "principal", "subject", "request_id")
    }


def _proof(number: int | None, reason: str, count: int, compared: int, last: AuditEntry | None) -> AuditProof:
    head = (None, "") if last is None else (last.number, last.hash)
    return AuditProof(number is None, number, reason, count, compared, *head)


def _lock(connection: Connection) -> None:
    # SQLite's write transaction is alone already; on PostgreSQL two would read the same last entry.
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))


def _select_entries(scope: AuditScope, requested: AuditFilter) -> Select[Any]:
    query = select(audit).where(audit.c.environment == scope.environment, audit.c.tenant == scope.tenant)
    for column, value in ((audit.c.action, requested.action), (audit.c.subject, requested.subject)):
        if value is not None:
            query = query.where(column == value)
    if requested.principal is not None:
        query = query.where(audit.c.principal.contains(requested.principal, autoescape=True))
    if requested.since_ms is not None:
        query = query.where(audit.c.moment_ms >= requested.since_ms)
    if requested.until_ms is not None:
        query = query.where(audit.c.moment_ms < requested.until_ms)
    return query


def _entry(row: Row[Any]) -> AuditEntry:
    return AuditEntry(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it


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
    """Yield the entries as lines of text."""
    if kind == "jsonl":
        for entry in entries:
            yield f"{json.dumps(entry.to_json(), ensure_ascii=False)}\n"
        return
    yield _line(_COLUMNS)
    for entry in entries:
        fields = {**entry.to_json(), "details": entry.details}
        yield _line(str(fields[name]) for name in _COLUMNS)


def _line(cells: Iterable[str]) -> str:
    # A spreadsheet would evaluate such a cell, and names come from callers.
    safe = [f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells]
    written = io.StringIO()
    csv.writer(written).writerow(safe)
    return written.getvalue()
