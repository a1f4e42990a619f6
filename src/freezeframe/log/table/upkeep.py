"""Upkeep after commits: checkpoints, checksums, cleanup, verification."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from freezeframe.errors import CorruptLog, FreezeframeError, InvalidOption
from freezeframe.log.format.action_columns import (
    FILE_SCHEMA,
    TOMBSTONE_SCHEMA,
    action_keys,
    no_rows,
)
from freezeframe.log.format.actions import (
    Action,
    Add,
    CheckpointMetadata,
    Remove,
    Sidecar,
    to_json_line,
)
from freezeframe.log.format.protocol import has_reader_feature
from freezeframe.log.primitives.arrow import milliseconds, select_rows
from freezeframe.log.primitives.listing import complete_checkpoints, list_log, sort_listing
from freezeframe.log.primitives.options import report
from freezeframe.log.primitives.paths import (
    HINT_NAME,
    SIDECAR_FOLDER,
    Kind,
    checkpoint_name,
    checksum_name,
    in_folder,
    log_file,
    v2_checkpoint_name,
)
from freezeframe.log.segments.checkpoint import (
    read_checkpoint_actions,
    sidecar_name,
    write_parts,
)
from freezeframe.log.segments.checkpoint_columns import file_rows, schemas_for, small_rows, with_structs
from freezeframe.log.segments.hint import Checksum, Hint, hint_text, read_checksum, read_hint
from freezeframe.log.segments.replay import younger_than
from freezeframe.log.table.checksum_writer import (
    NotIncremental,
    checksum_after,
    checksum_of,
    verify_checksum,
    write_checksum,
)
from freezeframe.log.table.snapshot import Snapshot
from freezeframe.log.table.table_log import History, TableLog
from freezeframe.log.table.verification import Finding, verify_log, verify_snapshot
from freezeframe.storage import FileStatus, Storage

DAY_MS = 86_400_000
LOG_RETENTION = "delta.logRetentionDuration"
LOG_RETENTION_DEFAULT = "interval 30 days"
CLEANUP_ENABLED = "delta.enableExpiredLogCleanup"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """The log files to delete, in order, and the oldest retained version."""

    kept_from: int
    files: tuple[str, ...]


def plan_cleanup(snapshot: Snapshot, now_ms: int) -> CleanupPlan:
    """Plan the deletion of expired log files not needed by any retained version (section "Metadata Cleanup").

    Retained are the newest complete checkpoint older than the retention and everything after it;
    only older files below it are deleted. Days count whole, as in Delta. The plan is empty where the
    table disables cleanup or protects versions above that checkpoint.
    """
    configuration = snapshot.metadata.configuration
    nothing = CleanupPlan(0, ())
    if str(configuration.get(CLEANUP_ENABLED, "true")).lower() != "true" or not snapshot.exists:
        return nothing
    retention = milliseconds(configuration.get(LOG_RETENTION, LOG_RETENTION_DEFAULT))
    cutoff = (now_ms - retention) // DAY_MS * DAY_MS
    storage, folder = snapshot.storage, snapshot.segment.folder
    statuses = list(list_log(storage, folder))
    times = {
        time.version: time.timestamp
        for time in History(storage, folder).commit_times(snapshot, 0, snapshot.version)
    }
    checkpoints = complete_checkpoints(sort_listing(statuses).checkpoint_files)
    expired = [
        checkpoint
        for checkpoint in checkpoints
        if checkpoint.version in times and times[checkpoint.version] < cutoff
    ]
    base = expired[-1] if expired else None
    if base is None or int(configuration.get(PROTECTED_BEFORE) or 0) > base.version:
        return nothing
    names = [status.name for status in statuses if _is_expired(status, base.version, times, cutoff)]
    going = set(names)
    orphans = orphaned_sidecars(
        storage,
        folder,
        [status for status in statuses if status.name not in going],
        list(storage.list_from(f"{folder}/{SIDECAR_FOLDER}")),
        now_ms,
    )
    return CleanupPlan(base.version, (*names, *(f"{SIDECAR_FOLDER}/{name}" for name in orphans)))


def clean_up(snapshot: Snapshot, now_ms: int) -> CleanupPlan:
    """Delete the files of ``plan_cleanup``, oldest first, and return the plan.

    A crash leaves a valid log with part of its expired beginning deleted.
    """
    plan = plan_cleanup(snapshot, now_ms)
    folder = snapshot.segment.folder
    keep_hint(snapshot.storage, folder, plan.files)
    for name in plan.files:
        snapshot.storage.delete(f"{folder}/{name}")
    if plan.files:
        _log.info("Deleted %s expired files of %s below version %s", len(plan.files), folder, plan.kept_from)
    return plan


def _is_expired(status: FileStatus, below: int, times: dict[int, int], cutoff: int) -> bool:
    file = log_file(status)
    if file is None or file.version >= below:
        return False
    time = times.get(file.version, file.modified_ms) if file.kind is Kind.COMMIT else file.modified_ms
    return time < cutoff


def orphaned_sidecars(
    storage: Storage, folder: str, kept: list[FileStatus], sidecars: list[FileStatus], now_ms: int
) -> list[str]:
    """Return the names of sidecars older than a day that no checkpoint among the log's ``kept`` files names.

    A writer may still need younger ones. None, with a warning, where a checkpoint cannot be read.
    """
    old = [status.name for status in sidecars if status.modified_ms < now_ms - DAY_MS]
    if not old:
        return []
    needed: set[str] = set()
    for checkpoint in complete_checkpoints(sort_listing(kept).checkpoint_files):
        try:
            actions = read_checkpoint_actions(storage, folder, checkpoint)
        except CorruptLog as error:
            _log.warning("No sidecar is deleted, for a checkpoint cannot be read: %s", error)
            return []
        needed |= {sidecar_name(action) for action in actions if isinstance(action, Sidecar)}
    return [name for name in old if name not in needed]


# Writes a checkpoint of a version's state.
#
# A checkpoint is redundant: readers get the same result without it. It is created by put-if-absent;
# an existing file counts as success, because all checkpoints of a version are equivalent. The hint is
# written afterwards and only ever moves forward.

POLICY_KEY = "delta.checkpointPolicy"
SIDECAR_FILES_MAX = 50_000
PART_ACTIONS_MAX = 250_000
"""A classic checkpoint of more actions is written in parts: see decision 0021 for the figure."""

_ONE_GROUP_ROWS_MAX = 1000
_SIZE_UNKNOWN = -1  # Delta's own number for it; readers require one


def write_checkpoint(
    snapshot: Snapshot, *, part_actions_max: int = PART_ACTIONS_MAX, tombstones_after: int | None = None
) -> Hint:
    """Write a checkpoint of the snapshot's version, of the kind in the table's policy, and the hint.

    Expired tombstones, expired transactions and removed domains are left out, as in reads; so are
    tombstones of files that were removed up to ``tombstones_after`` (ms), where these files are deleted.
    A classic checkpoint of more than ``part_actions_max`` actions has several parts.
    """
    if snapshot.version < 0:
        raise InvalidOption(
            "The table has no version to checkpoint.",
            remedy="Commit a first version.",
        )
    folder = snapshot.segment.folder
    asks_v2 = snapshot.metadata.configuration.get(POLICY_KEY) == "v2"
    if asks_v2 and has_reader_feature(snapshot.protocol, "v2Checkpoint"):
        hint = _write_v2(snapshot, folder, tombstones_after)
    else:
        hint = _write_classic(snapshot, folder, part_actions_max, tombstones_after)
    write_hint(snapshot.storage, folder, hint)
    return hint


def write_hint(storage: Storage, folder: str, hint: Hint) -> bool:
    """Point ``_last_checkpoint`` to a checkpoint; False where it already points to a later one."""
    present, _ = read_hint(storage, folder, sleep=lambda _: None)
    if present is not None and present.version > hint.version:
        return False
    storage.replace(in_folder(folder, HINT_NAME), hint_text(hint).encode())
    return True


def keep_hint(storage: Storage, folder: str, going: Collection[str]) -> None:
    """Point the hint to the newest checkpoint of a log, before its files ``going`` are deleted.

    It is left where it names a checkpoint that stays. It names an older one where a writer died between a
    checkpoint and its hint.
    """
    hint, _ = read_hint(storage, folder, sleep=lambda _: None)
    if hint is None:
        return
    left = (status for status in list_log(storage, folder, hint.version) if status.name not in going)
    kept = complete_checkpoints(sort_listing(left).checkpoint_files)
    if kept and kept[0].version > hint.version:
        files = kept[-1].files
        parts = len(files) if files[0].kind is Kind.CHECKPOINT_PART else None
        write_hint(storage, folder, Hint(kept[-1].version, _SIZE_UNKNOWN, parts))


def _write_classic(
    snapshot: Snapshot, folder: str, part_actions_max: int, tombstones_after: int | None
) -> Hint:
    files, tombstones = _state(snapshot, tombstones_after)
    schema, _ = schemas_for(files)
    small = small_rows(_small_actions(snapshot), schema)
    total = files.num_rows + tombstones.num_rows

    def content(part: int, parts: int) -> bytes:
        begin, end = total * (part - 1) // parts, total * part // parts
        # Tombstones follow the files; a slice beyond the end of either is empty.
        adds = files.slice(begin, end - begin)
        at = max(0, begin - files.num_rows)
        removes = tombstones.slice(at, max(0, end - files.num_rows) - at)
        rows = [*file_rows(adds, "add", schema), *file_rows(removes, "remove", schema)]
        return parquet_bytes(schema, [small, *rows] if part == 1 else rows)

    rows = small.num_rows + total
    count = -(-total // part_actions_max)
    if count > 1:
        parts, size = write_parts(snapshot.storage, folder, snapshot.version, count, content)
    else:
        whole = content(1, 1)
        _create(snapshot.storage, in_folder(folder, checkpoint_name(snapshot.version)), whole)
        parts, size = None, len(whole)
    return Hint(snapshot.version, rows, parts, size or None, num_of_add_files=files.num_rows)


def _write_v2(snapshot: Snapshot, folder: str, tombstones_after: int | None) -> Hint:
    files, tombstones = _state(snapshot, tombstones_after)
    _, schema = schemas_for(files)
    sidecars = [
        _write_sidecar(snapshot.storage, folder, part)
        for part in [*_parts(files, "add", schema), *_parts(tombstones, "remove", schema)]
    ]
    lines: list[Action] = [
        CheckpointMetadata(snapshot.version),
        *_small_actions(snapshot),
        *sidecars,
    ]
    content = "".join(f"{to_json_line(action)}\n" for action in lines).encode()
    name = v2_checkpoint_name(snapshot.version, str(uuid.uuid4()), "json")
    _create(snapshot.storage, in_folder(folder, name), content)
    rows = len(lines) + files.num_rows + tombstones.num_rows
    size = len(content) + sum(sidecar.size_in_bytes for sidecar in sidecars)
    return Hint(snapshot.version, rows, size_in_bytes=size, num_of_add_files=files.num_rows)


def _small_actions(snapshot: Snapshot) -> list[Action]:
    """Return the actions of a checkpoint that are not files, without what has expired or was removed."""
    heads = (snapshot.protocol, snapshot.metadata)
    return [*heads, *snapshot.transactions.values(), *snapshot.domains.values()]


def _state(snapshot: Snapshot, tombstones_after: int | None) -> tuple[pa.Table, pa.Table]:
    tombstones = snapshot.tombstones
    if tombstones_after is not None:
        tombstones = select_rows(tombstones, younger_than(tombstones["deletion_timestamp"], tombstones_after))
    # dataChange is false in a checkpoint; readers of V2 checkpoints require it for tombstones.
    flags = pa.array([False] * tombstones.num_rows, pa.bool_())
    index = tombstones.schema.get_field_index("data_change")
    tombstones = tombstones.set_column(index, TOMBSTONE_SCHEMA.field("data_change"), flags)
    return with_structs(snapshot.files, snapshot.metadata, snapshot.time_zone), tombstones


def _parts(rows: pa.Table, kind: str, schema: pa.Schema) -> Iterable[pa.Table]:
    for at in range(0, rows.num_rows, SIDECAR_FILES_MAX):
        part = rows.slice(at, SIDECAR_FILES_MAX).combine_chunks()
        yield pa.concat_tables(list(file_rows(part, kind, schema)))


def _write_sidecar(storage: Storage, folder: str, rows: pa.Table) -> Sidecar:
    content = parquet_bytes(rows.schema, [rows])
    name = f"{uuid.uuid4()}.parquet"
    _create(storage, in_folder(folder, f"{SIDECAR_FOLDER}/{name}"), content)
    found = next(
        status for status in storage.list_from(in_folder(folder, SIDECAR_FOLDER), name) if status.name == name
    )
    return Sidecar(name, found.size, found.modified_ms)


def parquet_bytes(schema: pa.Schema, tables: Sequence[pa.Table]) -> bytes:
    """Return the tables as one Parquet file with page checksums, readable by every checkpoint reader."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="snappy", write_page_checksum=True) as writer:
        # A row group for each kind of action, so that readers skip the others; few are read at once.
        is_small = sum(table.num_rows for table in tables) <= _ONE_GROUP_ROWS_MAX
        for table in [pa.concat_tables(tables)] if is_small and tables else tables:
            writer.write_table(table)
    return bytes(sink.getvalue())


def _create(storage: Storage, name: str, content: bytes) -> None:
    try:
        storage.put_if_absent(name, content)
    except FileExistsError:
        _log.debug("The checkpoint %s is there already", name)


# Post-commit hooks: checksum and checkpoint. Neither can undo the commit.
#
# The writer of a version calls ``after_commit``. A failure costs later readers only time, so it is
# logged and not raised.

CHECKPOINT_INTERVAL_KEY = "delta.checkpointInterval"
CHECKPOINT_INTERVAL = 10

_Made = Checksum | NotIncremental


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What follows a commit: checksums, and a checkpoint each ``checkpoint_interval`` commits.

    ``checkpoint_interval`` None: the table's property, else 10. ``tombstones_after``: see
    ``write_checkpoint``.
    """

    checkpoint_interval: int | None = None
    write_checksums: bool = True
    tombstones_after: int | None = None

    def __post_init__(self) -> None:
        if self.checkpoint_interval is not None and self.checkpoint_interval < 1:
            raise InvalidOption("checkpoint_interval must be at least 1.", remedy="Leave it out for 10.")


def after_commit(
    log: TableLog, version: int, actions: Sequence[Action] | None = None, upkeep: Upkeep | None = None
) -> None:
    """Update ``log`` to the committed ``version``, and run the hooks due at it.

    The commit's ``actions`` allow an incremental checksum. Errors of this package are logged as
    warnings and never raised.
    """
    chosen = upkeep or Upkeep()
    try:
        after: _Made = NotIncremental("MISSING_OLD_CRC")
        if chosen.write_checksums and actions is not None and version > 0:
            after = _checksum_after(log, version, actions)
        snapshot = log.update()
        checksum = _write_checksum(log, snapshot, version, after) if chosen.write_checksums else None
        interval = chosen.checkpoint_interval
        if interval is None:
            text = snapshot.metadata.configuration.get(CHECKPOINT_INTERVAL_KEY, "")
            interval = int(text) if text.isdecimal() and int(text) > 0 else CHECKPOINT_INTERVAL
        if version > 0 and version % interval == 0:
            wanted = snapshot if snapshot.version == version else log.snapshot_at(version=version)
            if checksum is not None:
                # Both state and checksum are in memory here, so their comparison is cheap.
                verify_checksum(wanted, checksum)
            write_checkpoint(wanted, tombstones_after=chosen.tombstones_after)
            if chosen.tombstones_after is not None:  # nor are they kept in memory
                wanted.with_state(wanted.state.without_expired(chosen.tombstones_after))
    except (FreezeframeError, FileNotFoundError) as error:
        _log.warning("The upkeep after version %s of %s failed: %s", version, log.path, error)


def _checksum_after(log: TableLog, version: int, actions: Sequence[Action]) -> _Made:
    before = log.current_snapshot
    if before.version != version - 1:
        return NotIncremental("OLD_STATE_UNKNOWN")
    previous = _previous(log, version - 1)
    if previous is None:
        return NotIncremental("MISSING_OLD_CRC")
    keys = action_keys(action for action in actions if isinstance(action, Add | Remove))
    named = before.state.files.of_keys(keys) if len(keys) else no_rows(FILE_SCHEMA)
    return checksum_after(previous, actions, named)


def _write_checksum(log: TableLog, snapshot: Snapshot, version: int, found: _Made) -> Checksum | None:
    if isinstance(found, NotIncremental):
        if snapshot.version != version:
            return None  # other writers were first; their checksums suffice
        found = checksum_of(snapshot)
    write_checksum(log.storage, log.folder, version, found)
    return found


def _previous(log: TableLog, version: int) -> Checksum | None:
    name = in_folder(log.folder, checksum_name(version))
    if not any(status.name == checksum_name(version) for status in log.list_from(version)):
        return None
    return read_checksum(log.storage, name)


class Maintenance:
    """Maintenance of one table at its newest version; its rows never change."""

    def __init__(self, log: TableLog) -> None:
        self._log = log

    def checkpoint(self) -> Hint:
        """Write a checkpoint of the newest version, which spares readers the replay of earlier commits."""
        with report(self._log.options.listener, "deltaLog.checkpoint", self._log.path) as metrics:
            hint = write_checkpoint(self._log.update())
            metrics |= {"version": hint.version, "actions": hint.size, "bytes": hint.size_in_bytes}
            return hint

    def clean_up(self) -> CleanupPlan:
        """Delete expired log files (section "Metadata Cleanup") and return the plan."""
        return clean_up(self._log.update(), self._log.options.clock())

    def verify(self) -> list[Finding]:
        """Verify the log and the data of its newest version; no findings mean no damage."""
        findings = verify_log(self._log.storage, self._log.folder)
        return findings or verify_snapshot(self._log.update())
