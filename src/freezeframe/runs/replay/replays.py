"""Replays: kept jobs that run again in their order, on the version before the first.

A replay is a job of its own, whose script is built in (``replay_script``) and whose one parameter
is a ``Replay``. What it is of is checked twice: before it is queued, and when it begins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from freezeframe.errors import ConflictError, InvalidOption
from freezeframe.runs.kept_jobs import KeptJob
from freezeframe.runs.pulled_jobs import find_kept_job
from freezeframe.runs.request import given_file
from freezeframe.runs.script_header import REPLAY_OPTIONS, read_script_header
from freezeframe.store.maintenance.revert import version_of_job
from freezeframe.store.replay import Made
from freezeframe.store.tenant_log.state import NO_VERSION, TenantState
from freezeframe.store.transaction.changes import TenantContext
from freezeframe.store.transaction.scope import listed_state

JOBS_MAX = 100
"""So many jobs are replayed at once."""
_NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class Replay:
    """Which jobs run again, and with which ``script``, of this ``sha256`` (None: each with its own)."""

    jobs: tuple[str, ...]
    script: Path | None = None
    sha256: str = ""

    def __post_init__(self) -> None:
        if not 0 < len(self.jobs) <= JOBS_MAX or len(set(self.jobs)) != len(self.jobs):
            raise InvalidOption(
                "These jobs cannot be replayed.",
                cause=f"They are none, more than {JOBS_MAX}, or one of them is named twice.",
                remedy="Name each job once.",
            )

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of a request that asks for it."""
        script = None if self.script is None else str(self.script)
        return {REPLAY_OPTIONS: json.dumps({**asdict(self), "script": script}, ensure_ascii=False)}

    def message(self, reason: str) -> str:
        """Return what the history says of it: which jobs, with which script, and why."""
        named = ", ".join(self.jobs[:_NAMED_MAX])
        more = f" and {len(self.jobs) - _NAMED_MAX} more" if len(self.jobs) > _NAMED_MAX else ""
        own = "" if self.script is None else f" with {self.script.name} (SHA-256 {self.sha256})"
        return f"replay {named}{more}{own}" + (f": {reason}" if reason else "")


def replay_with(jobs: Sequence[str], script: Path | None) -> Replay:
    """Return the replay of jobs with a mended script as it is now.

    Raises:
        InputNotFound: there is no such script.
        InvalidOption: no job is named, or one twice.
    """
    if script is None:
        return Replay(tuple(jobs))
    path = given_file(script, "script").resolve()
    return Replay(tuple(jobs), path, hashlib.sha256(path.read_bytes()).hexdigest())


def parse_replay(text: str) -> Replay:
    """Parse the parameter of a request for a replay."""
    options = json.loads(text)
    script = options["script"]
    return Replay(tuple(options["jobs"]), None if script is None else Path(script), options["sha256"])


@dataclass(frozen=True, slots=True)
class ReplayedJobs:
    """The kept jobs of a replay in their order, each with the folder of its contents, and what they had made.

    ``streams`` are those that they read, looked for or changed (None: unknown); ``others`` has the version
    of each stream that others changed between them.
    """

    jobs: tuple[tuple[KeptJob, str], ...]
    made: Made
    streams: frozenset[str] | None
    others: Mapping[str, int]

    def require_own(self, streams: Sequence[str]) -> None:
        """Refuse streams that others changed between the jobs: the replay knows nothing of it."""
        found = next((name for name in streams if name in self.others), None)
        if found is not None:
            raise _changed_between(f"stream {found!r}", self.others[found])


def find_replayed(context: TenantContext, replay: Replay, now: TenantState) -> ReplayedJobs:
    """Return the jobs of a replay, all that it needs of them, before anything is run.

    Raises:
        NotFound: the input of one is not kept, or there is no such job.
        VersionNotFound: the version before the first is no longer kept, or which one a job made.
        ConflictError: others changed what the jobs read or change between the first and the last of them.
        InvalidOption: one is another tenant's, or the script does not take its parameters.
    """
    found = [(*find_kept_job(context, job_id), job_id) for job_id in replay.jobs]
    for job, _, job_id in found:
        if job.tenant != context.tenant_id or job.job_id != job_id:
            raise InvalidOption(
                f"The job {job_id} was run for another tenant.",
                cause=f"Its record names {job.tenant}.",
                remedy="Replay it for that tenant.",
            )
        if replay.script is not None:
            read_script_header(replay.script).filled(job.parameters)
        if job.status == "succeeded":
            version_of_job(context, job_id)  # its id may be forgotten: nothing tells what it made
    records = {job_id: context.log.known_job(now, job_id) for job_id in replay.jobs}
    versions = {record.version for record in records.values() if record is not None}
    # A job that made no version ran after the one that it began with.
    order = {
        job.job_id: (job.base, 1) if (record := records[job.job_id]) is None else (record.version, 0)
        for job, _, _ in found
    }
    found.sort(key=lambda item: order[item[0].job_id])
    first, last = min(job.base for job, _, _ in found), max(version for version, _ in order.values())
    before, after = (
        TenantState() if version == NO_VERSION else listed_state(context.log, now, version)
        for version in (first, last)
    )
    streams, files, others = set[str](), set[str](), dict[str, int]()
    for version in range(first + 1, last + 1):
        entry = context.log.entry(version)
        names = {*(str(change.stream) for change in entry.streams), *entry.tenant.dropped}
        if version in versions:
            streams |= names
            files |= {change.path for change in entry.files}
            continue
        others |= dict.fromkeys(names, version)
        if entry.files:  # a script may read any of them
            raise _changed_between(f"file {entry.files[0].path!r}", version)
    used = [job.streams for job, _, _ in found]
    known = frozenset(streams.union(*filter(None, used))) if None not in used else None
    made = Made(before, after, frozenset(streams), frozenset(files))
    replayed = ReplayedJobs(tuple((job, place) for job, place, _ in found), made, known, others)
    replayed.require_own(sorted(others if known is None else known))
    return replayed


def _changed_between(what: str, version: int) -> ConflictError:
    return ConflictError(
        f"The jobs cannot be replayed together: version {version} of others changed the {what} between them.",
        cause="Their replay begins with the version before the first, and would do without that change.",
        remedy="Replay the jobs before that version, publish it, and then those after it.",
        code="REPLAY_INTERRUPTED",
        is_permanent=True,
        version=version,
    )
