"""Commit of a transaction: rebase on the newest state, add the entry, roll it forward.

The commit point is one put-if-absent in the tenant log. Before it nothing is visible, after it everything
is, and the next writer finishes what a crash left half-way. Protocol: ``docs/reference/tenant-log.md``.
"""

from __future__ import annotations

import functools
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from freezeframe.clock import moment, now_ms, rfc3339
from freezeframe.errors import (
    ConflictError,
    JobRevoked,
    OutcomeUnknown,
    StorageUnavailable,
    TenantNotFound,
)
from freezeframe.identifiers import StreamName
from freezeframe.log.segments.commit import Committed, Unknown
from freezeframe.observation import note, observe
from freezeframe.progress import remark
from freezeframe.storage.read_ahead import run_concurrently
from freezeframe.store.table.commit import restamp
from freezeframe.store.table.staging import sync_sealed
from freezeframe.store.tenant_log.entry import Entry, Kind, StreamChange, TenantChange
from freezeframe.store.tenant_log.roll_forward import (
    forget_long_commits,
    keep_long_commits,
    present_tables,
    require_no_case_twin,
    roll_forward,
    shorten_entry,
)
from freezeframe.store.tenant_log.state import NO_VERSION, JobRecord, TenantState
from freezeframe.store.transaction.changes import Changes

_PAUSE_SECONDS_MAX = 0.2
_DAY_MS = 24 * 60 * 60 * 1000
_AHEAD_DAYS_MAX = 3
_PAUSE_DAYS_MAX = 366

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Metadata of an entry: kind, job, author, message."""

    kind: Kind = "commit"
    job_id: str | None = None
    author: str = ""
    message: str = ""


ReceiptOf = Callable[[int], dict[str, Any] | None]
"""What the entry of a version keeps as the job's receipt."""


def commit_changes(changes: Changes, metadata: CommitMetadata, receipt: ReceiptOf) -> int | JobRecord:
    """Make the changes visible as the tenant version that is returned.

    A job record instead of a version: another run of the same job was quicker, and nothing was committed.
    """
    context = changes.context
    tries = context.settings.commit_tries_max
    with observe("commit") as operation:
        make_durable(changes)  # in the loop, what a rebase wrote
        for number in range(tries):
            state = rebase_on_newest(changes, metadata.job_id)
            if isinstance(state, JobRecord):
                return state
            entry, long_commits = shorten_entry(entry_of(changes, state, metadata, receipt))
            make_durable(changes)
            keep_long_commits(context.storage, long_commits)
            changes.may_be_committed = True
            outcome = context.log.add(state, entry)
            if isinstance(outcome, Committed):
                note(version=outcome.version)
                _logger.info(
                    "Committed version %s of %s (streams: %s, files: %s)",
                    outcome.version,
                    context.tenant_id or context.storage.root,
                    len(entry.streams),
                    len(entry.files),
                )
                _finish(changes, entry, outcome.version)
                return outcome.version
            if isinstance(outcome, Unknown):
                raise OutcomeUnknown(
                    "It is not known whether the changes were committed.",
                    cause=outcome.reason,
                    remedy="Read again: either all changes are there, or none.",
                    write_id=changes.write_id,
                )
            changes.may_be_committed = False
            operation.retries += 1
            if not changes.is_held:  # who publishes the same job at once may have committed the same bytes
                forget_long_commits(context.storage, long_commits)
            time.sleep(random.uniform(0, min(_PAUSE_SECONDS_MAX, 0.002 * 2**number)))  # noqa: S311 - jitter
    raise ConflictError(
        f"The tenant kept changing: {tries} tries were not enough.",
        cause="Other jobs committed during each try.",
        remedy="Run the call again when they are done; nothing of it was written.",
    )


def make_durable(changes: Changes) -> None:
    """Make the changes' files durable before their entry has its time, for files of gigabytes take long."""
    try:
        sync_sealed(changes.staging_folders())
    except StorageUnavailable:  # they were deleted, where the tenant or the job is no more
        changes.context.guard.require_open()
        require_not_revoked(changes, changes.context.log.current_state())
        raise


def rebase_on_newest(changes: Changes, job_id: str | None) -> TenantState | JobRecord:
    """Rebase the changes on the newest state and return it, or the job's record if it is committed by now."""
    context = changes.context
    state, tables = present_tables(
        context.log,
        _touched_streams(changes),
        changes.taken_over.keys(),
        context.guard.require_open,
    )
    known = context.log.known_job(state, job_id)
    if known is not None:
        return known
    require_not_revoked(changes, state)
    check_commit(changes, state)  # before conflicts: a failed condition is reported as such
    for check in changes.checks:
        check(state)
    _require_files_untouched(changes, state)
    changes.files.require_paths(state)
    for name, table in zip(_touched_streams(changes), tables, strict=True):
        staged = changes.tables[str(name)]
        if str(name) not in state.streams:
            require_no_case_twin(state.streams, name)
        if table.version != staged.base.version:
            if staged.depends_on_rows_read:
                raise ConflictError(
                    f"The stream {str(name)!r} is at version {table.version}, "
                    f"not at {staged.base.version} any more.",
                    cause="This job read rows of it before it wrote to it, and another job committed first.",
                    remedy="Run the job again; nothing of it was written.",
                    stream=str(name),
                    version=table.version,
                )
            staged.replay(table)
            check_commit(changes, state)  # the changes may have other effects on the newer table
    return state


def check_commit(changes: Changes, state: TenantState) -> None:
    """Run the checks of the changes against a state that they would follow."""
    for check in changes.commit_checks:
        check(state, changes)


def require_not_revoked(changes: Changes, state: TenantState) -> None:
    """Refuse to go on with a job that was revoked."""
    if changes.write_id in state.revoked or changes.token in state.revoked_tokens:
        raise revoked_error(changes, state)


def revoked_error(changes: Changes, state: TenantState) -> JobRevoked:
    """Return the error of a job that was revoked before ``state``."""
    return JobRevoked(
        "This job was declared dead and can no longer be committed.",
        cause="An erasure of the tenant's rows ends every job that runs beside it."
        if state.erased != changes.base.erased
        else "Its heartbeat stopped for so long that gc, or another run of it, took over.",
        remedy="Run it again; nothing of it was written.",
        write_id=changes.write_id,
    )


def _touched_streams(changes: Changes) -> list[StreamName]:
    return [table.name for table in changes.tables.values() if table.changes]


def _require_files_untouched(changes: Changes, state: TenantState) -> None:
    for path in changes.files.changes:
        before, now = changes.base.files.get(path), state.files.get(path)
        may_follow = changes.is_single and path not in changes.files_read
        if before != now and not may_follow:
            raise ConflictError(
                f"The file {path!r} was changed by a concurrent commit.",
                cause="Another job committed it after this one began.",
                remedy="Run the job again; nothing of it was written.",
                path=path,
            )


def entry_of(changes: Changes, state: TenantState, metadata: CommitMetadata, receipt: ReceiptOf) -> Entry:
    """Return the entry that would commit the changes after a state."""
    changed = changes.changed_tables.values()
    bases = (table.base.timestamp + 1 for table in changed)
    now = now_ms()
    timestamp_ms = max(state.next_timestamp_ms(now), *bases, 0)  # a table's times always rise too
    _tell_odd_clock(state, now)
    taken_over = tuple(
        replace(change, content=restamp(change.content, timestamp_ms)) if change.content else change
        for change in changes.taken_over.values()
    )
    streams = tuple(
        StreamChange(table.name, table.version, table.content_at(timestamp_ms), table.counts)
        for table in changed
    )
    change = _tenant_change(changes, state)
    tenant = () if change is None else (change,)
    return Entry(
        changes.write_id,
        timestamp_ms,
        (*streams, *taken_over, *changes.files.changes.values(), *tenant),
        job_id=metadata.job_id,
        author=metadata.author,
        message=metadata.message,
        kind=metadata.kind,
        receipt=receipt(state.version + 1),
        request_id=changes.context.request_context.request_id,
        restored=changes.restored,
    )


def _tell_odd_clock(state: TenantState, now: int) -> None:
    """Say it where this machine's clock and the time of the newest version are far apart."""
    days = (now - state.timestamp_ms) // _DAY_MS
    if state.version != NO_VERSION and not -_AHEAD_DAYS_MAX <= days <= _PAUSE_DAYS_MAX:
        side = "after" if days > 0 else "before"
        newest = rfc3339(moment(state.timestamp_ms), "seconds")
        remark(
            f"This machine's clock is {abs(days)} days {side} the time of version {state.version}, "
            f"the tenant's newest: {newest}. If a clock is wrong, correct it: "
            "times of versions only rise, so that as_of finds later versions only from the latest of their "
            "times on. Numbers of versions are right."
        )


def _tenant_change(changes: Changes, state: TenantState) -> TenantChange | None:
    """Return the change of the tenant; the tenant's first entry sets the default retention if none is set."""
    kept, change = changes.context.settings.keep_versions, changes.tenant or TenantChange()
    if state.version != NO_VERSION or not kept or change.policy is not None:
        return changes.tenant
    return replace(change, policy=MappingProxyType({"keepVersions": kept, "keepDays": None}))


def _finish(changes: Changes, entry: Entry, version: int) -> None:
    """Roll the committed entry forward; only log a failure, since the job has succeeded."""
    try:
        context, lease = changes.context, changes.lease
        changes.files.close()
        landed = roll_forward(context.log, entry, version, context.settings.checkpoint_interval)
        # A deletion of the tenant that began after the last check may have missed files written since.
        # Files under the lease are now garbage, or referenced by the entry.
        discards: list[Callable[[], None]] = [
            functools.partial(table.discard, table.new_files() if table.content else ())
            for table in changes.tables.values()
        ]
        tidy = [lease.release if landed else lease.stop, *discards]
        run_concurrently(context.storage, *tidy, context.guard.require_open)
    except TenantNotFound:
        raise
    except Exception:  # whatever it is, the entry is committed: the next writer or gc does the rest
        _logger.warning("Tenant version %s is committed, but not tidied up", version, exc_info=True)
