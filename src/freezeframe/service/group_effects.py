"""What dry runs would change: the rows and files of one, and the sum of a group over its tenants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import pyarrow as pa
from pydantic import Field

from freezeframe.control.job import FAILURES, QueuedJob
from freezeframe.errors import FreezeframeError
from freezeframe.runs.dry_run_changes import kept_changes
from freezeframe.runs.queue.attempt import first_line
from freezeframe.runs.queue.job_log import log_file
from freezeframe.service.overview import Overviews, stream_changes, unusual_kinds
from freezeframe.service.rows.differences import ChangedRow, changed_rows
from freezeframe.settings import Settings
from freezeframe.store import Tenant
from freezeframe.store.diff.checks import FailedCheck
from freezeframe.store.diff.row_changes import RowChanges
from freezeframe.store.model.receipt import Counts
from freezeframe.store.table.written_rows import json_rows
from freezeframe.store.transaction.dry_run import DryRun, parse_dry_run

_NAMED_MAX = 20
_LISTED_MAX = 200
_Kind = TypeVar("_Kind")
_Named = Annotated[tuple[str, ...], Field(description="Some of them, at most 20.")]


@dataclass(frozen=True, slots=True)
class FailureReason:
    """Tenants for which the script would fail for one reason."""

    error: str
    tenants: int
    named: _Named


@dataclass(frozen=True, slots=True)
class UnusualEffect:
    """A deletion of a quarter of a stream's rows, or their doubling, unlike the tenant's versions so far."""

    tenant: str
    stream: str
    kind: Literal["deletion", "growth"]
    rows: Annotated[int, Field(description="Deleted or inserted.")]
    rows_before: int


@dataclass(frozen=True, slots=True)
class ColumnEffect:
    """A column that would appear, go, or get another type."""

    stream: str
    column: str
    change: Literal["added", "dropped", "retyped"]
    before: Annotated[str | None, Field(description="Its type so far; null: it is new.")]
    after: Annotated[str | None, Field(description="Its new type; null: it goes.")]
    tenants: int
    named: _Named


@dataclass(frozen=True, slots=True)
class GroupEffects:
    """The sum of the dry runs that have ended; at most 200 of each list, most tenants first."""

    dry_runs: int
    changing: Annotated[int, Field(description="Tenants in which something would change.")]
    inserted: int
    updated: int
    deleted: int
    failures: tuple[FailureReason, ...]
    unusual: tuple[UnusualEffect, ...]
    columns: tuple[ColumnEffect, ...]


@dataclass(frozen=True, slots=True)
class StreamChanges:
    """Rows of a stream that a dry run would change, at most the first 200 by key."""

    stream: str
    key: tuple[str, ...]
    rows: tuple[ChangedRow, ...]
    problem: Annotated[str, Field(description="Why no rows are shown; empty: they are.")]


@dataclass(frozen=True, slots=True)
class FailedCheckRows:
    """A check that keeps a job from its commit, and the first 200 rows that fail it."""

    stream: str
    check: str
    reason: Annotated[str, Field(description="How many rows fail it, or the numbers that it compared.")]
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class DryRunChanges:
    """Rows and texts that a dry run or a held job would change, as long as its folder is there."""

    streams: tuple[StreamChanges, ...]
    files: Annotated[
        dict[str, str | None],
        Field(description="Changed lines of each text file; null: it is sealed, no text, or large."),
    ]
    failed_checks: tuple[FailedCheckRows, ...] = ()


def dry_run_changes(job: QueuedJob, settings: Settings) -> DryRunChanges:
    """Return the rows and texts that a dry run would change; empty if it kept none on this machine."""
    found, log = dry_run_of(job), log_file(job, settings)
    if found is None or log is None:
        return DryRunChanges((), {})
    kept = kept_changes((log.folder / log.name).parent)
    streams = (
        StreamChanges(
            name,
            effect.key,
            _changed_rows(kept.rows.get(name), effect.key),
            kept.problems.get(name, ""),
        )
        for name, effect in found.streams.items()
        if name in kept.rows or name in kept.problems
    )
    failing = {(check.stream, check.check): table.slice(0, _LISTED_MAX) for check, table in kept.failing}
    checks = (
        FailedCheckRows(check.stream, check.check, check.reason, _json_rows(failing, check))
        for check in found.failed_checks
    )
    return DryRunChanges(tuple(streams), dict(kept.files), tuple(checks))


def _json_rows(failing: Mapping[tuple[str, str], pa.Table], check: FailedCheck) -> list[dict[str, Any]]:
    table = failing.get((check.stream, check.check))
    return [] if table is None else list(json_rows(table))


def _changed_rows(table: pa.Table | None, key: tuple[str, ...]) -> tuple[ChangedRow, ...]:
    return () if table is None else tuple(changed_rows(RowChanges(table.slice(0, _LISTED_MAX), key)))


def dry_run_of(job: QueuedJob) -> DryRun | None:
    """Return what a dry run that succeeded, or a held job, would change; None of any other job."""
    record = (job.outcome or {}).get("dry_run")
    return parse_dry_run(record) if job.status in {"succeeded", "held"} and record else None


def group_effects(
    jobs: Iterable[QueuedJob], tenant_of: Callable[[str], Tenant], overviews: Overviews
) -> GroupEffects:
    """Sum up the dry runs of jobs that have ended.

    ``tenant_of`` opens a tenant, to compare the changes of rows with those of its versions so far.
    """
    reasons, columns = defaultdict[str, list[str]](list), defaultdict[_Column, list[str]](list)
    total, ended, changing = Counts(), 0, 0
    unusual: list[UnusualEffect] = []
    for job in jobs:
        if job.status in FAILURES:
            reasons[first_line(job.outcome) or job.status.replace("_", " ")].append(job.tenant)
            ended += 1
        elif (found := dry_run_of(job)) is not None:
            ended, changing = ended + 1, changing + found.changes_anything
            total = sum((effect.counts for effect in found.streams.values()), total)
            for column in _columns(found):
                columns[column].append(job.tenant)
            unusual += _unusual(job.tenant, found, tenant_of, overviews)
    failures = (FailureReason(error, *_some(names)) for error, names in _most(reasons))
    return GroupEffects(
        ended,
        changing,
        total.inserted,
        total.updated,
        total.deleted,
        tuple(failures),
        tuple(sorted(unusual, key=lambda item: -item.rows)[:_LISTED_MAX]),
        tuple(ColumnEffect(*column, *_some(names)) for column, names in _most(columns)),
    )


_Column = tuple[str, str, Literal["added", "dropped", "retyped"], str | None, str | None]


def _columns(found: DryRun) -> Iterator[_Column]:
    for stream, effect in found.streams.items():
        changes = effect.columns
        yield from ((stream, name, "added", None, kind) for name, kind in changes.added.items())
        yield from ((stream, name, "dropped", kind, None) for name, kind in changes.dropped.items())
        yield from ((stream, name, "retyped", *kinds) for name, kinds in changes.retyped.items())


def _unusual(
    name: str, found: DryRun, tenant_of: Callable[[str], Tenant], overviews: Overviews
) -> Iterator[UnusualEffect]:
    changed = {stream: effect.counts for stream, effect in found.streams.items() if effect.fate == "changed"}
    if not any(next(unusual_kinds(counts, 1, ()), None) for counts in changed.values()):
        return  # too few rows in any case, so that the tenant need not be opened
    try:
        tenant = tenant_of(name)
        streams = overviews.of(tenant).streams
        recent = overviews.recent(tenant, tenant.context.log.current_state())
    except FreezeframeError:
        return  # deleted or damaged, which other pages say
    for stream in streams:
        if stream.rows and (counts := changed.get(stream.stream)):
            others = [entry.streams[stream.stream] for entry, _ in stream_changes(stream, recent)]
            for kind, count in unusual_kinds(counts, stream.rows, others):
                yield UnusualEffect(name, stream.stream, kind, count, stream.rows)


def _most(found: dict[_Kind, list[str]]) -> list[tuple[_Kind, list[str]]]:
    return sorted(found.items(), key=lambda item: -len(item[1]))[:_LISTED_MAX]


def _some(names: list[str]) -> tuple[int, tuple[str, ...]]:
    return len(names), tuple(names[:_NAMED_MAX])
