"""State of a tenant at a version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from freezeframe.clock import moment
from freezeframe.errors import CorruptLog
from freezeframe.identifiers import StreamName
from freezeframe.store.model.json_fields import FileEntry, FileRevision
from freezeframe.store.tenant_log.entry import (
    THIS_VERSION,
    Chain,
    Entry,
    FileChange,
    StreamChange,
    TenantChange,
    from_signed_line,
    to_signed_line,
)

NO_VERSION = -1


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file of the tenant: its blob and the entry that committed it."""

    blob: str
    sha256: str
    size: int
    sealed: bool
    version: int
    modified_ms: int

    def to_change(self, path: str) -> FileChange:
        """Return the change that restores the file under ``path``."""
        return FileChange(path, self.blob, self.sha256, self.size, self.sealed)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A committed job."""

    version: int
    timestamp_ms: int
    receipt: Mapping[str, Any] | None = None
    """Only if the entry of that version was erased; else the receipt is in the entry."""


@dataclass(frozen=True, slots=True)
class TenantState:
    """Everything at one tenant version: streams' table versions, files, jobs, tags, policy.

    ``head`` is the newest entry. Its commits may be missing in the tables; those of older entries are not,
    because a writer rolls pending commits forward before it adds an entry. A state from a checkpoint alone
    has no head: everything is rolled forward.

    ``dropped`` are the tables of dropped streams, by name, with the table's version. ``revoked`` transactions
    and runs of jobs by ``revoked_tokens`` may not commit; the values are the times of revocation. Versions
    below ``floor`` are not listed (unless tagged) since ``floor_ms``; their files are deleted after a grace
    period, and those below ``floor_before`` may be deleted already. Versions below ``erased`` are gone.
    The next entry continues ``chain``.
    """

    version: int = NO_VERSION
    timestamp_ms: int = 0
    streams: Mapping[str, int] = field(default_factory=_nothing)
    head: Entry | None = None
    dropped: Mapping[str, int] = field(default_factory=_nothing)
    files: Mapping[str, HeldFile] = field(default_factory=_nothing)
    jobs: Mapping[str, JobRecord] = field(default_factory=_nothing)
    tags: Mapping[str, int] = field(default_factory=_nothing)
    revoked: Mapping[str, int] = field(default_factory=_nothing)
    revoked_tokens: Mapping[str, int] = field(default_factory=_nothing)
    policy: Mapping[str, Any] = field(default_factory=_nothing)
    floor: int = 0
    floor_ms: int = 0
    floor_before: int = 0
    erased: int = 0
    chain: Chain = field(default_factory=Chain)

    def after(self, version: int, *entries: Entry) -> TenantState:
        """Return the state after ``entries``, which are ``version`` and the versions after it."""
        state = self
        for number, entry in enumerate(entries, version):
            state = state._after_one(number, entry)
        return state

    def _after_one(self, version: int, entry: Entry) -> TenantState:
        chain = self.chain.after(version, entry.link, entry.sha256, "the tenant log")
        fold = _Fold(self, version, entry.timestamp_ms)
        for change in entry.changes:
            if isinstance(change, StreamChange):
                fold.stream(change)
            elif isinstance(change, FileChange):
                fold.file(change)
            else:
                fold.tenant(change)
        jobs = self.jobs
        if entry.job_id is not None:
            record = JobRecord(version, entry.timestamp_ms)
            jobs = MappingProxyType({**jobs, entry.job_id: record})
        return replace(fold.done(), head=entry, jobs=jobs, chain=chain)

    def table_version(self, stream: StreamName) -> int:
        """Return the stream's table version, -1 if the tenant has no such stream."""
        return self.streams.get(str(stream), NO_VERSION)

    def base_version(self, stream: StreamName) -> int:
        """Return the table's version, also for a dropped stream; -1: no table."""
        name = str(stream)
        return self.streams.get(name, self.dropped.get(name, NO_VERSION))

    def next_timestamp_ms(self, now_ms: int) -> int:
        """Return the commit time of the next entry: now, but always after this state."""
        return max(now_ms, self.timestamp_ms + 1)

    def has_same_past(self, other: TenantState) -> bool:
        """Return whether no version was collected or erased between the two states."""
        return (self.floor, self.erased) == (other.floor, other.erased)

    def is_listed(self, version: int) -> bool:
        """Return whether a version can be read and restored: at or above the floor, or tagged."""
        return self.floor <= version <= self.version or version in self.tags.values()

    def kept_from(self, floor: int | None = None) -> int:
        """Return the lowest version that is listed (with another floor): below it entries may be gone."""
        return min((self.floor if floor is None else floor, *self.tags.values()))

    def to_checkpoint(self, oldest_job_ms: int = 0) -> bytes:
        """The state as a checkpoint's content, without jobs and tokens from before ``oldest_job_ms``."""
        record = {
            "version": self.version,
            "timestamp": self.timestamp_ms,
            "streams": dict(self.streams),
            "dropped": dict(self.dropped),
            "files": {path: _values(file) for path, file in self.files.items()},
            "jobs": {
                name: _values(job) for name, job in self.jobs.items() if job.timestamp_ms >= oldest_job_ms
            },
            "tags": dict(self.tags),
            "revoked": dict(self.revoked),
            "revokedTokens": {
                token: since for token, since in self.revoked_tokens.items() if since >= oldest_job_ms
            },
            "policy": dict(self.policy),
            "floor": [self.floor, self.floor_ms],
            "floorBefore": self.floor_before,
            "erased": self.erased,
            **self.chain.to_json(),
        }
        return to_signed_line(record)


class _Fold:
    """Mutable copy of the parts of a state that entries change, for folding."""

    def __init__(self, state: TenantState, version: int, timestamp_ms: int) -> None:
        self._state = replace(state, version=version, timestamp_ms=timestamp_ms)
        self._streams = dict(state.streams)
        self._dropped = dict(state.dropped)
        self._files: dict[str, HeldFile] | None = None

    def stream(self, change: StreamChange) -> None:
        name = str(change.stream)
        expected = self._streams.get(name, self._dropped.get(name, NO_VERSION)) + 1
        if change.table_version != expected and not change.is_external:
            raise CorruptLog(
                f"Entry {self._state.version} of the tenant log does not continue the one before it.",
                cause=f"It brings {name!r} to table version {change.table_version}, not {expected}.",
                remedy="Restore the tenant's directory from a backup.",
                version=self._state.version,
            )
        self._dropped.pop(name, None)
        self._streams[name] = change.table_version

    def file(self, change: FileChange) -> None:
        if self._files is None:
            self._files = dict(self._state.files)
        self._files.pop(change.path, None)
        if change.blob is not None:
            self._files[change.path] = HeldFile(
                change.blob,
                change.sha256,
                change.size,
                change.sealed,
                self._state.version,
                self._state.timestamp_ms,
            )

    def tenant(self, change: TenantChange) -> None:
        for name in change.released:
            self._streams.pop(name, None)
        for name in change.dropped:
            self._dropped[name] = self._streams.pop(name)
        state = self._state
        tags = {**state.tags, **change.tags}
        self._state = replace(
            state,
            tags=MappingProxyType({name: kept for name, kept in tags.items() if kept is not None}),
            policy=state.policy if change.policy is None else MappingProxyType(dict(change.policy)),
            revoked=_since(state.revoked, change.revoked, state.timestamp_ms),
            revoked_tokens=_since(state.revoked_tokens, change.revoked_tokens, state.timestamp_ms),
        )
        if change.floor is not None:
            begins_here = change.floor == THIS_VERSION
            self._state = replace(
                self._state,
                floor=state.version if begins_here else change.floor,
                floor_ms=state.timestamp_ms,
                floor_before=state.version if begins_here else state.floor,
                erased=state.version if begins_here else state.erased,
            )

    def done(self) -> TenantState:
        files = self._state.files if self._files is None else MappingProxyType(self._files)
        return replace(
            self._state,
            streams=MappingProxyType(self._streams),
            dropped=MappingProxyType(self._dropped),
            files=files,
        )


def parse_checkpoint(content: bytes, name: str) -> TenantState:
    """Return the state in a checkpoint file's bytes; ``name`` is for messages."""
    try:
        # Older checkpoints without a hash are accepted.
        record, _ = from_signed_line(content, requires_hash=False)
        floor, floor_ms = record.get("floor", (0, 0))
        # Older checkpoints have a hash of each job's input as well.
        return TenantState(
            version=int(record["version"]),
            timestamp_ms=int(record["timestamp"]),
            streams=_versions(record["streams"]),
            dropped=_versions(record.get("dropped", {})),
            files=MappingProxyType(
                {path: HeldFile(**file) for path, file in record.get("files", {}).items()}
            ),
            jobs=MappingProxyType(
                {
                    name: JobRecord(values["version"], values["timestamp_ms"], values.get("receipt"))
                    for name, values in record.get("jobs", {}).items()
                }
            ),
            tags=MappingProxyType(dict(record.get("tags", {}))),
            revoked=MappingProxyType(dict(record.get("revoked", {}))),
            revoked_tokens=MappingProxyType(dict(record.get("revokedTokens", {}))),
            policy=MappingProxyType(dict(record.get("policy", {}))),
            floor=int(floor),
            floor_ms=int(floor_ms),
            floor_before=int(record.get("floorBefore", record.get("erased", 0))),
            erased=int(record.get("erased", 0)),
            chain=Chain.of_record(record),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptLog(
            f"The tenant log's checkpoint {name!r} cannot be read.",
            cause=f"It is damaged or cut off ({error}).",
            remedy="Delete it: the state is then rebuilt from an older checkpoint or from the entries.",
            file=name,
        ) from error


def _since(known: Mapping[str, int], names: Collection[str], moment_ms: int) -> Mapping[str, int]:
    return MappingProxyType({**known, **dict.fromkeys(names, moment_ms)}) if names else known


def _versions(record: Mapping[str, Any]) -> Mapping[str, int]:
    return MappingProxyType({str(StreamName(name)): int(version) for name, version in record.items()})


def _values(value: HeldFile | JobRecord) -> dict[str, Any]:
    named = {name: getattr(value, name) for name in value.__dataclass_fields__}
    return {name: found for name, found in named.items() if found is not None}


def file_entry(path: str, held: HeldFile) -> FileEntry:
    """Return the metadata of a file."""
    return FileEntry(path, held.size, moment(held.modified_ms), held.sha256, held.sealed, held.version)


def file_revision(version: int, entry: Entry, change: FileChange) -> FileRevision:
    """Return the metadata of a file's revision."""
    return FileRevision(
        version=version,
        modified=moment(entry.timestamp_ms),
        deleted=change.blob is None,
        size=change.size,
        sha256=change.sha256,
        sealed=change.sealed,
        job_id=entry.job_id,
        author=entry.author,
        message=entry.message,
    )
