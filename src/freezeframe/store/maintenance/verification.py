"""Verification of a tenant: entries and their chain, tables, data files, blobs.

Everything that a listed version needs is read, and nothing is repaired. Sealed files are compared as stored,
without their key, and garbage is not read.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from freezeframe import progress
from freezeframe.errors import InputNotFound, ReportDamage, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log.format.action_columns import to_adds
from freezeframe.log.format.actions import Add, parse_line
from freezeframe.log.primitives.listing import list_log, sort_listing
from freezeframe.log.primitives.paths import commit_name
from freezeframe.log.scan.data_files import damaged_file_error, require_digest
from freezeframe.log.table.verification import Finding, findings_of, verify_log, verify_snapshot
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.store.blobs.blob_store import Blob, blob_chunks
from freezeframe.store.model.directory import (
    TENANT_LOG_FOLDER,
    StreamTable,
    TablePlace,
    blob_file,
    require_known_format,
    table_folder,
)
from freezeframe.store.table.commit import PortableFile, table_files
from freezeframe.store.tenant_log.entry import Chain, Entry, StreamChange, parse_entry
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import (
    change_content,
    is_rolled_forward,
    stream_base,
    table_snapshot,
)
from freezeframe.store.tenant_log.state import TenantState, parse_checkpoint


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of a verification: ``findings`` name files below the tenant's directory.

    ``log_sha256`` is the hash of the newest entry. The entries are a chain that ends with it, and hold the
    hashes of all other files: two sound tenants with the same hash have the same history and content.
    """

    version: int
    log_sha256: str
    entries: int
    streams: int
    data_files: int
    blobs: int
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name, and whether the tenant is sound."""
        fields = asdict(self)
        return {"sound": self.is_sound, "tenant_version": fields.pop("version"), **fields}


def verify_tenant(storage: Storage, settings: Settings) -> Verification:
    """Read everything that the tenant's listed versions need, and report damage.

    If an entry is damaged, only the log is verified, because the log defines everything else.
    """
    entries, findings = _entries(storage)
    if not entries and not findings and not require_known_format(storage):
        raise InputNotFound(
            f"{storage.root} holds no tenant.",
            cause="There is no tenant log in it.",
            remedy="Name a tenant's directory by --dir, or a store and a tenant by --root and --tenant.",
        )
    newest = max(entries, default=-1)
    digest = entries[newest].sha256 if entries else ""
    opened = None if findings else _open(storage, settings, entries, findings)
    if opened is None:
        findings += _missing(entries, min(entries, default=0), {finding.file for finding in findings})
        return Verification(newest, digest, len(entries), 0, 0, 0, tuple(findings))
    log, first = opened
    state = log.current_state()
    expected = _Expected(log, state)
    for name in sorted(state.streams):
        findings += _table(log, state, StreamName(name), _own_commits(name, entries, first))
    findings += _findings_of_versions(expected.collect)
    findings += _old_files(storage, expected)
    findings += _blobs(storage, expected.blobs)
    return Verification(
        state.version,
        digest,
        len(entries),
        len(state.streams),
        len(expected.files) + expected.live,
        len(expected.blobs),
        tuple(dict.fromkeys(findings)),
    )


def _entries(storage: Storage) -> tuple[dict[int, Entry], list[Finding]]:
    """Return the entries by version, and findings on them, their hash chain and checkpoints."""
    listing = sort_listing(list_log(storage, TENANT_LOG_FOLDER))
    findings: list[Finding] = []
    entries: dict[int, Entry] = {}
    progress.begin("reading the log", "files", len(listing.commits) + len(listing.checkpoint_files))
    for file in listing.commits:
        name = f"{TENANT_LOG_FOLDER}/{file.name}"
        findings += findings_of(name, partial(_read_entry, storage, file.version, entries))
        progress.advance()
    chain = Chain()
    for version in sorted(entries):
        entry = entries[version]
        name = f"{TENANT_LOG_FOLDER}/{commit_name(version)}"
        if version and version - 1 not in entries:
            chain = Chain(None)
        findings += findings_of(
            name, partial(chain.after, version, entry.link, entry.sha256, "the tenant log")
        )
        chain = Chain(entry.sha256, is_begun=entry.link is not None)
    for file in listing.checkpoint_files:
        name = f"{TENANT_LOG_FOLDER}/{file.name}"
        findings += findings_of(name, partial(_check_checkpoint, storage, name, entries.get(file.version)))
        progress.advance()
    return entries, findings


def _open(
    storage: Storage, settings: Settings, entries: Mapping[int, Entry], findings: list[Finding]
) -> tuple[TenantLog, TenantState] | None:
    """Return the log and its state at the oldest kept version; None with findings if it is damaged."""
    logs: list[TenantLog] = []
    states: list[TenantState] = []

    def read() -> None:
        logs.append(TenantLog(storage, settings))
        # Below it entries may be missing, also with gaps after a power loss.
        first = logs[0].current_state().kept_from()
        findings.extend(_missing(entries, first, ()))
        if not findings:
            states.append(logs[0].state_at(first))

    failed = list(_findings_of_versions(read)) if entries else []
    if not findings:
        gaps = _missing(entries, min(entries, default=0), ()) if not logs else ()
        findings += list(gaps) or failed
    return None if findings or not states else (logs[0], states[0])


def _findings_of_versions(look: Callable[[], object]) -> Iterator[Finding]:
    """Yield the findings of reading kept versions; a missing version is damage."""
    try:
        yield from findings_of(TENANT_LOG_FOLDER, look)
    except VersionNotFound as error:
        yield Finding(TENANT_LOG_FOLDER, error.error_code, str(error))


def _missing(entries: Mapping[int, Entry], first: int, reported: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each missing entry from ``first`` on, unless already reported."""
    for version in range(first, max(entries, default=-1)):
        name = f"{TENANT_LOG_FOLDER}/{commit_name(version)}"
        if version not in entries and name not in reported:
            yield Finding(name, "FILE_NOT_FOUND", "An entry is gone.")


def _read_entry(storage: Storage, version: int, entries: dict[int, Entry]) -> None:
    name = f"{TENANT_LOG_FOLDER}/{commit_name(version)}"
    entries[version] = parse_entry(storage.read(name), name)


def _check_checkpoint(storage: Storage, name: str, entry: Entry | None) -> None:
    chain = parse_checkpoint(storage.read(name), name).chain
    if entry is not None and chain.head not in {None, entry.sha256}:
        raise damaged_file_error(name, "Its predecessor is not the previous entry.")


def _table(
    log: TenantLog, state: TenantState, name: StreamName, own: Iterable[StreamChange]
) -> Iterator[Finding]:
    """Yield findings on a stream's table: its log, its agreement with the tenant log, its newest rows."""
    folder = table_folder(name)
    found = list(findings_of(folder, partial(stream_base, log, state, name)))
    with suppress(InputNotFound):  # the check above decides whether it may be missing
        found += verify_log(log.storage, f"{folder}/_delta_log")
    for change in own:
        commit = f"{folder}/_delta_log/{commit_name(change.table_version)}"
        found += findings_of(commit, partial(_require_rolled_forward, log, change, commit))
    if not found:
        snapshot = table_snapshot(log, state, name)
        with suppress(ReportDamage):  # a finding of the next line
            progress.begin(f"reading {name}", "files", snapshot.count)
        found += verify_snapshot(snapshot)
    for item in found:
        yield item if item.file.startswith(folder) else replace(item, file=f"{folder}/{item.file}")


def _own_commits(name: str, entries: Mapping[int, Entry], first: TenantState) -> Iterable[StreamChange]:
    """Return the commits that the table must have: those of all kept entries but the newest.

    They begin after the newest adoption or repair, which accepted foreign commits.
    """
    changes = [
        change
        for version in sorted(entries)
        if version != max(entries)
        for change in entries[version].streams
        if str(change.stream) == name and change.table_version >= first.base_version(change.stream)
    ]
    begin = max((index for index, change in enumerate(changes) if change.is_external), default=-1)
    return (change for change in changes[begin + 1 :] if change.lands)


def _require_rolled_forward(log: TenantLog, change: StreamChange, commit: str) -> None:
    if not is_rolled_forward(log, change):
        raise damaged_file_error(commit, "It is not the commit that the tenant log names, or it is gone.")


class _Expected:
    """The files that listed versions need: table files beyond those of the newest version, all blobs."""

    def __init__(self, log: TenantLog, state: TenantState) -> None:
        self._log, self._state = log, state
        self.files: dict[str, PortableFile] = {}
        self.blobs: dict[str, Blob] = {}
        self.live = 0

    def collect(self) -> None:
        """Collect the files of the listed versions, from the oldest version and tagged versions on."""
        state = self._state
        for version in sorted({state.floor, *(tag for tag in state.tags.values() if tag < state.floor)}):
            self._add_state(self._log.state_at(version))
        versions = range(state.version, state.floor, -1)
        for _, entry in self._log.entries_down(state, versions):
            for changed in entry.files:
                if changed.blob is not None:
                    self.blobs[changed.blob] = Blob(changed.blob, changed.sha256, changed.size)
            for change in entry.streams:
                self._add_change(change)
        for name in state.streams:
            snapshot = table_snapshot(self._log, state, StreamName(name))
            adds = tuple(to_adds(snapshot.files))
            self.live += len(adds)
            for file in table_files(adds, snapshot):
                self.files.pop(f"{snapshot.table}/{file.path}", None)

    def _add_state(self, state: TenantState) -> None:
        for held in state.files.values():
            self.blobs[held.blob] = Blob(held.blob, held.sha256, held.size)
        for name in state.streams:
            snapshot = table_snapshot(self._log, state, StreamName(name))
            self._add_files(snapshot, to_adds(snapshot.files))

    def _add_files(self, table: TablePlace, adds: Iterable[Add]) -> None:
        for file in table_files(adds, table):
            self.files[f"{table.table}/{file.path}"] = file

    def _add_change(self, change: StreamChange) -> None:
        lines = change_content(self._log, change).split("\n") if change.lands else ()
        adds = (action for action in map(parse_line, filter(None, lines)) if isinstance(action, Add))
        self._add_files(StreamTable.of(self._log.storage, change.stream), adds)


def _old_files(storage: Storage, expected: _Expected) -> Iterator[Finding]:
    progress.begin("reading older versions", "files", len(expected.files))
    for name, file in sorted(expected.files.items()):
        yield from findings_of(name, partial(_check_file, storage, name, file))
        progress.advance()


def _check_file(storage: Storage, name: str, file: PortableFile) -> None:
    content = storage.read(name)
    if file.size is not None and file.size != len(content):
        raise damaged_file_error(name, f"It has {len(content)} bytes and should have {file.size}.")
    if file.sha256 is not None:
        require_digest(content, file.sha256, name)


def _blobs(storage: Storage, blobs: dict[str, Blob]) -> Iterator[Finding]:
    progress.begin("reading files", "files", len(blobs))
    for name, blob in sorted(blobs.items()):
        yield from findings_of(blob_file(name), partial(_check_blob, storage, blob))
        progress.advance()


def _check_blob(storage: Storage, blob: Blob) -> None:
    for _ in blob_chunks(storage, blob):
        pass
