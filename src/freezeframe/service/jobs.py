"""Jobs and schedules of tenants: scripts of the service's folder and imports, their logs and notebooks."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field

from freezeframe.control.groups import JobGroup as StoredGroup
from freezeframe.control.groups import submit_group
from freezeframe.control.job import JobStatus, QueuedJob, script_name
from freezeframe.control.queue import JobQueue
from freezeframe.control.schedules import Schedules
from freezeframe.control.submission import Submission
from freezeframe.errors import FreezeframeError, InvalidOption, NotFound, UnreadableRequest
from freezeframe.identifiers import EnvironmentName, FilePath, StreamName, TenantId
from freezeframe.runs.held import Decision
from freezeframe.runs.queue.job_log import JobFile, log_file, notebook_file
from freezeframe.runs.replay.replays import find_replayed, replay_with
from freezeframe.runs.request import SCRIPT_SUFFIXES, RunRequest, Scalar, dated_input, parse_run_request
from freezeframe.runs.script_header import (
    BUILT_IN_IMPORT,
    BUILT_IN_REPLAY,
    REPLAY_OPTIONS,
    is_built_in,
    read_script_header,
    with_permitted_script,
    with_script_header,
)
from freezeframe.script.formats.columnar_files import require_arrow, require_parquet
from freezeframe.script.formats.input_parts import UnpackLimits
from freezeframe.script.types.known_types import CsvOptions
from freezeframe.service.staged_blobs import ImportContent, InputOwner, StagedBlobs
from freezeframe.settings import Settings
from freezeframe.store.model.update_options import UpdateOptions, require_possible
from freezeframe.store.tenant import Tenant
from freezeframe.store.transaction.conditions import Conditions

IMPORT_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "text/csv": "csv",
        "application/vnd.apache.parquet": "parquet",
        "application/x-ndjson": "jsonl",
        "application/jsonl": "jsonl",
        "application/vnd.apache.arrow.stream": "arrow",
        "application/vnd.apache.arrow.file": "arrow",
    }
)
_LOG_CHUNK_BYTES = 64 * 1024
_PATHS = ("log", "notebook", "job_root")
_SHOWN = (
    *("job_id", "environment", "tenant", "status", "priority", "attempts", "attempts_max"),
    *("cancel_requested", "created", "run_at", "started", "finished"),
)
_LOG_CURSOR = re.compile(r"([0-9]{1,6})-([0-9]{1,15})")


@dataclass(frozen=True, slots=True)
class TenantJob:
    """Identity of a job: environment, tenant, job id, and the tenant's folder in the store.

    The folder tells the tenant from others that had the id before; without it all of them are meant.
    """

    environment: EnvironmentName
    tenant: TenantId
    job_id: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class LogCursor:
    """Position in a job's log: the attempt, and a byte offset."""

    attempt: int = 0
    position: int = 0

    def __str__(self) -> str:
        return f"{self.attempt}-{self.position}"


def parse_log_cursor(text: str) -> LogCursor:
    """Parse the text of a position in a log."""
    match = _LOG_CURSOR.fullmatch(text)
    if match is None:
        raise UnreadableRequest(
            f"{text!r} is not a position in a log.",
            cause="Last-Event-ID is an attempt and a byte, as in 1-4711.",
            remedy="Send the id of the last event.",
        )
    return LogCursor(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class Job:
    """A job at this moment; `script` is relative to the service's folder, and empty for an import."""

    job_id: str
    environment: str
    tenant: str
    status: JobStatus
    script: str
    import_stream: str | None
    replays: Annotated[list[str], Field(description="The jobs that it replays, if it is a replay.")]
    dry_run: Annotated[bool, Field(description="It commits nothing; `outcome.dry_run` is what would change.")]
    parameters: dict[str, str | int | float | bool | None]
    submitted_by: str
    message: str
    schedule: str | None
    group: Annotated[str | None, Field(description="The group that it was submitted with.")]
    priority: int
    attempts: int
    attempts_max: int
    cancel_requested: bool
    is_repeatable: Annotated[
        bool, Field(description="Whether the service can run it again under another id.")
    ]
    worker: str | None
    created: datetime
    run_at: datetime | None
    started: datetime | None
    finished: datetime | None
    outcome: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class JobGroup:
    """A script's jobs for many tenants at this moment, which share the group's id."""

    group: str
    environment: str
    script: str
    dry_run: bool
    parameters: dict[str, str | int | float | bool | None]
    submitted_by: str
    message: str
    created: datetime
    jobs: Annotated[int, Field(description="One for each tenant.")]
    counts: Annotated[dict[JobStatus, int], Field(description="How many jobs have each status.")]


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What is to be run: a script of the service's own folder, with parameters and a limit of time."""

    script: str
    flow: str = ""
    parameters: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    timeout_seconds: float | None = None
    message: str = ""
    attempts_max: int = 3
    dry_run: bool = False
    hold: bool = False


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """Rows for a stream: their kind, the key, the update's options, how CSV is read, and conditions."""

    stream: str
    kind: str
    key: tuple[str, ...] = ()
    update: UpdateOptions = field(default_factory=UpdateOptions)
    message: str = ""
    csv: CsvOptions = field(default_factory=CsvOptions)
    conditions: Conditions = field(default_factory=Conditions)
    """Of the stream; the job's commit checks them."""

    def __post_init__(self) -> None:
        StreamName(self.stream)
        known = sorted(set(IMPORT_KINDS.values()))
        if self.kind not in known:
            raise InvalidOption(f"kind cannot be {self.kind!r}.", remedy=f"Use one of {', '.join(known)}.")
        if self.csv.is_given and self.kind != "csv":
            raise InvalidOption(
                "types, parse_dates and escape are for CSV.", remedy="Leave them out for other kinds."
            )
        require_possible(self.key or None, self.update)


class TenantJobs:
    """The jobs of one service's queue; the caller checks permissions.

    With ``shows_paths`` a job is described with the paths of this machine, for its own user.
    """

    def __init__(
        self,
        queue: JobQueue,
        schedules: Schedules,
        settings: Settings,
        root: str,
        blobs: StagedBlobs,
        *,
        shows_paths: bool = False,
    ) -> None:
        self._queue = queue
        self._schedules = schedules
        self._settings = settings
        self._root = root
        self._blobs = blobs
        self._shows_paths = shows_paths

    def submit(self, job: TenantJob, order: JobRequest, who: str) -> QueuedJob:
        """Put a run of a script into the queue."""
        return self.submit_request(self.run_request(job, order, who), order.attempts_max, job.folder)

    def submit_group(self, jobs: Sequence[TenantJob], order: JobRequest, who: str, canary: int = 0) -> None:
        """Put a run of a script for each tenant into the queue, all or none; the jobs have the same id.

        With ``canary`` the first so many jobs are held, and the others wait until these are published.
        """
        first = self.run_request(jobs[0], replace(order, hold=order.hold or bool(canary)), who)
        submissions = []
        for number, job in enumerate(jobs):
            request = replace(first, tenant=job.tenant, hold=order.hold or number < canary)
            submissions.append(self._submission(request, order.attempts_max, job.folder, group=job.job_id))
        submit_group(self._queue.database, submissions, canary)

    def dry_run_again(self, job: TenantJob, past: QueuedJob, who: str) -> QueuedJob:
        """Put a dry run of a job's request into the queue, under the id of ``job``."""
        request = parse_run_request(past.request)
        if not past.is_final or is_built_in(request.script):
            raise InvalidOption(
                f"The job {past.job_id!r} cannot be tried by a dry run.",
                cause="It is an import, whose file is deleted with it, or a replay of jobs."
                if past.is_final
                else f"It is {past.status}.",
                remedy="Send the file to import-preview; replay the jobs again with dry_run."
                if past.is_final
                else "Wait for its end.",
            )
        folder = dated_input(request.input_dir, past.created.date())
        again = replace(
            request,
            job_id=job.job_id,
            input_dir=folder,
            dry_run=True,
            hold=False,
            who=who,
            job_root=None,
            token="",
        )
        return self.submit_request(with_permitted_script(again, self._settings), 1, job.folder)

    def replay_request(
        self, job: TenantJob, order: JobRequest, jobs: Sequence[str], tenant: Tenant, who: str
    ) -> RunRequest:
        """Return the request of a replay of the tenant's jobs, which can be replayed now.

        Its script is one of the service's folder, or, for this machine's user, any file; empty: each
        job's own.
        """
        find = Path if self._shows_paths else self._script
        replay = replay_with(jobs, find(order.script) if order.script else None)
        found = find_replayed(tenant.context, replay, tenant.scope.state())
        replay = replace(replay, jobs=tuple(kept.job_id for kept, _ in found.jobs))
        request = self._request(
            job,
            who,
            script=BUILT_IN_REPLAY,
            parameters=replay.parameters,
            timeout_seconds=order.timeout_seconds,
            message=replay.message(order.message),
            dry_run=order.dry_run,
            hold=not order.dry_run,
        )
        with_permitted_script(request, self._settings)
        return request

    def require_place(self, job: TenantJob) -> None:
        """Refuse a job before anything is written for it; ``submit`` decides."""
        self._queue.require_place(job.environment, job.tenant, job.job_id, self.queued_max)

    def run_request(self, job: TenantJob, order: JobRequest, who: str) -> RunRequest:
        """Return the request of a run of a script."""
        request = self._request(
            job,
            who,
            script=self._script(order.script),
            flow=order.flow,
            parameters=order.parameters,
            timeout_seconds=order.timeout_seconds,
            message=order.message,
            dry_run=order.dry_run,
            hold=order.hold,
        )
        with_script_header(request)  # refuses what the header does not let run
        return request

    def submit_import(
        self,
        job: TenantJob,
        order: ImportRequest,
        content: ImportContent,
        who: str,
        require_room: Callable[[], None] = lambda: None,
    ) -> QueuedJob:
        """Keep the file until the job has run, and put its import into the queue; errors as of ``submit``.

        ``require_room`` is called once the file is kept; if it raises, the file is removed.
        """
        if order.kind == "arrow":
            require_arrow(content.content, order.stream, UnpackLimits.of(self._settings))
        elif order.kind == "parquet":
            require_parquet(content.content, order.stream, UnpackLimits.of(self._settings))
        name = f"rows.{order.kind}"
        # A hash of everything that defines the import, so that a repeated one is the same job.
        identity = hashlib.sha256(json.dumps([astuple(job), astuple(order), who, content.sha256]).encode())
        owner = InputOwner(job.folder, identity.hexdigest()[:32], job.environment, job.tenant, job.job_id)
        folder, is_new = self._blobs.keep_input(owner, name, content)
        try:
            require_room()
            options = {"stream": order.stream, "file": name, "key": list(order.key), **order.update}
            options |= asdict(order.csv) if order.csv.is_given else {}
            if order.conditions != Conditions():
                options["conditions"] = asdict(order.conditions)
            request = self._request(
                job,
                who,
                script=BUILT_IN_IMPORT,
                input_dir=folder,
                parameters={"IMPORT_OPTIONS": json.dumps(options)},
                message=order.message or f"import {order.stream}",
            )
            return self.submit_request(request, 3, job.folder)
        except BaseException:
            if is_new:
                shutil.rmtree(folder.parent, ignore_errors=True)
            raise

    @property
    def running_max(self) -> int:
        """How many jobs of one tenant run at once."""
        return self._settings.jobs_per_tenant_max

    @property
    def queued_max(self) -> int:
        """How many jobs of one tenant may wait; 0 is no limit."""
        return self._settings.service_tenant_jobs_queued_max

    def get(self, job: TenantJob) -> QueuedJob:
        """Return the job."""
        return self._queue.get(job.environment, job.tenant, job.job_id, job.folder)

    def cancel(self, job: TenantJob) -> QueuedJob:
        """Request the job's end; a job that has ended stays as it is."""
        return self._queue.cancel(job.environment, job.tenant, job.job_id, job.folder)

    def decision(self, who: str, request_id: str) -> Decision:
        """Return who decides about held jobs by a request."""
        return Decision(self._queue, self._settings, who, request_id)

    def schedules(self, environment: EnvironmentName, tenant: TenantId) -> tuple[str, ...]:
        """Return the names of the tenant's schedules."""
        found = self._schedules.list(environment=environment, tenant=tenant)
        return tuple(item.definition.name for item in found)

    def forget(self, environment: EnvironmentName, tenant: TenantId) -> None:
        """Remove a tenant's schedules and jobs from the queue; a running job is abandoned."""
        self._schedules.forget(environment, tenant)  # first, because due schedules create jobs
        self._queue.forget(environment, tenant)

    def describe_job(self, job: QueuedJob) -> Job:
        """Return a job as callers see it: without its lease, its request and paths of this machine."""
        request = json.loads(job.request)
        own = _own_script(request.get("script"), self._settings)
        described, options = _described_request(request, own), {}
        if is_built_in(Path(request.get("script", ""))):
            named = described["parameters"].pop
            options = json.loads(named("IMPORT_OPTIONS", named(REPLAY_OPTIONS, "{}")))
            described["script"] = str(_own_script(options.get("script"), self._settings) or "")
        return Job(
            **{name: getattr(job, name) for name in _SHOWN},
            **described,
            import_stream=options.get("stream"),
            replays=options.get("jobs", []),
            schedule=job.schedule or None,
            group=job.group or None,
            is_repeatable=job.is_final
            and own is not None
            and not request.get("input_dir")
            and not request.get("then"),
            worker=job.worker or None,
            outcome=None if job.outcome is None else self._outcome(job.outcome),
        )

    def describe_group(self, group: StoredGroup) -> JobGroup:
        """Return a group as callers see it."""
        own = _own_script(group.request.get("script"), self._settings)
        return JobGroup(
            **{name: getattr(group, name) for name in ("group", "environment", "created", "jobs")},
            **_described_request(group.request, own),
            counts=dict(group.counts),
        )

    def _outcome(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        has_notebook = {"has_notebook": outcome.get("notebook") is not None}
        if self._shows_paths:
            return {**outcome, **has_notebook}
        kept = {name: value for name, value in outcome.items() if name not in _PATHS}
        text = json.dumps(kept, ensure_ascii=False)
        for path in (*(outcome.get(name) for name in _PATHS), str(Path(self._root).resolve())):
            if isinstance(path, str) and path:
                text = text.replace(json.dumps(path, ensure_ascii=False)[1:-1], "the store")
        return {**json.loads(text), **has_notebook}

    def log_lines(self, job: QueuedJob, place: LogCursor) -> tuple[list[tuple[str, LogCursor]], LogCursor]:
        """Return the log's next lines after a position, each with the position behind it, and the last one.

        The log of a new attempt starts at its beginning. Of a job that has ended a last line without
        a line feed counts too; nothing where there is no log.
        """
        if place.attempt != job.attempts:
            place = LogCursor(job.attempts, 0)
        file = log_file(job, self._settings)
        content = b"" if file is None else _read(file, place.position)
        lines = []
        for line in content.splitlines(keepends=True):
            is_long = len(content) == _LOG_CHUNK_BYTES == len(line)
            if not (line.endswith(b"\n") or job.is_final or is_long):
                break
            place = LogCursor(place.attempt, place.position + len(line))
            lines.append((line.rstrip(b"\r\n").decode(errors="replace"), place))
        return lines, place

    def _request(self, job: TenantJob, who: str, **options: Any) -> RunRequest:
        return RunRequest(
            root=self._root,
            environment=job.environment,
            tenant=job.tenant,
            job_id=job.job_id,
            who=who,
            **options,
        )

    def submit_request(self, request: RunRequest, attempts_max: int, folder: str) -> QueuedJob:
        """Put a run into the queue for the tenant of a folder."""
        return self._queue.submit(self._submission(request, attempts_max, folder))

    def _submission(self, request: RunRequest, attempts_max: int, folder: str, group: str = "") -> Submission:
        return Submission(
            json.dumps(request.to_json()),
            environment=request.environment,
            tenant=request.tenant,
            job_id=request.job_id,
            attempts_max=attempts_max,
            running_max=self.running_max,
            incarnation=folder,
            queued_max=self.queued_max,
            group=group,
        )

    def _script(self, name: str) -> Path:
        folder = self._settings.service_scripts_dir
        # The same rules as for a tenant's files, so that no path leaves the folder.
        relative = str(FilePath(name))
        path = None if folder is None else (folder / relative).resolve()
        if folder is None or path is None or not path.is_file() or not path.is_relative_to(folder.resolve()):
            raise NotFound(
                f"There is no script {name!r}.",
                cause="Jobs of the service run the scripts in service_scripts_dir."
                if folder is not None
                else "The service has no folder of scripts (service_scripts_dir).",
                remedy="Check the name.",
            )
        return path


def _read(file: JobFile, position: int) -> bytes:
    try:
        with file.open() as log:
            log.seek(position)
            return log.read(_LOG_CHUNK_BYTES)
    except OSError:
        return b""  # cleaned away meanwhile, or replaced by a link


def repeated_order(job: QueuedJob, settings: Settings) -> JobRequest:
    """Return the submission that a job was made from, to be submitted under another id."""
    request = parse_run_request(job.request)
    own = _own_script(request.script, settings)
    if not job.is_final:
        raise InvalidOption(
            f"The job {job.job_id!r} has not ended.",
            cause=f"It is {job.status}.",
            remedy="Wait for its end, or cancel it first.",
        )
    if request.input_dir is not None or own is None or request.then:
        raise InvalidOption(
            f"The job {job.job_id!r} cannot be run again by the service.",
            cause="It runs only scripts in service_scripts_dir, and the commands that they name themselves.",
            remedy="Import the file again, or submit the job where it was submitted.",
        )
    return JobRequest(
        script=own.as_posix(),
        flow=request.flow,
        parameters=request.parameters,
        timeout_seconds=request.timeout_seconds,
        message=request.message,
        attempts_max=job.attempts_max,
        dry_run=request.dry_run,
        hold=request.hold,
    )


def _own_script(script: str | Path | None, settings: Settings) -> Path | None:
    """Return the script's path within the service's folder, or None if it is elsewhere."""
    if settings.service_scripts_dir is None:
        return None
    path, folder = Path(script or ""), settings.service_scripts_dir.resolve()
    return path.relative_to(folder) if path.is_relative_to(folder) else None


def _described_request(request: Mapping[str, Any], own: Path | None) -> dict[str, Any]:
    """Return the fields that a job and a group have of their request; ``own`` is as of ``_own_script``."""
    return {
        "script": script_name(request) if own is None else str(own),
        "dry_run": bool(request.get("dry_run")),
        "parameters": dict(request.get("parameters") or {}),
        "submitted_by": str(request.get("who") or ""),
        "message": str(request.get("message") or ""),
    }


def executed_notebook(job: QueuedJob, settings: Settings) -> JobFile:
    """Return the executed notebook of a job's last attempt, on this machine."""
    found = notebook_file(job, settings)
    if found is None:
        raise NotFound(
            f"There is no executed notebook of the job {job.job_id!r}.",
            cause="It ran no notebook, has not ended, or its folder was cleaned away.",
            remedy="Read the job's log.",
        )
    return found


SCRIPTS_MAX = 500
# Modules that scripts import, and what is no code of the user's.
_SKIPPED = frozenset({"lib", "__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class ScriptParameter:
    """A parameter that a script declares; without `choices` any value of the type may be given."""

    name: str
    type: Literal["text", "integer", "number", "boolean"]
    default: Scalar
    description: str
    choices: tuple[str | int | float | bool, ...]
    is_required: bool


@dataclass(frozen=True, slots=True)
class Script:
    """A script that jobs may run; `parameters` is null where it declares none, and takes any."""

    script: str
    description: str
    parameters: list[ScriptParameter] | None
    problem: Annotated[str | None, Field(description="Why its header cannot be read, if it cannot.")]


def list_scripts(folder: Path | None) -> tuple[Script, ...]:
    """Return the scripts below the folder by name, at most 500; none without a folder.

    Left out: names that begin with a dot or an underscore, folders called ``lib``, and what a link leads
    out of the folder to.
    """
    if folder is None or not folder.is_dir():
        return ()
    root = folder.resolve()
    found = sorted(path for path in _files(root) if path.resolve().is_relative_to(root))
    return tuple(_script(path, path.relative_to(root).as_posix()) for path in found[:SCRIPTS_MAX])


def _files(root: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _SKIPPED and name[0] not in "._"]
        yield from (
            Path(place, name) for name in names if name.endswith(SCRIPT_SUFFIXES) and name[0] not in "._"
        )


def _script(path: Path, name: str) -> Script:
    try:
        header = read_script_header(path)
        told = None if header.parameters is None else [_told(item) for item in header.parameters]
        return Script(name, header.description, told, None)
    except FreezeframeError as error:
        return Script(name, "", None, f"{error.problem} {error.cause}")
    except OSError as error:
        return Script(name, "", None, f"It cannot be read: {error.strerror}.")


def _told(declared: Any) -> ScriptParameter:
    return ScriptParameter(**{name: getattr(declared, name) for name in ScriptParameter.__dataclass_fields__})
