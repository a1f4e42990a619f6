"""Looks up a stream's Delta table at a state of the tenant log.

Readers never write. Where the tenant log's head names a commit that the table does not have yet
(its writer died, or is about to land it), the commit's bytes are laid over the table in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from freezeframe.clock import now_ms
from freezeframe.errors import CorruptLog, ForeignCommit, InvalidName, StreamNotFound, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog, Snapshot
from freezeframe.storage import Storage
from freezeframe.storage.concurrency import run_concurrently
from freezeframe.store.directory.paths import table_folder
from freezeframe.store.table.uncommitted_snapshot import staged_view
from freezeframe.store.tenant_log.entry import StreamChange
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import (
    change_content,
    finish,
    foreign_commit,
    is_rolled_forward,
)
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState


def require_stream(state: TenantState, stream: StreamName) -> int:
    """The version of the stream's table at ``state``.

    Raises:
        StreamNotFound: the tenant has no such stream at that state.
    """
    version = state.table_version(stream)
    if version == NO_VERSION:
        raise StreamNotFound(
            f"There is no stream {str(stream)!r} in version {state.version} of the tenant.",
            cause=f"The streams of that version are: {', '.join(sorted(state.streams)) or 'none'}.",
            remedy="Check the name and the version, or create the stream by a first update.",
            stream=str(stream),
        )
    return version


def table_snapshot(
    storage: Storage, state: TenantState, stream: StreamName, version: int | None = None
) -> Snapshot:
    """The stream's table at ``version``, or at the one that ``state`` has.

    Raises:
        StreamNotFound: the tenant has no such stream at that state.
        VersionNotFound: the stream has no such version (yet, or any more).
        CorruptLog: the table lacks a version that the tenant log says was landed.
    """
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
    return _load(storage, state, stream, wanted)


def base_snapshot(
    storage: Storage, state: TenantState, stream: StreamName, since: int | None = None
) -> Snapshot:
    """The base of a write: the table at its head, which must agree with the tenant log.

    A look at the table that began at or after ``since`` (in ms) is good enough, if it saw that far.

    Raises:
        ForeignCommit: somebody changed the table around the tenant log.
    """
    log = DeltaLog.for_table(storage, table_folder(stream))
    expected = state.base_version(stream)
    snapshot = log.update(check_if_updated_since=since)
    if since is not None and snapshot.version < expected:
        snapshot = log.update()
    if snapshot.version > expected:
        raise foreign_commit(stream, snapshot.version, f"The tenant log knows versions up to {expected}.")
    if snapshot.version < expected:
        raise _missing(stream, expected, snapshot.version)
    return snapshot


def stream_base(
    storage: Storage, log: TenantLog, state: TenantState, stream: StreamName, since: int | None = None
) -> Snapshot:
    """The table at its version in ``state``, as the base of changes; includes a dropped stream's table.

    A look at the table that began at or after ``since`` (in ms) is good enough.

    Raises:
        ForeignCommit: there is a table that the tenant log does not know, or knows only in parts.
    """
    folder = table_folder(stream)
    expected = state.base_version(stream)
    found = DeltaLog.for_table(storage, folder).update(check_if_updated_since=since)
    # A table is also ahead where another writer committed after ``state``; the log is asked after the table.
    if found.version > expected and found.version > log.current_state().base_version(stream):
        raise foreign_commit(stream, found.version, f"The tenant log knows versions up to {expected}.")
    if state.table_version(stream) < 0:
        return staged_view(storage, folder, expected, (), state.timestamp_ms)
    if found.version == expected and (
        _pending(state, stream, expected) is None
        or (state.head is not None and log.is_rolled_forward(state.head))
        or _is_commit_of(found, expected, state)
    ):
        return found
    return table_snapshot(storage, state, stream)


def present_tables(
    storage: Storage,
    log: TenantLog,
    streams: Sequence[StreamName],
    diverged: Collection[str] = (),
    beside: Callable[[], None] | None = None,
) -> tuple[TenantState, list[Snapshot]]:
    """The newest state, rolled forward (except ``diverged`` streams), and some tables at their heads.

    ``beside`` is another look, which is taken at the same time; its errors are raised.

    Raises:
        ForeignCommit: somebody changed one of the tables around the tenant log.
    """
    since: int | None = now_ms()
    tables = [_table_look(storage, stream) for stream in streams]
    state, *_ = run_concurrently(storage, log.current_state, *tables, *(() if beside is None else (beside,)))
    while True:
        if state.head is not None and not log.is_rolled_forward(state.head):
            finish(storage, state.head, diverged)
            if not diverged:
                log.note_rolled_forward(state.head)
        try:
            return state, [base_snapshot(storage, state, stream, since) for stream in streams]
        except ForeignCommit:
            # A table is also ahead where another writer committed and landed since the state was read.
            newer = log.current_state()
            if newer.version == state.version:
                raise
            state, since = newer, None


def require_no_case_twin(names: Collection[str], stream: StreamName) -> None:
    """Refuse a name that differs from an existing stream's only by case.

    Raises:
        InvalidName: on some file systems both would be one folder.
    """
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


def _table_look(storage: Storage, stream: StreamName) -> Callable[[], object]:
    return lambda: DeltaLog.for_table_with_snapshot(storage, table_folder(stream))


def _load(storage: Storage, state: TenantState, stream: StreamName, wanted: int) -> Snapshot:
    folder = table_folder(stream)
    log, snapshot = DeltaLog.for_table_with_snapshot(storage, folder)
    pending = _pending(state, stream, wanted)
    if snapshot.version >= wanted and (
        pending is None or _is_commit_of(snapshot, wanted, state) or is_rolled_forward(storage, pending)
    ):
        return snapshot if snapshot.version == wanted else log.snapshot_at(version=wanted)
    if pending is None or snapshot.version < wanted - 1:
        raise _missing(stream, wanted, snapshot.version)
    return staged_view(storage, folder, wanted - 1, (change_content(storage, pending),), state.timestamp_ms)


def _is_commit_of(snapshot: Snapshot, wanted: int, state: TenantState) -> bool:
    """Whether the table's newest commit has the write id of the newest entry, and so is rolled forward."""
    info = snapshot.commit_info
    if snapshot.version != wanted or info is None or state.head is None:
        return False
    return info.fields.get("writeId") == state.head.write_id


def _pending(state: TenantState, stream: StreamName, wanted: int) -> StreamChange | None:
    """The newest entry's change to version ``wanted``, which the table may lack."""
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
