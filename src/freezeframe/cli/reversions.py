"""How a command takes a version back: what it shows before and after it, for one tenant or for several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.local_caller import LocalCaller, StoreCaller
from freezeframe.cli.operation_commands import json_of
from freezeframe.cli.output import FAILED, Output, change_of, write_json
from freezeframe.cli.progress import carry_out_shown, progress
from freezeframe.errors import FreezeframeError, NotFound, VersionNotFound
from freezeframe.progress import wait_for

if TYPE_CHECKING:
    from freezeframe.service.rows.reversions import Reversion, StreamReversion

_SHOWN_ROWS = 20

Only = Annotated[list[str] | None, typer.Option("--only", help="Only this stream or file; may be repeated.")]
Where = Annotated[
    str | None,
    typer.Option("--where", help="With one stream: only its rows for which this SQL condition is true."),
]
Revert = Callable[..., "Reversion"]


def revert_of(caller: LocalCaller, only: Sequence[str] | None, where: str | None, **version: Any) -> Revert:
    """Return what takes a version of the caller's tenant back, named as ``version`` or by its ``job_id``."""
    from freezeframe.service.operations.rows import revert_version

    return partial(revert_version.call, caller, only=list(only) if only else None, where=where, **version)


def tenants_of_job(root: str, environment: str | None, job_id: str) -> list[str]:
    """Return the tenants that have a job of that id in the queue."""
    from freezeframe.control.job import JobFilter

    with StoreCaller(root, environment) as caller:
        service, found, cursor = caller.service, list[str](), None
        wanted = JobFilter(environment=caller.control.environment, job_id=job_id)
        while True:
            page = service.queue.list(wanted, limit=1000, cursor=cursor)
            found += [job.tenant for job in page.jobs if service.stores.is_current(job)]
            cursor = page.next_cursor
            if cursor is None:
                break
    if not found:
        raise NotFound(
            f"The queue has no job {job_id}.",
            cause="It was not queued, or is no longer kept there.",
            remedy="Name the tenants by --tenant: their histories know the job.",
        )
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Reverting:
    """The options of a command that takes versions back."""

    message: str | None
    dry_run: bool
    yes: bool
    as_json: bool

    def one(self, revert: Revert, question: str) -> None:
        """Show what a reversion would do, and carry it out after a confirmation."""
        show = partial(show_reversion, Output(as_json=self.as_json))
        carry_out_shown(revert, show, question, label="Reverting", **asdict(self))

    def several(self, reverts: Mapping[str, Revert], question: str) -> None:
        """Do so for each tenant, with a commit for each; the exit code is 1 if one of them failed."""
        output = Output(as_json=self.as_json)
        call = partial(self._each, reverts)
        carry_out_shown(call, partial(_show_several, output), question, **asdict(self))

    def _each(self, reverts: Mapping[str, Revert], **how: Any) -> _Outcomes:
        done = []
        with progress("Reverting", as_json=self.as_json):
            for number, (tenant, revert) in enumerate(reverts.items(), 1):
                wait_for(f"{number:,} of {len(reverts):,} tenants, {tenant}")
                try:
                    done.append(_Outcome(tenant, revert(**how)))
                except FreezeframeError as error:
                    done.append(_Outcome(tenant, None, error))
            wait_for("")
        return _Outcomes(done)


@dataclass(frozen=True, slots=True)
class _Outcome:
    tenant: str
    found: Reversion | None
    error: FreezeframeError | None = None

    @property
    def is_empty(self) -> bool:
        return self.found is None or self.found.is_empty

    @property
    def has_failed(self) -> bool:
        """Whether it could not be done; a job that made no version is nothing to take back."""
        return self.error is not None and not (
            isinstance(self.error, VersionNotFound) and "job_id" in self.error.details
        )

    @property
    def line(self) -> dict[str, Any]:
        streams = [] if self.found is None else list(self.found.streams.values())
        result = "nothing to take back" if self.is_empty else "would go back"
        if self.has_failed:
            result = f"failed: {self.error}"
        elif self.found is None:
            result = "the job made no version"
        elif self.found.committed:
            result = f"reverted as version {self.found.tenant_version}"
        counts = [item.counts for item in streams]
        return {
            "tenant": self.tenant,
            "version": None if self.found is None else self.found.version,
            "inserted": sum(item.inserted for item in counts),
            "updated": sum(item.updated for item in counts),
            "deleted": sum(item.deleted for item in counts),
            "rows that stay": sum(item.kept_rows for item in streams),
            "streams that stay": sum(item.fate == "kept" and bool(item.reason) for item in streams),
            "files": 0 if self.found is None else len(self.found.files_written + self.found.files_deleted),
            "result": result,
        }


class _Outcomes(tuple[_Outcome, ...]):
    """What became of each tenant."""

    __slots__ = ()

    @property
    def is_empty(self) -> bool:
        return all(item.is_empty for item in self)


def _show_several(output: Output, outcomes: _Outcomes) -> None:
    """Print a line for each tenant, or JSON; exit with 1 if one of them failed."""
    if output.as_json:
        write_json(
            [
                {
                    "tenant": item.tenant,
                    "reversion": None if item.found is None else json_of(item.found),
                    "error": None if item.error is None else item.error.to_json(),
                }
                for item in outcomes
            ]
        )
    else:
        output.table("", [item.line for item in outcomes])
    if any(item.has_failed for item in outcomes):
        raise typer.Exit(FAILED)


def show_reversion(output: Output, found: Reversion) -> None:
    """Print what goes back, with its first cells before it is done, and what stays."""
    if output.as_json:
        output.record(json_of(found))
        return
    if found.streams:
        output.table("Streams", [_line(name, item) for name, item in found.streams.items()])
    for name, item in found.streams.items():
        rows = [] if found.committed else [_changed(row, item.key) for row in item.rows[:_SHOWN_ROWS]]
        if rows:
            output.table(f"{name}, from now to what its rows become", rows)
        kept = [
            {
                "key": ", ".join(map(str, row.key.values())),
                "column": column,
                **json_of(cell),
                "it stays: it is": row.reason,
            }
            for row in item.kept[:_SHOWN_ROWS]
            for column, cell in row.cells.items()
        ]
        if kept:
            output.table(f"{name}, what stays", kept)
    files = [
        *({"file": path, "fate": "written"} for path in found.files_written),
        *({"file": path, "fate": "deleted"} for path in found.files_deleted),
        *({"file": path, "fate": "stays: changed again since"} for path in found.files_kept),
    ]
    if files:
        output.table("Files", files)
    if found.committed:
        output.line(f"Reverted version {found.version} as version {found.tenant_version}.")
    elif found.is_empty:
        output.line(f"Nothing of version {found.version} is left that can go back.")


def _line(name: str, item: StreamReversion) -> dict[str, Any]:
    return {
        "stream": name,
        "fate": item.fate,
        "inserted": item.counts.inserted,
        "updated": item.counts.updated,
        "deleted": item.counts.deleted,
        "cells": item.cells,
        "rows that stay": item.kept_rows,
        "reason": item.reason or None,
    }


def _changed(row: Any, key: Sequence[str]) -> dict[str, Any]:
    """Return a row's line: its key, and its cells now and then."""
    values = row.after or row.before
    return {**{name: values[name] for name in key}, **change_of(row, key)}
