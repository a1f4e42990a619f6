"""History of a tenant, and references to its versions by number, tag or time."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, SupportsIndex, overload

from freezeframe.clock import moment
from freezeframe.errors import InvalidOption
from freezeframe.store.model.json_fields import JsonFields
from freezeframe.store.model.receipt import Counts, html_table
from freezeframe.store.model.update_options import exclusive_options
from freezeframe.store.table import reader
from freezeframe.store.tenant_log.entry import Entry
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import TenantState

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class HistoryEntry(JsonFields):
    """One version of a tenant: when, by whom and which job, and what it changed.

    ``streams`` has the row counts of each stream that changed, ``files_written`` and ``files_deleted``
    the paths of files. The counts are net, as in a ``diff`` with the version before, except ``unchanged``
    (rows that were sent as stored). ``kind`` is the entry's (``docs/reference/tenant-log.md``), or
    ``restore`` for a restoration of version ``restored``. ``script_sha256`` is the hash of the job's script;
    empty without one, and in versions of before it was kept.
    """

    _names = {"version": "tenant_version", "restored": "restored_version", "who": "author"}  # noqa: RUF012 - declared as ClassVar by the base
    version: int
    timestamp: datetime
    job_id: str | None
    message: str
    streams: dict[str, Counts]
    who: str = ""
    kind: str = "commit"
    files_written: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    streams_dropped: tuple[str, ...] = ()
    tags: tuple[str, ...] = field(default=())
    request_id: str = ""
    restored: int | None = None
    script_sha256: str = ""

    @property
    def is_idle(self) -> bool:
        """Whether a job ran and changed nothing; its version exists so that the id does not run again."""
        changes = (self.streams, self.files_written, self.files_deleted, self.streams_dropped)
        return self.kind == "commit" and self.job_id is not None and not any(changes)

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name, and whether the version is idle; see ``JsonFields.to_json``."""
        return {**JsonFields.to_json(self), "is_idle": self.is_idle}


class History(Sequence[HistoryEntry]):
    """Versions of a tenant, each read when it is reached and once."""

    def __init__(self, entries: Iterator[HistoryEntry]) -> None:
        self._ahead = entries
        self._read: list[HistoryEntry] = []

    def __iter__(self) -> Iterator[HistoryEntry]:
        index = 0
        while self._reach(index):
            yield self._read[index]
            index += 1

    @overload
    def __getitem__(self, index: int) -> HistoryEntry: ...
    @overload
    def __getitem__(self, index: slice) -> list[HistoryEntry]: ...
    def __getitem__(self, index: int | slice) -> HistoryEntry | list[HistoryEntry]:
        if not isinstance(index, slice):
            self._reach(index if index >= 0 else None)
        else:
            backwards = any((value or 0) < 0 for value in (index.start, index.stop, index.step))
            self._reach(None if backwards or index.stop is None else index.stop - 1)
        return self._read[index]

    def __len__(self) -> int:
        self._reach(None)
        return len(self._read)

    def _reach(self, index: int | None) -> bool:
        """Read up to an index (None: all); return whether there is such an entry."""
        wanted = None if index is None else max(0, index + 1 - len(self._read))
        self._read.extend(islice(self._ahead, wanted))
        return index is not None and index < len(self._read)

    def __repr__(self) -> str:
        return f"History({[entry.version for entry in self[:_SHOWN]]}{'…' if self._reach(_SHOWN) else ''})"

    def _repr_html_(self) -> str:
        """Return the first versions in a notebook."""
        rows = [
            (
                entry.version,
                f"{entry.timestamp:%Y-%m-%d %H:%M:%S}",
                entry.job_id or entry.kind,
                entry.who,
                ", ".join((*entry.streams, *entry.files_written, *entry.files_deleted)[:_SHOWN]),
                entry.message,
            )
            for entry in self[:_SHOWN]
        ]
        caption = f"The newest {_SHOWN} versions" if self._reach(_SHOWN) else "Versions"
        return html_table(caption, ("version", "time (UTC)", "job", "author", "changed", "message"), rows)


def history(
    log: TenantLog,
    newest: TenantState,
    limit: int | None = None,
    *,
    until: int | None = None,
    job_id: str | None = None,
    stream: str | None = None,
    path: str | None = None,
) -> History:
    """Return the retained versions, newest (or ``until``) first, at most ``limit`` of them.

    ``job_id``, ``stream`` and ``path`` select the versions of a job, or with changes of a stream or file.
    """
    if limit is not None and limit < 0:
        raise InvalidOption(f"limit cannot be {limit}.", remedy="Pass a whole number, or nothing for all.")
    last = newest.version if until is None else until
    return History(_entries(log, newest, limit, last, (job_id, stream, path)))


def _entries(
    log: TenantLog,
    newest: TenantState,
    limit: int | None,
    until: int,
    wanted: tuple[str | None, str | None, str | None],
) -> Iterator[HistoryEntry]:
    lowest = newest.kept_from()
    tags: dict[int, list[str]] = {}
    for name, version in sorted(newest.tags.items()):
        tags.setdefault(version, []).append(name)
    left = limit
    if left == 0:
        return
    versions = filter(newest.is_listed, range(min(until, newest.version), lowest - 1, -1))
    for version, entry in log.entries_down(newest, versions):
        if _is_wanted(entry, *wanted):
            yield history_entry(version, entry, tuple(tags.get(version, ())))
            left = None if left is None else left - 1
            if left == 0:
                return


def history_entry(version: int, entry: Entry, tags: tuple[str, ...] = ()) -> HistoryEntry:
    """Return the history entry of a log entry."""
    return HistoryEntry(
        version=version,
        timestamp=moment(entry.timestamp_ms),
        job_id=entry.job_id,
        message=entry.message,
        streams={str(change.stream): change.counts for change in entry.streams},
        who=entry.author,
        kind=entry.kind if entry.restored is None else "restore",
        files_written=tuple(change.path for change in entry.files if change.blob is not None),
        files_deleted=tuple(change.path for change in entry.files if change.blob is None),
        streams_dropped=entry.tenant.dropped,
        tags=tags,
        request_id=entry.request_id,
        restored=entry.restored,
        script_sha256=(entry.receipt or {}).get("script_sha256", ""),
    )


def _is_wanted(entry: Entry, job_id: str | None, stream: str | None, path: str | None) -> bool:
    return (
        (job_id is None or entry.job_id == job_id)
        and (stream is None or any(str(change.stream) == stream for change in entry.streams))
        and (path is None or any(change.path == path for change in entry.files))
    )


Point = int | datetime | str
"""A version's number; a tag's name; or a moment (ISO text is UTC without a zone): its newest version then."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a tenant as a caller named it; text is a tag where the tag exists, else a moment."""

    given: Point
    number: int | None = None
    moment: datetime | None = None

    @classmethod
    def parse(cls, given: Point) -> "Version":
        """Return the version that a number, a tag or a moment names."""
        if isinstance(given, SupportsIndex):
            return cls(given, operator.index(given))
        try:
            return cls(given, moment=reader.moment(given))
        except InvalidOption:  # it can be a tag only
            return cls(given)

    def find(self, log: TenantLog, newest: TenantState) -> int:
        """Return the number of the version, without a check that it is kept.

        Raises:
            InvalidOption: it is neither a version, a tag nor a moment.
            VersionNotFound: no version is of that moment.
        """
        if self.number is not None:
            return self.number
        if isinstance(self.given, str) and self.given in newest.tags:
            return newest.tags[self.given]
        if self.moment is not None:
            return log.version_at(self.moment)
        tags = ", ".join(map(repr, sorted(newest.tags)))
        raise InvalidOption(
            f"{self.given!r} is not a version, tag or moment.",
            cause=f"The tags are {tags}." if tags else "The tenant has no tags.",
            remedy="Pass a version's number, a tag, or ISO text such as 2026-11-20T14:05:00Z.",
        )


def require_one_version(options: Mapping[str, Any]) -> None:
    """Refuse a call with more than one option that selects the version."""
    named = [name for name, value in options.items() if value is not None]
    if len(named) > 1:
        raise exclusive_options(named, "Each of them selects a version.")
