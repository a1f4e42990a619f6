"""The files that a queued job left in its root, and its log while it grows.

A script may have put a link or a pipe in place of any of them: they are opened beneath the folder of roots.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from freezeframe.control.jobs.job import QueuedJob
from freezeframe.runs.model.job_root import JobRoot, latest_root
from freezeframe.runs.model.request import parse_run_request
from freezeframe.runs.model.tenants import request_tenant
from freezeframe.settings import Settings
from freezeframe.storage.safe_open import open_regular
from freezeframe.store.directory.job_folders import job_roots_folder

_CHUNK_BYTES = 64 * 1024
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file of a job: the folder that is known, and the file's name beneath it."""

    folder: Path
    name: str

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open it as ``open_regular`` does.

        Raises:
            OSError: there is none, or it is a link or no regular file.
        """
        return open_regular(self.folder, self.name)

    def is_readable(self) -> bool:
        """Whether there is a regular file."""
        try:
            with self.open():
                return True
        except OSError:
            return False


def log_file(job: QueuedJob, settings: Settings) -> JobFile | None:
    """The log of the job's last attempt, on this machine; None where there is none (yet)."""
    return _job_file(job, settings, lambda root: root.log)


def notebook_file(job: QueuedJob, settings: Settings) -> JobFile | None:
    """The executed notebook of the job's last attempt, on this machine; None where there is none."""
    named = (job.outcome or {}).get("notebook")
    if not isinstance(named, str) or not Path(named).name:
        return None
    return _job_file(job, settings, lambda root: root.path / Path(named).name)


def _job_file(job: QueuedJob, settings: Settings, path_of: Callable[[JobRoot], Path]) -> JobFile | None:
    """A file in the job's root: the one that the outcome names, or the newest of the tenant's for the job.

    A row of the queue cannot name another place than the tenant's folder of roots or the request's root.
    """
    request = parse_run_request(job.request)
    tenant = request_tenant(request, settings)
    if tenant is None:
        return None
    roots = job_roots_folder(tenant.place.storage, settings)
    named = (job.outcome or {}).get("job_root")
    root = latest_root(roots, job.job_id)
    if job.status != "running" and isinstance(named, str):
        if request.job_root is not None and Path(named) == request.job_root.resolve():
            roots, root = request.job_root.parent, JobRoot(request.job_root)
        elif Path(named).parent in {roots, roots.resolve()}:
            root = JobRoot(roots / Path(named).name)
    path = None if root is None else path_of(root)
    found = None if path is None else JobFile(roots, path.relative_to(roots).as_posix())
    return found if found is not None and found.is_readable() else None


def follow_log(current: Callable[[], QueuedJob], settings: Settings) -> Iterator[str]:
    """The text of a job's log as it grows, until the job has ended; of a new attempt from its beginning.

    ``current`` gives the job as it is now.
    """
    file: JobFile | None = None
    offset = 0
    decoder = _decoder()
    while True:
        # Asked before the log is read: what was written before the end is read then.
        job = current()
        found = log_file(job, settings)
        if found != file:
            file, offset, decoder = found, 0, _decoder()
        for chunk in _chunks(file, offset):
            offset += len(chunk)
            yield decoder.decode(chunk)
        if job.is_final:
            return
        time.sleep(_LOOK_SECONDS)


def _chunks(file: JobFile | None, offset: int) -> Iterator[bytes]:
    if file is None:
        return
    try:
        with file.open() as log:
            log.seek(offset)
            while chunk := log.read(_CHUNK_BYTES):
                yield chunk
    except OSError:
        return  # cleaned away while it was read, or replaced by a link


def _decoder() -> codecs.IncrementalDecoder:
    # A script may print anything, and a chunk may end within a letter.
    return codecs.getincrementaldecoder("utf-8")("replace")
