"""A stream's Delta table as the tenant log says it is, whether or not its newest commit has landed.

Readers never write. Where the tenant log's head names a commit that the table does not have yet
(its writer died, or is about to land it), the commit's bytes are laid over the table in memory.
"""

from __future__ import annotations

from freezeframe.errors import CorruptLog, ForeignCommit, StreamNotFound, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog, Snapshot
from freezeframe.log.commit import Committed, Conflict, commit_name, land
from freezeframe.storage import Storage
from freezeframe.storage.overlay import OverlayStorage
from freezeframe.store.entries import Entry, StreamChange
from freezeframe.store.layout import table_folder
from freezeframe.store.state import NO_VERSION, TenantState


def table_snapshot(
    storage: Storage, state: TenantState, stream: StreamName, version: int | None = None
) -> Snapshot:
    """The stream's table at ``version``, or at the one that ``state`` has.

    Raises:
        StreamNotFound: the tenant has no such stream at that state.
        VersionNotFound: the stream has no such version (yet, or any more).
        CorruptLog: the table lacks a version that the tenant log says was landed.
    """
    newest = state.table_version(stream)
    if newest == NO_VERSION:
        names = ", ".join(sorted(state.streams)) or "none"
        raise StreamNotFound(
            f"There is no stream {str(stream)!r}.",
            cause=f"The tenant's streams are: {names}.",
            remedy="Check the name, or make the stream by a first update.",
            stream=str(stream),
        )
    wanted = newest if version is None else version
    if not 0 <= wanted <= newest:
        raise VersionNotFound(
            f"The stream {str(stream)!r} has no version {wanted}.",
            cause=f"Its versions are 0 to {newest}.",
            remedy="Read one of these, or leave the version out for the newest.",
            stream=str(stream),
            version=wanted,
        )
    return _loaded(storage, state, stream, wanted)


def base_snapshot(storage: Storage, state: TenantState, stream: StreamName) -> Snapshot:
    """What a writer builds on: the table at its head, which must be what the tenant log says.

    Raises:
        ForeignCommit: somebody changed the table around the tenant log.
    """
    log = DeltaLog.for_table(storage, table_folder(stream))
    snapshot = log.update()
    expected = state.table_version(stream)
    if snapshot.version > expected:
        raise _foreign(stream, snapshot.version, f"The tenant log knows versions up to {expected}.")
    if snapshot.version < expected:
        raise _missing(stream, expected, snapshot.version)
    return snapshot


def finish(storage: Storage, entry: Entry) -> None:
    """Land in each table what a committed entry says; any writer may, any number of times.

    Raises:
        ForeignCommit: a table has another commit under the same version.
        StorageUnavailable: a table could not be written; the entry is committed all the same.
    """
    for change in entry.streams:
        _finish_change(storage, change)


def _finish_change(storage: Storage, change: StreamChange) -> None:
    folder = table_folder(change.stream)
    content = change.content.encode()
    try:
        landed = storage.read(commit_name(folder, change.table_version))
    except FileNotFoundError:
        outcome = land(storage, folder, change.table_version, content)
        if isinstance(outcome, Committed):
            return
        landed = outcome.winner if isinstance(outcome, Conflict) else content
    if landed != content:
        raise _foreign(change.stream, change.table_version, "It is not the commit of the tenant log.")


def _loaded(storage: Storage, state: TenantState, stream: StreamName, wanted: int) -> Snapshot:
    folder = table_folder(stream)
    log = DeltaLog.for_table(storage, folder)
    snapshot = log.update()
    if snapshot.version == wanted:
        return snapshot
    if snapshot.version > wanted:
        return log.snapshot_at(version=wanted)
    pending = {
        commit_name(folder, change.table_version): change.content.encode()
        for change in (state.head.streams if state.head else ())
        if change.stream == stream
    }
    if commit_name(folder, wanted) not in pending:
        raise _missing(stream, wanted, snapshot.version)
    overlaid = OverlayStorage(storage, pending, state.timestamp_ms)
    return DeltaLog(overlaid, folder).update()


def _foreign(stream: StreamName, version: int, cause: str) -> ForeignCommit:
    return ForeignCommit(
        f"The table of stream {str(stream)!r} has a commit {version} that did not come through freezeframe.",
        cause=f"{cause} A writer that ignores Delta's table features made it.",
        remedy="Reading goes on at the tenant log's version; move the foreign commit away to write again.",
        stream=str(stream),
        version=version,
    )


def _missing(stream: StreamName, wanted: int, found: int) -> CorruptLog:
    return CorruptLog(
        f"The table of stream {str(stream)!r} lacks version {wanted}.",
        cause=f"Its log ends at version {found}: files were deleted or restored from an older copy.",
        remedy="Restore the whole tenant directory from one backup.",
        stream=str(stream),
        version=wanted,
    )
