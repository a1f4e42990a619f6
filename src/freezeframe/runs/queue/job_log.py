"""The log file of a queued job, and reading it while it grows."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from freezeframe.control.jobs.job import QueuedJob
from freezeframe.runs.model.job_root import latest_root
from freezeframe.runs.model.request import parse_run_request
from freezeframe.runs.model.tenants import request_tenant
from freezeframe.settings import Settings
from freezeframe.store.directory.job_folders import job_roots_folder

_CHUNK_BYTES = 64 * 1024
_LOOK_SECONDS = 0.5


def log_path(job: QueuedJob, settings: Settings) -> Path | None:
    """The log of the job's last attempt, on this machine; None where there is none (yet).

    An attempt that has ended says where it is. One that runs is looked for among the tenant's job roots.
    """
    named = (job.outcome or {}).get("log")
    if job.status != "running" and isinstance(named, str):
        return _existing(Path(named))
    request = parse_run_request(job.request)
    tenant = request_tenant(request, settings)
    if tenant is None:
        return None
    root = latest_root(job_roots_folder(tenant.place.storage, settings), job.job_id)
    return None if root is None else _existing(root.log)


def follow_log(current: Callable[[], QueuedJob], settings: Settings) -> Iterator[str]:
    """The text of a job's log as it grows, until the job has ended; of a new attempt from its beginning.

    ``current`` gives the job as it is now.
    """
    path: Path | None = None
    offset = 0
    decoder = _decoder()
    while True:
        # Asked before the log is read: what was written before the end is read then.
        job = current()
        found = log_path(job, settings)
        if found != path:
            path, offset, decoder = found, 0, _decoder()
        for chunk in _chunks(path, offset):
            offset += len(chunk)
            yield decoder.decode(chunk)
        if job.is_final:
            return
        time.sleep(_LOOK_SECONDS)


def _chunks(path: Path | None, offset: int) -> Iterator[bytes]:
    if path is None:
        return
    try:
        with path.open("rb") as log:
            log.seek(offset)
            while chunk := log.read(_CHUNK_BYTES):
                yield chunk
    except FileNotFoundError:
        return  # cleaned away while it was read


def _decoder() -> codecs.IncrementalDecoder:
    # A script may print anything, and a chunk may end within a letter.
    return codecs.getincrementaldecoder("utf-8")("replace")


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None
