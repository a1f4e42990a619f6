"""``freezeframe worker``: runs the jobs of the queue."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from freezeframe.cli.jobs.job import job_fields
from freezeframe.cli.places.control_place import control
from freezeframe.cli.places.place import Json, LogFormatOption, LogLevelOption, StoreRoot, begin_logging
from freezeframe.cli.terminal.output import Output, write_json
from freezeframe.errors import InvalidOption

if TYPE_CHECKING:
    from freezeframe.control.job import QueuedJob
    from freezeframe.runs.queue.worker import Worker


def worker(
    root: StoreRoot,
    concurrency: Annotated[int, typer.Option(min=1, help="Number of jobs to run at the same time.")] = 1,
    once: Annotated[
        bool, typer.Option("--once", help="Exit after one job, or at once if none is queued.")
    ] = False,
    drain: Annotated[
        bool, typer.Option("--drain", help="Exit when no job can be had and none runs.")
    ] = False,
    poll: Annotated[float, typer.Option(help="Seconds between polls of an empty queue.")] = 1.0,
    grace: Annotated[float, typer.Option(help="Seconds that running jobs get to end after SIGTERM.")] = 20.0,
    metrics: Annotated[
        str | None,
        typer.Option(help="Serve metrics for Prometheus at HOST:PORT, for example 127.0.0.1:9750."),
    ] = None,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    as_json: Json = False,
) -> None:
    """Run jobs of the queue until it is stopped.

    Any number of workers may share a queue. SIGTERM or Ctrl-C: no new jobs; those that run may end within
    the grace, then they are given back for another worker; a second time: they are given back at once.
    """
    from freezeframe.runs.metrics import serve_worker_metrics
    from freezeframe.runs.queue.job_attempt import Times
    from freezeframe.runs.queue.worker import Worker, WorkerOptions
    from freezeframe.runs.running import run
    from freezeframe.storage.local import keep_private

    keep_private()
    if once and drain:
        raise InvalidOption("--once and --drain cannot be used together.", remedy="Give one of them.")
    with control(root, create=True) as found:
        times = Times(found.settings.job_lease_seconds, found.settings.job_beat_seconds)
        options = WorkerOptions(concurrency, poll, grace, times)
        server = None if metrics is None else serve_worker_metrics(metrics, found.settings)

        def on_change(job: QueuedJob) -> None:
            if server is not None and job.is_final:
                server.count_job(job)
            _tell(job, as_json=as_json)

        one = Worker(found.database, run, found.settings, options, on_change)
        _listen(one)
        begin_logging(log_format, log_level, root)
        if not as_json and not (once or drain):
            Output().line(f"{one.name} works for {found.database.name}")
            sys.stdout.flush()
        one.work("one" if once else "empty" if drain else "stopped")


def _listen(worker: Worker) -> None:
    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if worker.is_stopping:
            worker.give_up()
        else:
            worker.stop()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)


def _tell(job: QueuedJob, *, as_json: bool) -> None:
    if as_json:
        write_json(job_fields(job))
    else:
        count = f"attempt {job.attempts} of {job.attempts_max}"
        moment = job.finished or job.started or job.created
        error = ((job.outcome or {}).get("error") or {}).get("problem", "")
        Output().line(
            f"{moment:%Y-%m-%dT%H:%M:%SZ} {job.tenant} {job.job_id} {job.status} ({count}) {error}".rstrip()
        )
    sys.stdout.flush()
