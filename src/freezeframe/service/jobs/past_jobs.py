"""Ended jobs: the executed notebook, and the request to run one again."""

from __future__ import annotations

from freezeframe.control.jobs.job import QueuedJob
from freezeframe.errors import InvalidOption, NotFound
from freezeframe.runs.model.request import parse_run_request
from freezeframe.runs.queue.job_log import JobFile, notebook_file
from freezeframe.service.jobs.jobs import JobRequest
from freezeframe.settings import Settings


def repeated_order(job: QueuedJob, settings: Settings) -> JobRequest:
    """The submission that a job was made from, to be submitted under another id.

    Raises:
        InvalidOption: the job has not ended, or is none of a script of the service's folder: an import's
            file is gone with the import, and what others submitted is theirs to run again.
    """
    request = parse_run_request(job.request)
    folder = settings.service_scripts_dir
    if not job.is_final:
        raise InvalidOption(
            f"The job {job.job_id!r} has not ended.",
            cause=f"It is {job.status}.",
            remedy="Wait for its end, or cancel it first.",
        )
    if request.input_dir is not None or folder is None or not request.script.is_relative_to(folder.resolve()):
        raise InvalidOption(
            f"The job {job.job_id!r} cannot be run again from here.",
            cause="Only jobs of the scripts in service_scripts_dir can.",
            remedy="Import the file again, or submit the job where it was submitted.",
        )
    return JobRequest(
        script=request.script.relative_to(folder.resolve()).as_posix(),
        flow=request.flow,
        parameters=request.parameters,
        timeout_seconds=request.timeout_seconds,
        message=request.message,
        attempts_max=job.attempts_max,
    )


def executed_notebook(job: QueuedJob, settings: Settings) -> JobFile:
    """The executed notebook of a job's last attempt, on this machine.

    Raises:
        NotFound: the job ran no notebook, has not ended, or its folder was cleaned away.
    """
    found = notebook_file(job, settings)
    if found is None:
        raise NotFound(
            f"There is no executed notebook of the job {job.job_id!r}.",
            cause="It ran no notebook, has not ended, or its folder was cleaned away.",
            remedy="Read the job's log.",
        )
    return found
