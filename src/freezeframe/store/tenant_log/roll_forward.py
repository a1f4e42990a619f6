"""Roll-forward of a committed version into its tables and plain copies."""

import functools
import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from freezeframe.clock import now_ms
from freezeframe.errors import (
    CorruptLog,
    ForeignCommit,
    FreezeframeError,
    InvalidName,
    StorageUnavailable,
    StreamNotFound,
    VersionNotFound,
)
from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog, Snapshot
from freezeframe.log.segments.commit import Committed, Conflict, commit_name, write_commit
from freezeframe.log.table.upkeep import Upkeep, after_commit
from freezeframe.storage import Storage
from freezeframe.storage.read_ahead import is_local, map_concurrently, run_concurrently
from freezeframe.store.blobs.blob_store import Blob, blob_chunks
from freezeframe.store.model.directory import long_commit_file, table_folder, tenant_of
from freezeframe.store.table.staging import SYNCS_MAX, staged_view
from freezeframe.store.tenant_log.entry import Change, Entry, StreamChange
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState

# A directory of ``update_snapshot`` is one tenant's, and scripts ``open()`` files such as
# ``tenant-config.json`` in it. Copies are derived from the newest blobs. Sealed files and tenants of a
# store have none.

_ROUNDS_MAX = 10
_logger = logging.getLogger(__name__)


def derive_copies(log: TenantLog, paths: Iterable[str]) -> None:
    """Update the copies of these files to the newest version; a failure affects only the copy."""
    if tenant_of(log.storage.root):
        return
    for path in paths:
        try:
            if log.storage.local_path(path) is None:
                return
            _derive(log, path)
        except FreezeframeError:
            _logger.warning(
                "The plain copy of %r could not be written; the file itself is kept", path, exc_info=True
            )


def _derive(log: TenantLog, path: str) -> None:
    storage = log.storage
    held = log.current_state().files.get(path)
    for _ in range(_ROUNDS_MAX):
        if held is None or held.sealed:
            storage.delete(path)
            folder = path.rpartition("/")[0]
            if folder:
                storage.prune(folder)
        else:
            storage.replace(path, blob_chunks(storage, Blob(held.blob, held.sha256, held.size)))
        # Check again after writing, so that a slow writer does not replace a newer copy.
        now = log.current_state().files.get(path)
        if now == held:
            return
        held = now


# Any writer may land any committed entry, any number of times, with the same result. A commit that is too
# long for the entry waits in a staged file until its table has it.

INLINE_BYTES_MAX = 256 * 1024
_CHECKPOINTS_AT_ONCE = 32


def shorten_entry(entry: Entry) -> tuple[Entry, dict[str, bytes]]:
    """Return the entry with its long commits replaced by their SHA-256, and these commits by file name."""
    long_commits: dict[str, bytes] = {}
    changes: list[Change] = []
    for change in entry.changes:
        if isinstance(change, StreamChange) and len(change.content) > INLINE_BYTES_MAX:
            content = change.content.encode()
            digest = hashlib.sha256(content).hexdigest()
            long_commits[digest] = content
            changes.append(replace(change, content="", sha256=digest))
        else:
            changes.append(change)
    return (replace(entry, changes=tuple(changes)), long_commits) if long_commits else (entry, {})


def keep_long_commits(storage: Storage, long_commits: Mapping[str, bytes]) -> None:
    """Write the long commits referenced by an entry, before the entry."""
    for digest, content in long_commits.items():
        try:
            storage.put_if_absent(long_commit_file(digest), content)
        except FileExistsError:
            continue  # the name is the content's own digest


def forget_long_commits(storage: Storage, long_commits: Mapping[str, bytes]) -> None:
    """Delete unreferenced long commits; never raises, since gc would delete them too."""
    for digest in long_commits:
        try:
            storage.delete(long_commit_file(digest))
        except FreezeframeError:
            _logger.warning("The staged commit %s was not deleted; gc will do it", digest, exc_info=True)


def change_content(log: TenantLog, change: StreamChange) -> str:
    """Return the table commit of a change."""
    if not change.sha256:
        return change.content
    name = long_commit_file(change.sha256)
    content = b""
    # A concurrent roll-forward deletes the staged file once the table has the commit.
    for path in (name, commit_name(table_folder(change.stream), change.table_version)):
        try:
            content = log.storage.read(path)
            break
        except FileNotFoundError:
            continue
    if hashlib.sha256(content).hexdigest() != change.sha256:
        raise CorruptLog(
            f"The staged commit {name!r} is gone or damaged.",
            cause=f"It holds version {change.table_version} of {str(change.stream)!r}, missing in its table.",
            remedy="Restore the file from a backup.",
            file=name,
        )
    return content.decode()


def is_rolled_forward(log: TenantLog, change: StreamChange) -> bool:
    """Return whether the table has the change's own commit at its version."""
    try:
        landed = log.storage.read(commit_name(table_folder(change.stream), change.table_version))
    except FileNotFoundError:
        return False
    if change.sha256:
        return hashlib.sha256(landed).hexdigest() == change.sha256
    return landed == change.content.encode()


def finish(log: TenantLog, entry: Entry, diverged: Collection[str] = (), *, is_new: bool = False) -> None:
    """Write the commits of a committed entry to their tables; idempotent, for any writer.

    Streams of ``diverged`` are skipped: they are about to be repaired. The commits of a new entry
    (``is_new``) are written without a check, because other writers rarely wrote them already.
    """

    def land_one(change: StreamChange) -> None:
        if is_new or not is_rolled_forward(log, change):
            storage, folder = log.storage, table_folder(change.stream)
            content = change_content(log, change).encode()
            outcome = write_commit(storage, folder, change.table_version, content)
            if isinstance(outcome, Conflict) and outcome.winner != content:
                raise foreign_commit(
                    change.stream, change.table_version, "It is not the commit of the tenant log."
                )
            if isinstance(outcome, Committed):
                DeltaLog.note_commit(storage, folder, change.table_version, content)
            if not isinstance(outcome, Committed | Conflict):
                raise StorageUnavailable(
                    f"It is not known whether version {change.table_version} of {str(change.stream)!r}"
                    " has landed.",
                    cause=outcome.reason,
                    remedy="Run the call again; the tenant log holds the commit.",
                )

    due = [change for change in entry.streams if change.lands and str(change.stream) not in diverged]
    if is_local(log.storage):  # a disk syncs many files as fast as one
        map_concurrently(land_one, due, SYNCS_MAX)
    else:
        run_concurrently(log.storage, *(functools.partial(land_one, change) for change in due))


def roll_forward(log: TenantLog, entry: Entry, version: int, checkpoint_interval: int) -> bool:
    """Roll a new entry forward and run its post-commit work; return whether all tables have it."""
    try:
        finish(log, entry, is_new=True)
    except StorageUnavailable:
        # The entry is committed: readers overlay it, and the next writer rolls it forward.
        _logger.warning(
            "Tenant version %s is committed, but not landed in its tables yet", version, exc_info=True
        )
        return False
    log.rolled_forward = entry.write_id
    # Deletions come first, because a folder may become a file.
    files = sorted(entry.files, key=lambda change: change.blob is not None)
    derive_copies(log, [change.path for change in files])
    # The table's checksum is left out, because the tenant log has its content. Tables that need no
    # checkpoint yet are not read: a job of many streams would wait for them.
    try:
        _write_checkpoints(log, entry, checkpoint_interval)
    except FreezeframeError:  # the entry is committed nevertheless
        _logger.warning("Checkpoints after tenant version %s were not written", version, exc_info=True)
    long_commits = {change.sha256: b"" for change in entry.streams if change.sha256}
    forget_long_commits(log.storage, long_commits)
    log.checkpoint_if_due(version)
    return True


def _write_checkpoints(log: TenantLog, entry: Entry, interval: int) -> None:
    due = _tables_due(log, entry, interval)
    if due:
        upkeep = Upkeep(1, write_checksums=False, tombstones_after=log.oldest_kept_ms())
        for table, version in due:
            after_commit(table, version, upkeep=upkeep)


def _tables_due(log: TenantLog, entry: Entry, interval: int) -> list[tuple[DeltaLog, int]]:
    """Return the tables that need a checkpoint after an entry, with their versions.

    Tables at a multiple of the interval; of many streams only some tables with an old checkpoint, so that
    no single job writes all of them.
    """
    if len(entry.streams) <= _CHECKPOINTS_AT_ONCE:
        return [
            (table_log(log, change.stream), change.table_version)
            for change in entry.streams
            if change.table_version and change.table_version % interval == 0
        ]
    found: list[tuple[int, DeltaLog, int]] = []
    for change in entry.streams:
        if change.table_version >= interval:
            table = table_log(log, change.stream)
            age = change.table_version - (table.current_snapshot.segment.checkpoint_version or 0)
            found += [(age, table, change.table_version)] if age >= interval else []
    oldest = sorted(found, key=itemgetter(0), reverse=True)
    count = max(_CHECKPOINTS_AT_ONCE, -(-len(entry.streams) // interval))
    return [(table, version) for _, table, version in oldest[:count]]


def foreign_commit(stream: StreamName, version: int, cause: str) -> ForeignCommit:
    """Return the error for a table that was changed outside of the tenant log."""
    return ForeignCommit(
        f"The table of stream {str(stream)!r} has a commit {version} that did not come through freezeframe.",
        cause=f"{cause} A writer that ignores Delta's table features made it, or the storage let two writers "
        "create the same name (test it by freezeframe doctor).",
        remedy="Reads continue at the tenant log's version. To write again, repair the stream: "
        f"tenant.stream({str(stream)!r}).repair().",
        stream=str(stream),
        version=version,
    )


# Readers never write. If the newest entry names a commit that its table lacks so far, the commit's bytes
# are laid over the table in memory.


def require_stream(state: TenantState, stream: StreamName) -> int:
    """Return the version of the stream's table at ``state``."""
    version = state.table_version(stream)
    if version == NO_VERSION:
        raise StreamNotFound(
            f"There is no stream {str(stream)!r} in version {state.version} of the tenant.",
            cause=f"The streams of that version are: {', '.join(sorted(state.streams)) or 'none'}.",
            remedy="Check the name and the version, or create the stream by a first update.",
            stream=str(stream),
        )
    return version


def table_log(log: TenantLog, stream: StreamName) -> DeltaLog:
    """Return the log of the stream's table, which is not updated."""
    return DeltaLog.for_table(log.storage, table_folder(stream))


def table_snapshot(
    log: TenantLog, state: TenantState, stream: StreamName, version: int | None = None
) -> Snapshot:
    """Return the stream's table at ``version``, by default at its version in ``state``."""
    newest = require_stream(state, stream)
    wanted = newest if version is None else version
    if not 0 <= wanted <= newest:
        raise VersionNotFound(
            f"The stream {str(stream)!r} has no version {wanted}.",
            cause=f"Its versions are 0 to {newest}.",
            remedy="Read one of these, or leave the version out for the newest.",
            stream=str(stream),
            version=wanted,
        )
    return _load(log, state, stream, wanted)


def base_snapshot(
    log: TenantLog, state: TenantState, stream: StreamName, since: int | None = None
) -> Snapshot:
    """Return the base of a write: the table at its head, which must agree with the tenant log.

    A cached snapshot from ``since`` (in ms) or later is used if it has that version.
    """
    table, snapshot = DeltaLog.for_table_with_snapshot(log.storage, table_folder(stream), since)
    expected = state.base_version(stream)
    if since is not None and snapshot.version < expected:
        snapshot = table.update()
    if snapshot.version > expected:
        raise foreign_commit(stream, snapshot.version, f"The tenant log knows versions up to {expected}.")
    if snapshot.version < expected:
        raise _missing(stream, expected, snapshot.version)
    return snapshot


def stream_base(log: TenantLog, state: TenantState, stream: StreamName, since: int | None = None) -> Snapshot:
    """Return the table at its version in ``state``, as the base of changes, also of a dropped stream.

    A cached snapshot from ``since`` (in ms) or later is used.
    """
    table, found = DeltaLog.for_table_with_snapshot(log.storage, table_folder(stream), since)
    expected = state.base_version(stream)
    # A table is also ahead if another writer committed after ``state``, so the log is read after the table.
    if found.version > expected and found.version > log.current_state().base_version(stream):
        raise foreign_commit(stream, found.version, f"The tenant log knows versions up to {expected}.")
    if expected < 0:
        return staged_view(table, expected, (), state.timestamp_ms)
    if found.version == expected and (
        _pending(state, stream, expected) is None
        or (state.head is not None and log.rolled_forward == state.head.write_id)
        or _is_commit_of(found, expected, state)
    ):
        return found
    return _load(log, state, stream, expected)


def present_tables(
    log: TenantLog,
    streams: Sequence[StreamName],
    diverged: Collection[str] = (),
    beside: Callable[[], None] | None = None,
) -> tuple[TenantState, list[Snapshot]]:
    """Return the newest state, rolled forward (except ``diverged`` streams), and some tables at their heads.

    ``beside`` runs concurrently; its errors are raised.
    """
    since: int | None = now_ms()
    read = functools.partial(DeltaLog.for_table_with_snapshot, log.storage)
    tables = [functools.partial(read, table_folder(stream)) for stream in streams]
    state, *_ = run_concurrently(
        log.storage, log.current_state, *tables, *(() if beside is None else (beside,))
    )
    while True:
        if state.head is not None and log.rolled_forward != state.head.write_id:
            finish(log, state.head, diverged)
            if not diverged:
                log.rolled_forward = state.head.write_id
        try:
            return state, [base_snapshot(log, state, stream, since) for stream in streams]
        except ForeignCommit:
            # A table is also ahead if another writer committed since the state was read.
            newer = log.current_state()
            if newer.version == state.version:
                raise
            state, since = newer, None


def require_no_case_twin(names: Collection[str], stream: StreamName) -> None:
    """Refuse a name that differs from an existing stream's only by case."""
    name, folded = str(stream), str(stream).casefold()
    if name in names:
        return
    for existing in names:
        if existing.casefold() == folded and existing != name:
            raise InvalidName(
                f"The stream name {name!r} differs from the stream {existing!r} only by case.",
                cause="On some file systems both would be one folder.",
                remedy=f"Use {existing!r}, or a name of its own.",
                name=name,
            )


def _load(log: TenantLog, state: TenantState, stream: StreamName, wanted: int) -> Snapshot:
    table, snapshot = DeltaLog.for_table_with_snapshot(log.storage, table_folder(stream))
    pending = _pending(state, stream, wanted)
    if snapshot.version >= wanted and (
        pending is None or _is_commit_of(snapshot, wanted, state) or is_rolled_forward(log, pending)
    ):
        return snapshot if snapshot.version == wanted else table.snapshot_at(version=wanted)
    if pending is None or snapshot.version < wanted - 1:
        raise _missing(stream, wanted, snapshot.version)
    return staged_view(table, wanted - 1, (change_content(log, pending),), state.timestamp_ms)


def _is_commit_of(snapshot: Snapshot, wanted: int, state: TenantState) -> bool:
    """Return whether the table's newest commit has the write id of the newest entry."""
    info = snapshot.commit_info
    if snapshot.version != wanted or info is None or state.head is None:
        return False
    return info.fields.get("writeId") == state.head.write_id


def _pending(state: TenantState, stream: StreamName, wanted: int) -> StreamChange | None:
    """Return the newest entry's change to version ``wanted``, which the table may lack."""
    change = None if state.head is None else state.head.stream_change(stream)
    return change if change is not None and change.table_version == wanted and change.lands else None


def _missing(stream: StreamName, wanted: int, found: int) -> CorruptLog:
    return CorruptLog(
        f"The table of stream {str(stream)!r} lacks version {wanted}.",
        cause=f"Its log ends at version {found}: files were deleted or restored from an older copy.",
        remedy="Restore the whole tenant directory from one backup.",
        stream=str(stream),
        version=wanted,
    )
