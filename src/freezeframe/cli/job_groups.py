"""Commands for many tenants: which are selected, and a group of jobs from its submission to its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from freezeframe.cli.options import (
    AllTenants,
    SomeTenants,
    TenantPrefix,
    TenantsFrom,
    expand,
    tenant_of_the_settings,
)
from freezeframe.cli.output import FAILED, Output
from freezeframe.cli.progress import progress
from freezeframe.errors import FreezeframeError, InputNotFound, InvalidOption, TenantNotFound, TryAgain
from freezeframe.progress import wait_for

if TYPE_CHECKING:
    from freezeframe.cli.location import Control
    from freezeframe.control.groups import JobGroup
    from freezeframe.control.submission import Submission
    from freezeframe.runs.request import RunRequest
    from freezeframe.service.group_effects import GroupEffects
    from freezeframe.store.snapshot_store import Store

_LOOK_SECONDS = 0.5
_UNSEEN_SECONDS = 5.0
_NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class Selection:
    """The tenants that a command's options select: by name, by a prefix, from a file, or all."""

    names: Sequence[str]
    prefix: str | None
    source: Path | None
    all_tenants: bool

    def __post_init__(self) -> None:
        by_id = self.all_tenants or self.prefix is not None
        if bool(self.names) + by_id + (self.source is not None) > 1:
            raise InvalidOption(
                "Tenants are selected in more than one way.",
                remedy="Give --tenant, --tenants-from, or --all-tenants with or without --prefix.",
            )

    @property
    def is_group(self) -> bool:
        """Whether several tenants may be selected."""
        return self.all_tenants or self.prefix is not None or self.source is not None or len(self.names) > 1

    def tenants(self, store: Store | None) -> list[str]:
        """Return the tenants of the store; without a store the one that is named, else the settings' own."""
        if store is None:
            return [*self.names] or [tenant_of_the_settings()]
        if self.all_tenants or self.prefix is not None:
            found = list(store.tenants(self.prefix or "", limit=len(store) + 1))
        else:
            found = list(dict.fromkeys(self.names if self.source is None else _lines(self.source)))
        if not found:
            raise InvalidOption(
                f"No tenant of the environment {store.environment} is selected.",
                remedy="See freezeframe tenant list.",
            )
        if missing := [item for item in found if store.folder(item) is None]:
            raise TenantNotFound(
                f"There is no tenant {', '.join(missing)} in the environment {store.environment}.",
                cause="Of several tenants each must be there. Nothing was changed.",
                remedy="Correct the ids, or make the tenants: freezeframe tenant create.",
                tenant=missing[0],
            )
        return found


_FLAGS = {
    "tenant": SomeTenants,
    "all_tenants": AllTenants,
    "prefix": TenantPrefix,
    "tenants_from": TenantsFrom,
}


def with_selection(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with flags that select tenants in place of its parameter ``selection``."""
    return expand(
        command,
        "selection",
        _FLAGS,
        lambda tenant, all_tenants, prefix, tenants_from: Selection(
            tenant or (), prefix, tenants_from, bool(all_tenants)
        ),
    )


def _lines(source: Path) -> list[str]:
    try:
        text = sys.stdin.read() if str(source) == "-" else source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputNotFound(
            f"The list of tenants {source} cannot be read.",
            cause=str(error),
            remedy="Name a text file with a tenant's id in each line, or - for stdin.",
            path=str(source),
        ) from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def warn_of_inputs(request: RunRequest, tenants: Sequence[str], day: date, output: Output) -> None:
    """Require an input for each tenant; name the tenants that have none yet."""
    from freezeframe.runs.request import input_folder

    if request.input_dir is None:
        return
    if "{tenant}" not in str(request.input_dir) and len(tenants) > 1:
        raise InvalidOption(
            f"{len(tenants):,} tenants would get the same input.",
            cause=f"--input is {request.input_dir}, without {{tenant}}.",
            remedy="Give a path that differs for each tenant: --input 'data/{tenant}/{newest}'.",
        )
    missing: dict[str, FreezeframeError] = {}
    for item in tenants:
        try:
            input_folder(request.input_dir, item, day)
        except FreezeframeError as error:
            missing[item] = error
    if len(missing) == len(tenants):
        raise missing[tenants[0]]
    if missing:
        output.warning(
            f"{len(missing):,} of {len(tenants):,} tenants have no input yet: "
            f"{', '.join(list(missing)[:_NAMED_MAX])}{', …' if len(missing) > _NAMED_MAX else '.'}",
            "Their jobs fail if it is not there when they start.",
        )


def submit_group(found: Control, submissions: Sequence[Submission], canary: int, output: Output) -> JobGroup:
    """Queue the jobs of a group, those that it has not yet, and return the group."""
    from freezeframe.control import groups

    new, group = groups.submit_group(found.database, submissions, canary), submissions[0].group
    output.line(f"Queued {new:,} jobs as the group {group}.")
    return groups.find_group(found.database, found.environment, group)


def follow_group(
    found: Control, group: JobGroup, timeout: float | None, output: Output, *, is_awaited: bool
) -> None:
    """Wait for the end of a group if that is awaited, else show it."""
    if is_awaited:
        end_group(found, group, timeout, output)
    else:
        output.line(f"Wait for their end: freezeframe job wait --group {group.group}")
        show_group(found, group, output)


class Patience:
    """The wait of a command for the end of jobs: its looks, one warning without a worker, and its limit."""

    def __init__(self, found: Control, timeout: float | None, output: Output) -> None:
        self._found, self._timeout, self._output = found, timeout, output
        self._begun = time.monotonic()
        self._is_warned = False

    def pause(self, subject: str, *, unseen: str, state: str = "", cause: str = "") -> None:
        """Wait until the next look at ``subject``.

        ``unseen`` is said once if it is still true after some seconds; empty: a worker was seen.
        """
        waited = time.monotonic() - self._begun
        if unseen and not self._is_warned and waited >= _UNSEEN_SECONDS:
            self._is_warned = True
            self._output.warning(
                f"{unseen} for {_UNSEEN_SECONDS:g} s.",
                f"Start one: freezeframe worker --root {self._found.settings.root}",
            )
        if self._timeout is not None and waited >= self._timeout:
            raise TryAgain(
                f"{subject} has not ended within {self._timeout:g} s{state}.",
                cause=cause,
                remedy="Wait longer, and see that a worker runs.",
                code="NOT_ENDED",
            )
        time.sleep(_LOOK_SECONDS)


def end_group(found: Control, group: JobGroup, timeout: float | None, output: Output) -> None:
    """Wait until all jobs of the group have ended, show what became of them, and exit."""
    from freezeframe.control.groups import find_group

    patience = Patience(found, timeout, output)
    with progress("", as_json=output.as_json):
        while not group.is_final:
            wait_for(group.text)
            unseen = "" if group.counts.get("running") else f"No worker has run a job of {group.group}"
            patience.pause(f"The group {group.group}", unseen=unseen, cause=group.text)
            group = find_group(found.database, group.environment, group.group)
    if not show_group(found, group, output):
        raise typer.Exit(FAILED)


def show_group(found: Control, group: JobGroup, output: Output) -> bool:
    """Print a group in one line, and those of its jobs that ended without success; return if there are none.

    A job that a check holds is one of them.
    """
    from freezeframe.cli.local_caller import LocalParts
    from freezeframe.cli.location import open_store
    from freezeframe.cli.operation_commands import json_of
    from freezeframe.control.groups import jobs_of_group
    from freezeframe.control.job import FAILURES, STATUSES
    from freezeframe.runs.held import failed_checks
    from freezeframe.runs.queue.attempt import first_line
    from freezeframe.service.group_effects import group_effects
    from freezeframe.service.overview import Overviews

    sums_up, without_success = group.is_dry_run and group.is_final, (*FAILURES, "cancelled")
    statuses = STATUSES if sums_up else (*without_success, "held")
    jobs = jobs_of_group(found.database, group.environment, group.group, None, statuses)
    failures = [
        {"tenant": job.tenant, "job_id": job.job_id, "status": job.status, "error": error}
        for job in jobs
        for error in [first_line(job.outcome) or "; ".join(failed_checks(job.outcome))]
        if job.status in without_success or error
    ]
    effects = None
    if sums_up:
        effects = group_effects(jobs, open_store(found.settings.root, group.environment).tenant, Overviews())
    if output.as_json:
        described = LocalParts(found).jobs.describe_group(group)
        fields = {**json_of(described), "failures": failures}
        output.record(fields if effects is None else {**fields, "effects": asdict(effects)})
        return not failures
    output.line(group.text)
    if effects is not None:
        _show_effects(effects, output)
    elif failures:
        output.table("", failures, columns=("tenant", "status", "error"))
    return not failures


def _show_effects(effects: GroupEffects, output: Output) -> None:
    """Print the sum of dry runs: failures by their reason, unusual changes of rows, changes of columns."""
    output.line(
        f"Nothing was committed. {effects.changing:,} of {effects.dry_runs:,} tenants would change: "
        f"{effects.inserted:,} rows inserted, {effects.updated:,} updated, {effects.deleted:,} deleted."
    )
    rows = [
        {"would fail": f.error, "tenants": f.tenants, "for example": _examples(f.named)}
        for f in effects.failures
    ]
    unusual = [
        {"unusual": u.kind, "stream": u.stream, "rows": u.rows, "of": u.rows_before, "tenant": u.tenant}
        for u in effects.unusual
    ]
    columns = [
        {
            "column": f"{c.stream}.{c.column}",
            "change": c.change,
            "before": c.before or "",
            "after": c.after or "",
            "tenants": c.tenants,
            "for example": _examples(c.named),
        }
        for c in effects.columns
    ]
    for table in filter(None, (rows, unusual, columns)):
        output.table("", table)


def _examples(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED_MAX])
