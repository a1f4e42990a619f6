"""Erasure of rows from all versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from freezeframe import progress
from freezeframe.errors import (
    BadInput,
    ConflictError,
    IdempotencyConflict,
    InvalidOption,
    MissingColumn,
    VersionNotFound,
)
from freezeframe.identifiers import StreamName
from freezeframe.log import DeltaLog, Snapshot
from freezeframe.log.format.action_columns import to_adds
from freezeframe.log.format.actions import Action, CommitInfo, Remove
from freezeframe.log.primitives.paths import parse_name
from freezeframe.log.scan import rows
from freezeframe.log.segments.commit_content import sign_content
from freezeframe.log.table.upkeep import keep_hint, write_checkpoint
from freezeframe.store.diff.delivery_state import delivery_states
from freezeframe.store.maintenance.garbage import sweep
from freezeframe.store.model.directory import (
    remove_job_roots,
    remove_waiting,
    table_folder,
)
from freezeframe.store.model.json_fields import JsonFields
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import Author
from freezeframe.store.schema.columns import arrow_columns, stored_key, written_columns
from freezeframe.store.schema.schema_evolution import PRINTED
from freezeframe.store.schema.type_compatibility import comparison_type
from freezeframe.store.table.commit import CommitIdentity, commit_info, file_action
from freezeframe.store.table.keys import KeyNumbers, keys_as
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant_log.entry import THIS_VERSION, TenantChange
from freezeframe.store.tenant_log.lease import live_leases
from freezeframe.store.tenant_log.log import TenantLog
from freezeframe.store.tenant_log.roll_forward import (
    present_tables,
    require_stream,
    stream_base,
    table_snapshot,
)
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.transaction import Transaction
from freezeframe.store.updates.update import ChangeResult


@dataclass(frozen=True, slots=True)
class Purged:
    """Numbers of deleted files and bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Purged) -> Purged:
        return Purged(self.files + other.files, self.bytes + other.bytes)


def purge(context: TenantContext) -> Purged:
    """Delete everything from before the newest erasure, job roots included.

    The entries of the tenant log are deleted last: while any is left, the purge is not finished.
    """
    state, _ = present_tables(context.log, ())
    if not state.erased or not _below(context.log, state.erased):
        return Purged()
    first = context.log.state_at(state.erased)
    remove_job_roots(context.storage, context.settings, before_ms=first.timestamp_ms)
    remove_waiting(context.storage, context.settings)
    context.log.write_checkpoint(first)
    done = Purged()
    for name, version in (*first.streams.items(), *first.dropped.items()):
        done += _purge_table(DeltaLog(context.storage, table_folder(StreamName(name))), version)
    erased, revoked = state.erased, set(state.revoked)
    swept = sweep(context, erased, revoked, durable=True, killed_ms=first.timestamp_ms)
    done += Purged(len(swept), sum(file.size for file in swept))
    done += _delete_below(context.log, state.erased)
    context.log.forget()
    return done


def _purge_table(log: DeltaLog, version: int) -> Purged:
    if not _below(log, version):
        return Purged()
    if log.log_segment_for_version(version_to_load=version).checkpoint_version != version:
        write_checkpoint(log.snapshot_at(version=version))
    done = _delete_below(log, version)
    DeltaLog.invalidate_cache(log.storage, log.table)
    return done


def _below(log: DeltaLog | TenantLog, version: int) -> list[tuple[str, int]]:
    """Return the files of a log for versions below ``version``, with their sizes."""
    found = [(status, parse_name(status.name)) for status in log.storage.list_from(log.folder)]
    return [(status.name, status.size) for status, meaning in found if meaning and meaning.version < version]


def _delete_below(log: DeltaLog | TenantLog, version: int) -> Purged:
    """Delete until no other is found: a writer that stopped may add the state of a commit while this goes."""
    deleted: dict[str, int] = {}
    # A storage that deletes nothing lists the same names again.
    while files := {name: size for name, size in _below(log, version) if name not in deleted}:
        keep_hint(log.storage, log.folder, files)
        for name in files:
            log.storage.delete(f"{log.folder}/{name}")
        deleted |= files
    return Purged(len(deleted), sum(deleted.values()))


# The stream's files are rewritten without the rows. One entry of kind ``erase`` ends the restorable
# history, and everything older is deleted: entries, table commits, checkpoints, data files, vectors,
# staged batches of open jobs. Finally every stream with columns of the key's names is searched for the
# keys. See ``docs/reference/tenant-log.md``, "Erasing".


@dataclass(frozen=True, slots=True)
class WhatIsLeft(JsonFields):
    """Result of the search after an erasure, in all streams with columns of the key's names.

    ``remaining`` counts rows of the stream that still have a key: zero. ``elsewhere`` names other streams
    with rows of the keys; an erasure of a stream does not change them. ``files`` names snapshot files beside
    the stream that another program wrote, or that could not be written anew: they may have rows of the keys.
    """

    streams_read: int
    rows_read: int
    remaining: int
    elsewhere: tuple[str, ...]
    files: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether neither the stream nor a snapshot file beside it can have a row with any of the keys."""
        return not (self.remaining or self.files)


@dataclass(frozen=True, slots=True)
class Erasure(JsonFields):
    """Result of an erasure: the number of rows, and the version at which history begins.

    ``files_deleted`` and ``bytes_deleted`` count everything from before. ``left`` was read at the end.
    ``deliveries`` has the rows that left the state of each delivery of the stream, by its name: its target
    was sent these rows, and may have them. Of a dry run ``committed`` is false, ``rows_erased`` are the rows
    that would go from the newest version, and ``left`` is what is there now.
    """

    stream: str
    keys: int
    rows_erased: int
    tenant_version: int
    files_deleted: int
    bytes_deleted: int
    left: WhatIsLeft
    deliveries: Mapping[str, int]
    committed: bool = True


def erase(
    context: TenantContext,
    name: StreamName,
    keys: Iterable[Any] | pa.Table,
    author: Author,
    rewrite_files: Callable[[Transaction], None],
    files_left: Callable[[], tuple[str, ...]],
    *,
    dry_run: bool = False,
) -> Erasure:
    """Erase the rows of some keys; see ``Tenant.erase``.

    ``rewrite_files`` writes the tenant's snapshot files of the stream anew, in the same commit.
    ``files_left`` returns which could not be, also of those beside the stream, which it writes unless this is
    a dry run.
    """
    state = context.log.current_state()
    require_stream(state, name)
    wanted = _key_table(stream_base(context.log, state, name), keys)
    if dry_run:
        now = replace(_read_left(context, name, wanted), files=files_left())
        found = dict.fromkeys(_deliveries_of(context, state, name), 0)
        return Erasure(
            str(name), len(wanted), now.remaining, state.version, 0, 0, now, found, committed=False
        )
    author = author.for_action(f"erase {len(wanted)} keys of {name}")
    with Transaction(context, author) as transaction:
        counts, delivered = dict[str, int](), tuple[str, ...]()
        if not transaction.is_repeated:
            counts, delivered = _stage(context, transaction, state, name, wanted, rewrite_files)
    version = transaction.done.tenant_version
    if transaction.done.repeated:
        # Its files may not all be deleted yet, if that is why it is sent again.
        counts, delivered = _committed_counts(context, version, name)
    gone = purge(context)
    left = replace(_read_left(context, name, wanted), files=files_left())
    return Erasure(
        stream=str(name),
        keys=len(wanted),
        rows_erased=counts.get(str(name), 0),
        tenant_version=version,
        files_deleted=gone.files,
        bytes_deleted=gone.bytes,
        left=left,
        deliveries=MappingProxyType({state: counts.get(state, 0) for state in delivered}),
    )


def _stage(
    context: TenantContext,
    transaction: Transaction,
    state: TenantState,
    name: StreamName,
    wanted: pa.Table,
    rewrite_files: Callable[[Transaction], None],
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Stage the erasure: the rows that go by stream, and the states of deliveries."""
    if not len(wanted):
        raise InvalidOption("No key is named.", remedy="Pass the keys of the rows to erase.")
    erased = transaction.apply(name, _Erasing(wanted))
    delivered = _erase_deliveries(context, transaction, name, wanted)
    rewrite_files(transaction)
    others = {lease.write_id for lease in live_leases(context.storage)} - {transaction.write_id}
    change = TenantChange(
        tags=MappingProxyType(dict.fromkeys(state.tags)),
        revoked=tuple(sorted(others)),
        floor=THIS_VERSION,
    )
    transaction.stage_tenant(change, "erase", lambda newest: _require_same_tags(state, newest))
    transaction.checks.append(lambda newest: _require_same_deliveries(context, name, delivered, newest))
    counts = {str(name): 0 if erased is None else erased.counts.deleted, **delivered}
    return counts, tuple(delivered)


def _committed_counts(
    context: TenantContext, version: int, name: StreamName
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the rows by stream that an erasure of before erased, and the states of deliveries."""
    try:
        changes = context.log.entry(version).streams
    except VersionNotFound as error:
        raise IdempotencyConflict(
            "These rows are erased already, and by how many is not kept any more.",
            cause="The request was sent again after a later erasure, which deleted what was noted of it.",
            remedy="Send a request with another Idempotency-Key: it tells what is left.",
        ) from error
    counts = {str(change.stream): change.counts.deleted for change in changes}
    return counts, tuple(found for found in counts if found != str(name))


def _erase_deliveries(
    context: TenantContext, transaction: Transaction, name: StreamName, wanted: pa.Table
) -> dict[str, int]:
    """Erase the keys from the state of each delivery of the stream; return the rows by its name."""
    found = dict.fromkeys(_deliveries_of(context, transaction.base, name), 0)
    for state in found:
        columns = arrow_columns(transaction.snapshot(StreamName(state)).delta_schema)
        if not _may_hold(columns, wanted):
            continue
        done = transaction.apply(StreamName(state), _Erasing(keys_as(wanted, columns)))
        found[state] = done.counts.deleted if done is not None else 0
    return found


def _deliveries_of(context: TenantContext, state: TenantState, name: StreamName) -> tuple[str, ...]:
    return delivery_states(state.streams, partial(table_snapshot, context.log, state), str(name))


def _require_same_deliveries(
    context: TenantContext, name: StreamName, erased: Mapping[str, int], newest: TenantState
) -> None:
    if not set(_deliveries_of(context, newest, name)) <= set(erased):
        raise ConflictError(
            "Rows of the stream were delivered for the first time while the erasure was prepared.",
            cause="What a delivery keeps has the keys of the rows.",
            remedy="Run the call again; nothing was erased.",
        )


def _read_left(context: TenantContext, name: StreamName, keys: pa.Table) -> WhatIsLeft:
    state = context.log.current_state()
    streams = rows_read = remaining = 0
    elsewhere: list[str] = []
    progress.begin("reading", "rows")
    for other in map(StreamName, sorted(state.streams)):
        snapshot = table_snapshot(context.log, state, other)
        columns = arrow_columns(snapshot.delta_schema)
        if not _may_hold(columns, keys):
            continue
        streams += 1
        wanted = KeyNumbers(keys_as(keys, columns))
        found = 0
        for batch in rows.read_batches(snapshot, keys.column_names):
            progress.advance(len(batch))
            rows_read += len(batch)
            found += len(wanted.found_in(pa.Table.from_batches([batch]))[0])
        if other == name:
            remaining = found
        elif found:
            elsewhere.append(str(other))
    return WhatIsLeft(streams, rows_read, remaining, tuple(elsewhere))


def _may_hold(columns: pa.Schema, keys: pa.Table) -> bool:
    """Return whether a stream has columns of the key's names, whose values can be compared with the keys."""
    names = keys.column_names
    return set(names) <= set(columns.names) and all(
        comparison_type(keys[name].type, columns.field(name).type) is not None for name in names
    )


@dataclass(frozen=True, slots=True)
class _Erasing:
    keys: pa.Table

    def __call__(self, snapshot: Snapshot, staging: StagingFolder, identity: CommitIdentity) -> ChangeResult:
        staging.prepare()
        schema = written_columns(snapshot.delta_schema)
        names = [field["name"] for field in schema["fields"]]
        erased = [0]
        paths = staging.write(self._remaining_rows(snapshot, names, erased), schema)
        files = staging.seal(paths, schema)
        actions = (*_removals(snapshot, identity), *map(file_action, files))
        info = CommitInfo(commit_info("ERASE", {}, identity))
        content = sign_content(info, actions).decode()
        return ChangeResult(content, Counts(deleted=erased[0]), tuple(paths))

    def _remaining_rows(self, snapshot: Snapshot, names: list[str], erased: list[int]) -> Iterator[pa.Table]:
        wanted = KeyNumbers(self.keys)
        progress.begin("rewriting", "rows")
        for batch in rows.read_batches(snapshot, names):
            progress.advance(len(batch))
            table = pa.Table.from_batches([batch])
            found, _ = wanted.found_in(table.select(self.keys.column_names))
            keeps = np.ones(len(table), np.bool_)
            keeps[found] = False
            kept = table.filter(pa.array(keeps))
            erased[0] += len(found)
            if len(kept):
                yield kept


def _removals(snapshot: Snapshot, identity: CommitIdentity) -> Iterator[Action]:
    for add in to_adds(snapshot.files):
        # Without statistics, because they contain minimum and maximum values.
        yield Remove(
            path=add.path,
            deletion_timestamp=identity.timestamp_ms,
            extended_file_metadata=True,
            partition_values=add.partition_values,
            size=add.size,
            deletion_vector=add.deletion_vector,
        )


def _key_table(base: Snapshot, keys: Iterable[Any] | pa.Table) -> pa.Table:
    names = stored_key(base.metadata) or ()
    if not names:
        raise InvalidOption(
            "The stream has no key.", remedy="Replace its content with override=True instead."
        )
    if isinstance(keys, pa.Table):
        MissingColumn.refuse(names, keys.column_names)
        columns = arrow_columns(base.delta_schema)
        found = keys_as(keys.select(list(names)), columns)
        # The text of a number may be another key's: 007 is no 7.
        given = {name: keys.schema.field(name).type for name in names}
        are_of_type = all(
            not pa.types.is_string(columns.field(name).type)
            or kind in (pa.string(), pa.null())
            or (PRINTED in (columns.field(name).metadata or {}) and pa.types.is_integer(kind))
            for name, kind in given.items()
        )
        if len(found) < len(keys) or not are_of_type:
            raise _wrong_type(found.schema)
        return found
    fields = [arrow_columns(base.delta_schema).field(name) for name in names]
    tuples = [_as_tuple(key, names) for key in keys]
    try:
        columns = [
            pa.array([_to_stored(key[index], field) for key in tuples], field.type)
            for index, field in enumerate(fields)
        ]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _wrong_type(fields, f" ({error})") from error
    return pa.table(columns, names=list(names))


def _wrong_type(fields: Iterable[pa.Field], why: str = "") -> BadInput:
    kinds = ", ".join(f"{field.name}: {field.type}" for field in fields)
    return BadInput(
        "A key does not have the type of the stream's key.",
        cause=f"The key is {kinds}{why}.",
        remedy="Pass keys of that type.",
    )


def _to_stored(value: Any, field: pa.Field) -> Any:
    """Return the value in the stream's type: a key that changed from integers to text holds them as text."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_whole and PRINTED in (field.metadata or {}) else value


def _as_tuple(key: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    if isinstance(key, dict) and set(key) == set(names):
        return tuple(key[name] for name in names)
    found = tuple(key) if isinstance(key, tuple | list) else (key,)
    if len(found) != len(names) or isinstance(key, dict) or any(part is None for part in found):
        raise BadInput(
            "A key cannot be one of the stream's.",
            cause=f"The stream's key is {list(names)}.",
            remedy="Pass one value for each of its columns: a tuple, or a dictionary by column.",
        )
    return found


def _require_same_tags(before: TenantState, newest: TenantState) -> None:
    if dict(before.tags) != dict(newest.tags):
        raise ConflictError(
            "A tag was set while the erasure was prepared.",
            cause="Tags keep old versions, which an erasure deletes.",
            remedy="Run the call again; nothing was erased.",
        )
