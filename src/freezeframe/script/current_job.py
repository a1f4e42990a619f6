"""The job that this process runs a script for, found by its directory.

A run gives its script a working copy of the tenant's files as the snapshot directory. In the process
that runs the script that directory means the open job, so the script's own calls become part of its one
commit. ``_freezeframe/job.json`` in it says the same to everybody else: a process that the script started
has no part in the job, and is told so instead of making a second store there.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freezeframe.errors import InvalidOption
from freezeframe.storage.local import make_private
from freezeframe.store.model.directory import JOB_FILE, is_working_copy
from freezeframe.store.tenant import Job

_SNAPSHOTS = "snapshots"

_lock = threading.Lock()
_current: dict[str, _Current] = {}


@dataclass(frozen=True, slots=True)
class _Current:
    tenant: Job
    process: int


@contextmanager
def current_job(folder: Path, tenant: Job, names: dict[str, Any]) -> Iterator[None]:
    """Make a directory mean an open job for this process, until the block ends.

    ``names`` (root, environment, tenant, job) are written into ``_freezeframe/job.json`` (mode 0600) with
    the job's token and this process's id; the file is removed at the end.
    """
    path = folder.resolve()
    file = path / JOB_FILE
    make_private(file.parent)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as text:
        json.dump({**names, "token": tenant.token, "process": os.getpid()}, text, ensure_ascii=False)
    with _lock:
        _current[str(path)] = _Current(tenant, os.getpid())
    try:
        yield
    finally:
        with _lock:
            _current.pop(str(path), None)
        with suppress(NotADirectoryError):  # the script replaced it
            file.unlink(missing_ok=True)


def job_folder() -> Path | None:
    """Return the snapshot directory of the job whose script this process runs; None outside of jobs."""
    own = (folder for folder, found in _current.items() if found.process == os.getpid())
    return next(map(Path, own), None)


def job_folder_beside(path: Path) -> Path | None:
    """Return the snapshot directory of the running job for a directory outside of it; None without a job.

    In a job's own process that is the job's; a process that the script started finds it by its place.
    """
    own = job_folder()
    if own is not None:
        return own
    near = (parent / _SNAPSHOTS for parent in path.parents)
    return next((item for item in near if is_working_copy(item)), None)


def job_at(path: Path) -> Job | None:
    """Return the open job that a resolved directory means; None for a tenant's own directory."""
    found = _current.get(str(path))
    if found is not None and found.process == os.getpid():
        return found.tenant
    if found is None and not is_working_copy(path):
        return None
    raise InvalidOption(
        f"{path} belongs to a job that another process runs.",
        cause="The script's own process makes the job's one commit; a process that it started, by "
        "multiprocessing or as a command, cannot add to it.",
        remedy="Return the rows to the script, and let it make the call. Threads can make it themselves.",
        code="OTHER_PROCESS",
        path=str(path),
    )
