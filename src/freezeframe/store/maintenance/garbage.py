"""Garbage collection: what is referenced, and what goes."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from freezeframe import progress
from freezeframe.clock import now_ms
from freezeframe.errors import ConflictError, CorruptLog, FreezeframeError, VersionNotFound
from freezeframe.identifiers import StreamName
from freezeframe.log import DeletionVector, DeltaLog, Snapshot
from freezeframe.log.format.actions import Add, parse_line
from freezeframe.log.primitives.paths import LOG_FOLDER, SIDECAR_FOLDER, Kind, parse_name
from freezeframe.log.scan.data_files import file_name, vector_name
from freezeframe.log.segments.checkpoint import read_checkpoint
from freezeframe.log.table.upkeep import DAY_MS, PROTECTED_BEFORE, keep_hint, orphaned_sidecars
from freezeframe.settings import load_settings
from freezeframe.storage import LocalStorage, Storage
from freezeframe.storage.base import FileStatus
from freezeframe.storage.local import is_temporary
from freezeframe.storage.read_ahead import explain_missing_files, run_concurrently
from freezeframe.store.blobs.kept_inputs import is_over
from freezeframe.store.maintenance.retention import policy_of
from freezeframe.store.model.directory import (
    BLOBS_FOLDER,
    INPUTS_FOLDER,
    OURS,
    STAGING_FOLDER,
    TENANT_LOG_FOLDER,
    StreamTable,
    TablePlace,
    blob_file,
    lease_file,
    long_commit_file,
    table_folder,
    table_name,
)
from freezeframe.store.model.json_fields import JsonFields
from freezeframe.store.model.update_options import NO_REQUEST, Author
from freezeframe.store.tenant_log.entry import StreamChange, TenantChange
from freezeframe.store.tenant_log.lease import live_leases
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import change_content, table_log
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.transaction import Transaction

_FEW_FILES = 1000


class TablesThen:
    """Streams' tables at older versions; tables of few files are cached."""

    def __init__(self, log: TenantLog) -> None:
        self.log = log
        self._read: dict[tuple[StreamName, int], Snapshot] = {}

    def at(self, stream: StreamName, version: int) -> Snapshot:
        """Return the table at a version, or at its newest version if that is lower."""
        known = self._read.get((stream, version))
        if known is not None:
            return known
        table = table_log(self.log, stream)
        snapshot = table.update()
        if snapshot.version > version:
            snapshot = table.snapshot_at(version=version)
            if snapshot.count <= _FEW_FILES:
                self._read[stream, version] = snapshot
        return snapshot


def referenced_files(tables: TablesThen, state: TenantState, floor: int) -> set[str]:
    """Return the data files, vectors and blobs of versions from ``floor`` on and of tagged versions."""
    log = tables.log
    if state.version == NO_VERSION:
        return set()
    named = set(_blobs_of(state))
    named |= _of_range(tables, state, max(floor, 0))
    for version in sorted({tag for tag in state.tags.values() if tag < floor}):
        then = log.state_at(version)
        named |= set(_blobs_of(then))
        for name, table_version in then.streams.items():
            named |= set(_live(tables.at(StreamName(name), table_version)))
    return named


def _of_range(tables: TablesThen, state: TenantState, floor: int) -> set[str]:
    log = tables.log
    first = log.state_at(floor)
    named = set(_blobs_of(first))
    for name, version in (*first.streams.items(), *first.dropped.items()):
        named |= set(_live(tables.at(StreamName(name), version)))
    for _, entry in log.entries_down(state, range(state.version, floor, -1)):
        named |= {blob_file(change.blob) for change in entry.files if change.blob is not None}
        for change in entry.streams:
            if change.is_external:
                # Its own commit does not cover earlier foreign commits.
                named |= set(_live(tables.at(change.stream, change.table_version)))
            named |= set(_added_files(log, change))
    return named


def _deleted(storage: Storage, name: str) -> VersionNotFound | None:
    """Return the error of a missing file that no version needs which its tenant keeps; None: one does.

    What is asked is what ``gc`` asks before it deletes a file.
    """
    path = storage.local_path(name)
    table = path and next((folder for folder in path.parents if table_name(folder.name)), None)
    if path and table:  # a table can be opened by its path, and Spark names a file by its own
        storage, name = LocalStorage(table.parent), str(path.relative_to(table.parent))
    try:
        log = TenantLog(storage, load_settings())
        state = log.current_state()
        if not state.floor or name in referenced_files(TablesThen(log), state, state.floor):
            return None
    except FreezeframeError:
        return None
    return VersionNotFound(
        f"The rows can no longer be read: the file {name!r} was deleted with its versions.",
        cause=f"Retention or an erasure ended them; versions from {state.floor} on are kept.",
        remedy="Read a version that the history lists, or begin the read anew.",
        file=name,
        kept_from=state.floor,
    )


explain_missing_files(_deleted)


def _added_files(log: TenantLog, change: StreamChange) -> Iterator[str]:
    table = StreamTable.of(log.storage, change.stream)
    # Not `splitlines`, which also splits at separators inside of column names.
    for line in change_content(log, change).split("\n") if change.lands else ():
        action = parse_line(line) if line else None
        if isinstance(action, Add):
            yield from _files_of(table, action.path, action.deletion_vector)


def _live(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.version < 0:
        return
    files = snapshot.file_list.select(["path", "deletion_vector"])
    for file in files.to_pylist():
        stored = file["deletion_vector"]
        yield from _files_of(snapshot, file["path"], stored and DeletionVector.from_json(stored))


def _files_of(table: TablePlace, path: str, vector: DeletionVector | None) -> Iterator[str]:
    """Yield the names in the tenant's storage of a data file and the file of its vector."""
    yield str(file_name(table.storage, table.table, path))
    if vector is not None and vector.storage_type == "u":
        yield f"{table.table}/{vector_name(vector)}"
    elif vector is not None and vector.storage_type == "p":
        yield str(file_name(table.storage, table.table, vector.path_or_inline_dv))


def _blobs_of(state: TenantState) -> Iterator[str]:
    return (blob_file(held.blob) for held in state.files.values())


# As in Delta's log cleanup, a log then begins at its newest checkpoint at or below the oldest kept
# version.


def old_log_files(
    everything: Iterable[FileStatus],
    tables: TablesThen,
    state: TenantState,
    floor: int,
) -> list[FileStatus]:
    """Return the log files of a tenant that no version from ``floor`` on needs.

    A tag keeps everything after it, and a job the entry with its receipt, as long as its id is kept. The
    oldest come first, so that an interrupted deletion leaves logs that begin later.
    """
    begin = state.kept_from(floor)
    folders: dict[str, list[FileStatus]] = {}
    for file in everything:
        folders.setdefault(file.name.rpartition("/")[0], []).append(file)
    entries = folders.get(TENANT_LOG_FOLDER, [])
    if begin < state.erased or any(version < state.erased for _, version, _ in _meanings(entries)):
        return []  # an interrupted erasure needs them to continue
    first = tables.log.snapshot_at(version=begin)
    needed, receipts = first.segment.checkpoint_version or 0, tables.log.oldest_receipt(state)
    old = [
        file
        for kind, version, file in _meanings(entries)
        if version < needed and (kind.is_checkpoint or version < receipts)
    ]
    for name, version in {**first.state.dropped, **first.state.streams}.items():
        if name in state.streams or name in state.dropped:
            old += _of_table(folders, tables, StreamName(name), version)
    return sorted(old, key=lambda file: file.name)


def _of_table(
    folders: Mapping[str, Sequence[FileStatus]], tables: TablesThen, stream: StreamName, version: int
) -> list[FileStatus]:
    folder = f"{table_folder(stream)}/{LOG_FOLDER}"
    meanings = list(_meanings(folders.get(folder, ())))
    newest = max(
        (number for kind, number, _ in meanings if kind.is_checkpoint and number <= version), default=0
    )
    if all(number >= newest for _, number, _ in meanings):
        return []
    snapshot = tables.at(stream, version)
    if snapshot.version < version:
        return []  # another table, adopted under the same name since
    checkpoint = snapshot.segment.checkpoint
    needed = 0 if checkpoint is None else checkpoint.version
    if int(snapshot.metadata.configuration.get(PROTECTED_BEFORE) or 0) > needed:
        return []
    try:
        if checkpoint is not None:  # the state beside a commit spared reading it
            read_checkpoint(tables.log.storage, folder, checkpoint)
    except CorruptLog:
        return []  # what is below takes its place
    old = [file for _, number, file in meanings if number < needed]
    sidecars = folders.get(f"{folder}/{SIDECAR_FOLDER}", ())
    if sidecars:
        going = {file.name for file in old}
        kept = [replace(file, name=_last(file.name)) for file in folders[folder] if file.name not in going]
        orphans = orphaned_sidecars(
            tables.log.storage,
            folder,
            kept,
            [replace(file, name=_last(file.name)) for file in sidecars],
            now_ms(),
        )
        old += [file for file in sidecars if _last(file.name) in orphans]
    return old


def _meanings(files: Iterable[FileStatus]) -> Iterator[tuple[Kind, int, FileStatus]]:
    """Yield kind and version of each log file."""
    for file in files:
        meaning = parse_name(_last(file.name))
        if meaning is not None:
            yield meaning.kind, meaning.version, file


def _last(name: str) -> str:
    return name.rpartition("/")[2]


# Collection has two steps, each decided by an entry of the log. First versions below a new floor are no
# longer listed, and transactions without a heartbeat can no longer commit. After a grace period longer
# than any read the files that only they reference are deleted. Age alone never decides.

_LOG = "_delta_log/"
_COMMITS = 32
_FILES_MAX = 50_000
_AT_ONCE = 128  # deletions side by side in a bucket
_logger = logging.getLogger(__name__)
_behind = ThreadPoolExecutor(1, "freezeframe-retention")


@dataclass(frozen=True, slots=True)
class Garbage(JsonFields):
    """The files that ``gc`` deleted, or with ``dry_run`` would delete after all grace periods.

    ``floor``: the oldest version that the policy keeps. ``revoked``: transactions that this call declared
    dead. ``names`` are the files, relative to the tenant's directory.
    """

    dry_run: bool
    files: int
    bytes: int
    floor: int
    versions_expired: int
    revoked: tuple[str, ...]
    names: tuple[str, ...] = field(compare=False)


def collect_garbage(context: TenantContext, *, dry_run: bool = False) -> Garbage:
    """Condemn expired versions and dead transactions, and delete the files of those condemned earlier."""
    state = context.log.current_state()
    if state.version < 0:
        dead = _dead(context, state, now_ms())  # held jobs of a tenant that has no version yet, for example
        if dead and not dry_run:
            _condemn(context, state, None, dead)
        # A run that failed before the first version has left its input.
        return _to_report(remove_old_inputs(context, dry_run=dry_run), 0, 0, dead, dry_run=dry_run)
    try:
        return _collect(context, state, dry_run=dry_run)
    except VersionNotFound as error:
        if context.log.current_state().kept_from() > state.kept_from():
            raise  # another gc or an erasure deleted the entries of versions that are no longer kept
        raise CorruptLog(
            "The tenant log lacks an entry that a kept version needs.",
            cause=str(error),
            remedy="Restore the log's files from a backup, then run gc again.",
        ) from error


def _collect(context: TenantContext, state: TenantState, *, dry_run: bool) -> Garbage:
    moment = now_ms()
    floor = policy_of(state).floor(context.log, state, moment)
    dead = _dead(context, state, moment)
    expired = max(0, floor - state.floor)
    if dry_run:
        found = _garbage(context, floor, {*state.revoked, *dead}, moment - DAY_MS)
        return _to_report(found, floor, expired, dead, dry_run=True)
    deleted = _sweep_condemned(context)
    is_due = floor > state.floor and _may_raise_floor(context, state)
    if is_due or dead:
        if not _condemn(context, state, floor if is_due else None, dead):
            expired, dead = 0, ()
        if not context.settings.gc_grace_seconds:
            deleted += _sweep_condemned(context)
    return _to_report(deleted, floor, expired, dead, dry_run=False)


def collect_after_commit(context: TenantContext, version: int) -> None:
    """Apply the retention policy after each ``_COMMITS``th version, at most once a grace period.

    A tenant of more than ``_FILES_MAX`` files is left to ``gc``, which bounds the work. No job is declared
    dead. Requests of the service do not wait: a thread handles the tenants in turn.
    """
    if version % _COMMITS or not context.settings.gc_automatic:
        return
    if context.request_context is NO_REQUEST:
        _apply_policy(context)
    else:
        _behind.submit(_apply_policy, replace(context, request_context=NO_REQUEST, checks=()))


def _apply_policy(context: TenantContext) -> None:
    """Apply the policy; log a failure, since the version is committed and a later version retries."""
    try:
        state = context.log.current_state()
        if not _may_raise_floor(context, state):
            return
        floor = policy_of(state).floor(context.log, state, now_ms())
        kept = f"{INPUTS_FOLDER}/"  # of jobs: many, and none that a version needs
        files = (file for file in context.storage.list_below("") if not file.name.startswith(kept))
        has_few_files = next(islice(files, _FILES_MAX, None), None) is None
        if floor > state.floor and has_few_files:
            _sweep_condemned(context)
            _condemn(context, state, floor, ())
    except FreezeframeError:
        _logger.warning("Versions that the retention lets go could not be deleted.", exc_info=True)


def _may_raise_floor(context: TenantContext, state: TenantState) -> bool:
    """Return whether the floor may move; if it moved at every call, its grace period would never end."""
    return state.floor_ms <= _grace_began_ms(context, state)


def _dead(context: TenantContext, state: TenantState, moment_ms: int) -> tuple[str, ...]:
    """Return transactions without a heartbeat that may still try to commit."""
    oldest = moment_ms - int(context.settings.lease_dead_seconds * 1000)
    leases = live_leases(context.storage)
    return tuple(
        sorted(
            lease.write_id
            for lease in leases
            if lease.heartbeat_ms <= oldest and lease.write_id not in state.revoked
        )
    )


def _condemn(context: TenantContext, state: TenantState, floor: int | None, dead: tuple[str, ...]) -> bool:
    """Raise the floor and revoke transactions; return false if another call was quicker."""

    def require_same_floor(newest: TenantState) -> None:
        if floor is not None and newest.floor_ms != state.floor_ms:
            raise ConflictError(
                "Another gc of the tenant raised the floor meanwhile.", remedy="Nothing needs to be done."
            )

    change = TenantChange(revoked=dead, floor=floor)
    try:
        with Transaction(context, Author(message="gc"), is_single=True) as transaction:
            transaction.stage_tenant(change, "revoke" if dead else "policy", require_same_floor)
    except ConflictError:
        return False
    return True


def _sweep_condemned(context: TenantContext) -> list[FileStatus]:
    """Delete the files condemned for longer than the grace period.

    A floor is raised only after the grace period of the floor before, which applies in the meantime.
    """
    state = context.log.current_state()
    oldest = _grace_began_ms(context, state)
    revoked = {write_id for write_id, since in state.revoked.items() if since <= oldest}
    if state.floor_ms > oldest:
        return sweep(context, state.floor_before, revoked, later=state.floor)
    return sweep(context, state.floor, revoked)


def _grace_began_ms(context: TenantContext, state: TenantState) -> int:
    """Return the time up to which what was condemned has had its grace period.

    Without a period that is all of the log, whose times always ascend and so run ahead of a clock that
    stands still or was put back.
    """
    grace_ms = int(context.settings.gc_grace_seconds * 1000)
    return now_ms() - grace_ms if grace_ms else max(now_ms(), state.timestamp_ms)


def sweep(
    context: TenantContext,
    floor: int,
    revoked: set[str],
    *,
    later: int | None = None,
    durable: bool = False,
    killed_ms: int | None = None,
) -> list[FileStatus]:
    """Delete at once the files needed by no version from ``floor`` on and no unrevoked transaction.

    Where versions before the floor ``later`` cannot be read any more, it begins there.
    Unless ``durable``, a power loss may restore files, which the next call deletes again. What was being
    written up to ``killed_ms`` (None: a day ago) is left by killed processes.
    """
    killed_ms = now_ms() - DAY_MS if killed_ms is None else killed_ms
    try:
        found = _garbage(context, floor, revoked, killed_ms)
    except (CorruptLog, VersionNotFound):
        if later is None:
            raise
        # A call with a shorter grace period swept the later floor.
        found = _garbage(context, later, revoked, killed_ms)
    going: dict[str, set[str]] = {}
    for kind, _, file in _meanings(found):
        if kind.is_checkpoint:
            going.setdefault(file.name.rpartition("/")[0], set()).add(_last(file.name))
    run_concurrently(context.storage, *(partial(keep_hint, context.storage, *item) for item in going.items()))
    progress.begin("deleting", "files", len(found))
    for first in range(0, len(found), _AT_ONCE):
        some = found[first : first + _AT_ONCE]
        deletes = (partial(context.storage.delete, file.name, durable=durable) for file in some)
        run_concurrently(context.storage, *deletes)
        progress.advance(len(some))
    folders = {file.name.rpartition("/")[0] for file in found} - {"", OURS}  # others make folders there, too
    for folder in sorted(folders, reverse=True):
        context.storage.prune(folder)
    for lease in live_leases(context.storage):
        if lease.write_id in revoked:
            changes = () if lease.commit is None else lease.commit.entry.streams
            for digest in {change.sha256 for change in changes} - {""}:  # another job's lease may spare them
                context.storage.delete(long_commit_file(digest))
            context.storage.delete(lease_file(lease.write_id))
    return found


def _garbage(context: TenantContext, floor: int, revoked: set[str], killed_ms: int) -> list[FileStatus]:
    """Return the files needed by no version from ``floor`` on, no tag and no unrevoked transaction.

    Files that were being written up to ``killed_ms`` are among them: a writer that lives fails without its
    file, and loses nothing.

    The order matters. Files are listed before the leases: the writer of a listed file held a lease then, and
    holds it still or has committed. The state is read last, so it includes commits from in between.
    """
    everything = list(context.storage.list_below(""))
    listed = _candidates(everything, context.log.current_state())
    alive = {lease.write_id for lease in live_leases(context.storage)} - revoked
    state = context.log.current_state()
    tables = TablesThen(context.log)
    named = referenced_files(tables, state, floor)
    named |= {long_commit_file(change.sha256) for change in (state.head.streams if state.head else ())}
    garbage = [file for file in listed if file.name not in named and not _is_staged_by(file.name, alive)]
    garbage = _not_live(context.log, state, garbage)
    inputs = [file for file in everything if _is_old_input(file.name, state.erased)]
    known = {file.name for file in (*garbage, *inputs)}
    unfinished = [
        file
        for file in everything
        if is_temporary(file.name) and file.modified_ms <= killed_ms and file.name not in known
    ]
    return garbage + inputs + unfinished + old_log_files(everything, tables, state, floor)


def remove_old_inputs(
    context: TenantContext, *, dry_run: bool = False, is_deleted: Callable[[], bool] = lambda: False
) -> list[FileStatus]:
    """Delete the kept inputs of jobs whose time is over, or that are from before an erasure; return them.

    Of a tenant that ``is_deleted``, asked only where something is kept, all of them go.
    """
    listed = context.storage.list_below(INPUTS_FOLDER)
    found = [replace(file, name=f"{INPUTS_FOLDER}/{file.name}") for file in listed]
    if found and not is_deleted():
        erased = context.log.current_state().erased
        found = [file for file in found if _is_old_input(file.name, erased)]
    for file in () if dry_run else found:
        context.storage.delete(file.name)
    for folder in set() if dry_run else {file.name.rpartition("/")[0] for file in found}:
        context.storage.prune(folder)
    return found


def _is_old_input(name: str, erased: int) -> bool:
    folder = f"{INPUTS_FOLDER}/"
    return name.startswith(folder) and is_over(name.removeprefix(folder), erased)


def _not_live(log: TenantLog, state: TenantState, garbage: list[FileStatus]) -> list[FileStatus]:
    """Return the garbage that no table names in its newest version, as its log, read anew, says.

    What the tenant log's entries do not explain is damage, and nothing is deleted. Another program's commit
    keeps its files until ``stream repair`` has decided about it.
    """
    going = {file.name for file in garbage}
    folders = {name.partition("/")[0] for name in going}
    for stream, version in (*state.streams.items(), *state.dropped.items()):
        folder = table_folder(StreamName(stream))
        if folder not in folders:
            continue
        newest = DeltaLog(log.storage, folder).current_snapshot
        live = going.intersection(_live(newest))
        if live and newest.version <= version:
            raise CorruptLog(
                f"Files that the stream {stream!r} needs would be deleted, such as {min(live)}.",
                cause="Its table's log names them, and the tenant's log does not.",
                remedy="Nothing was deleted. Run verify, and restore the damaged log from a backup.",
            )
        going -= live
    return [file for file in garbage if file.name in going]


def _candidates(everything: Iterable[FileStatus], state: TenantState) -> list[FileStatus]:
    """Return the candidates for garbage: data of tables in custody, blobs, staged commits."""
    logged = {file.name.partition("/")[0] for file in everything if f"/{_LOG}" in file.name}
    ours = {*state.streams, *state.dropped}
    return [file for file in everything if _is_candidate(file.name, ours, logged)]


def _is_candidate(name: str, ours: Iterable[str], logged: Iterable[str]) -> bool:
    folder, _, rest = name.partition("/")
    stream = table_name(folder)
    if stream is not None and rest:
        # A table outside of custody was released; a folder without a log is left by a failed first update.
        return not rest.startswith(_LOG) and (stream in ours or folder not in logged)
    return name.startswith(f"{BLOBS_FOLDER}/") or (
        name.startswith(f"{STAGING_FOLDER}/") and name.endswith(".commit")
    )


def _is_staged_by(name: str, alive: set[str]) -> bool:
    if name.startswith(f"{STAGING_FOLDER}/"):
        return bool(alive)  # a staged commit has its content's name, so any of them may be its writer
    owner = name.removeprefix(f"{BLOBS_FOLDER}/").partition("/")[0]
    if not name.startswith(f"{BLOBS_FOLDER}/"):
        owner = name.partition("/")[2].partition("/")[0].partition("-")[0]
    return owner in alive


def _to_report(
    found: list[FileStatus], floor: int, expired: int, dead: tuple[str, ...], *, dry_run: bool
) -> Garbage:
    names = tuple(sorted(file.name for file in found))
    return Garbage(dry_run, len(names), sum(file.size for file in found), floor, expired, dead, names)
