"""Roll-forward: applies committed entries of the tenant log to the Delta tables.

Any writer may land any committed entry, any number of times, with the same result. A commit that
is too long for the entry waits in a staged file until its table has it.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from operator import itemgetter

from freezeframe.errors import CorruptLog, ForeignCommit, FreezeframeError, StorageUnavailable
from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog
from freezeframe.log.commits.commit import Committed, Conflict, commit_name, write_commit
from freezeframe.log.write.post_commit import Upkeep, after_commit
from freezeframe.storage import Storage
from freezeframe.storage.concurrency import run_concurrently
from freezeframe.store.directory.paths import long_commit_file, table_folder
from freezeframe.store.tenant_log.entry import Entry, StreamChange
from freezeframe.store.tenant_log.entry_actions import Change
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.plain_copies import derive_copies

INLINE_BYTES_MAX = 256 * 1024
_CHECKPOINTS_AT_ONCE = 32

_logger = logging.getLogger(__name__)


def shorten_entry(entry: Entry) -> tuple[Entry, dict[str, bytes]]:
    """The entry with its long commits replaced by their SHA-256, and these commits by file name."""
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


def change_content(storage: Storage, change: StreamChange) -> str:
    """The table commit of a change.

    Raises:
        CorruptLog: the staged file that holds it is gone or damaged.
    """
    if not change.sha256:
        return change.content
    name = long_commit_file(change.sha256)
    content = b""
    # A concurrent roll-forward deletes the staged file once the table has the commit.
    for place in (name, commit_name(table_folder(change.stream), change.table_version)):
        try:
            content = storage.read(place)
            break
        except FileNotFoundError:
            continue
    if hashlib.sha256(content).hexdigest() != change.sha256:
        raise CorruptLog(
            f"The staged commit {name!r} is gone or damaged.",
            cause=f"It holds version {change.table_version} of {str(change.stream)!r}, which has not landed.",
            remedy="Restore the file from a backup.",
            file=name,
        )
    return content.decode()


def is_rolled_forward(storage: Storage, change: StreamChange) -> bool:
    """Whether the table has the change's own commit at its version."""
    try:
        landed = storage.read(commit_name(table_folder(change.stream), change.table_version))
    except FileNotFoundError:
        return False
    if change.sha256:
        return hashlib.sha256(landed).hexdigest() == change.sha256
    return landed == change.content.encode()


def finish(storage: Storage, entry: Entry, diverged: Collection[str] = (), *, is_new: bool = False) -> None:
    """Write the commits of a committed entry to their tables; idempotent, for any writer.

    Streams of ``diverged`` are left out: somebody is about to repair them. An entry that ``is_new`` was
    committed just now, so that hardly anybody has landed it.

    Raises:
        ForeignCommit: a table has another commit under the same version.
        StorageUnavailable: a table could not be written; the entry is committed all the same.
    """

    def land_one(change: StreamChange) -> None:
        if is_new or not is_rolled_forward(storage, change):
            _land(storage, change)

    due = [change for change in entry.streams if change.lands and str(change.stream) not in diverged]
    run_concurrently(storage, *(functools.partial(land_one, change) for change in due))


def roll_forward(
    storage: Storage, log: TenantLog, entry: Entry, version: int, checkpoint_interval: int
) -> bool:
    """Roll a new entry forward and run its post-commit work; returns whether all tables have it."""
    try:
        finish(storage, entry, is_new=True)
    except StorageUnavailable:
        # The entry is committed: readers overlay it, and the next writer rolls it forward.
        _logger.warning(
            "Tenant version %s is committed, but not landed in its tables yet", version, exc_info=True
        )
        return False
    log.note_rolled_forward(entry)
    # Deletions come first, because a folder may become a file.
    files = sorted(entry.files, key=lambda change: change.blob is not None)
    derive_copies(storage, log, [change.path for change in files])
    # The table's own checksum is left out: the tenant log knows what it would tell. Tables that need no
    # checkpoint yet are left to whoever reads them next: a job of many streams is not kept waiting.
    try:
        _write_checkpoints(storage, log, entry, checkpoint_interval)
    except FreezeframeError:  # it is committed all the same
        _logger.warning("Checkpoints after tenant version %s were not written", version, exc_info=True)
    long_commits = {change.sha256: b"" for change in entry.streams if change.sha256}
    forget_long_commits(storage, long_commits)
    log.checkpoint_if_due(version)
    return True


def _write_checkpoints(storage: Storage, log: TenantLog, entry: Entry, interval: int) -> None:
    due = _tables_due(storage, entry, interval)
    if due:
        upkeep = Upkeep(1, write_checksums=False, tombstones_after=log.oldest_kept_ms())
        for table, version in due:
            after_commit(table, version, upkeep=upkeep)


def _tables_due(storage: Storage, entry: Entry, interval: int) -> list[tuple[DeltaLog, int]]:
    """The tables that need a checkpoint after an entry, with their versions.

    Those at a multiple of the interval; of many streams some of those whose last one is as old, so that it
    is not every tenth job of theirs that writes all of them.
    """
    if len(entry.streams) <= _CHECKPOINTS_AT_ONCE:
        return [
            (DeltaLog.for_table(storage, table_folder(change.stream)), change.table_version)
            for change in entry.streams
            if change.table_version and change.table_version % interval == 0
        ]
    found: list[tuple[int, DeltaLog, int]] = []
    for change in entry.streams:
        if change.table_version >= interval:
            table = DeltaLog.for_table(storage, table_folder(change.stream))
            age = change.table_version - (table.current_snapshot.segment.checkpoint_version or 0)
            found += [(age, table, change.table_version)] if age >= interval else []
    oldest = sorted(found, key=itemgetter(0), reverse=True)
    count = max(_CHECKPOINTS_AT_ONCE, -(-len(entry.streams) // interval))
    return [(table, version) for _, table, version in oldest[:count]]


def foreign_commit(stream: StreamName, version: int, cause: str) -> ForeignCommit:
    """The error for a table that was changed outside of the tenant log."""
    return ForeignCommit(
        f"The table of stream {str(stream)!r} has a commit {version} that did not come through freezeframe.",
        cause=f"{cause} A writer that ignores Delta's table features made it, or the storage let two writers "
        "create the same name (freezeframe doctor tells).",
        remedy="Reading goes on at the tenant log's version; repair the stream to write again: "
        f"tenant.stream({str(stream)!r}).repair().",
        stream=str(stream),
        version=version,
    )


def _land(storage: Storage, change: StreamChange) -> None:
    folder = table_folder(change.stream)
    content = change_content(storage, change).encode()
    outcome = write_commit(storage, folder, change.table_version, content)
    if isinstance(outcome, Conflict) and outcome.winner != content:
        raise foreign_commit(change.stream, change.table_version, "It is not the commit of the tenant log.")
    if isinstance(outcome, Committed):
        DeltaLog.note_commit(storage, folder, change.table_version, content)
    if not isinstance(outcome, Committed | Conflict):
        raise StorageUnavailable(
            f"It is not known whether version {change.table_version} of {str(change.stream)!r} has landed.",
            cause=outcome.reason,
            remedy="Run the call again; the tenant log holds the commit.",
        )
