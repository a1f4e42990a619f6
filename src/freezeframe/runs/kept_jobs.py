"""What is kept of a job beside its commit: its input, its script, and what it wrote for others.

The script may change its input, so files are kept before it runs; the record that makes them count follows
at the end, also of a job that failed. See ``store.blobs.kept_inputs`` for how long, and where.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from freezeframe.errors import FreezeframeError
from freezeframe.runs.job_root import JobRoot, read_result
from freezeframe.runs.request import RunOutcome, RunRequest, request_folder
from freezeframe.runs.script_header import is_built_in
from freezeframe.store.blobs.kept_inputs import KeptFile, kept_files, open_inputs
from freezeframe.store.maintenance.garbage import remove_old_inputs
from freezeframe.store.model.directory import tenant_of
from freezeframe.store.transaction.changes import TenantContext

_logger = logging.getLogger(__name__)
_REQUEST = ("flow", "connector_id", "job_type", "sync_type")


def script_files(script: Path) -> dict[str, Path]:
    """Return a script and the code that it imports from beside it, by their names in its folder."""
    beside = [*script.parent.glob("*.py"), script.parent / "requirements.txt"]
    found = {path.name: path for path in (script, *beside) if path.is_file()}
    return found | dict(_files_below(script.parent, "lib"))


def _files_below(folder: Path, part: str) -> Iterator[tuple[str, Path]]:
    for place, _, names in os.walk(folder / part):
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file() and path.parent.name != "__pycache__":
                yield str(path.relative_to(folder)), path


@dataclass(frozen=True, slots=True)
class KeptJob:
    """The record of one run of a job; ``files`` are by their names in its root or beside its script.

    ``code`` are those of them that the script is made of. ``base`` is the tenant's version before the run.
    ``streams`` are those that it read, looked for or changed (None: unknown), ``output`` is what it wrote
    for others.
    """

    job_id: str
    tenant: str
    environment: str
    script: str
    parameters: Mapping[str, Any]
    options: Mapping[str, str]
    base: int
    files: Mapping[str, KeptFile]
    code: Sequence[str]
    status: str = ""
    streams: Sequence[str] | None = None
    output: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name."""
        return asdict(self)


def parse_kept_job(record: Mapping[str, Any]) -> KeptJob:
    """Parse the form of ``to_json``."""
    return KeptJob(**{**record, "files": kept_files(record)})


class KeepingJob:
    """Keeps the input of one run before it begins, and its record when it has ended."""

    def __init__(self, context: TenantContext, root: JobRoot, request: RunRequest) -> None:
        """Keep the input, if the settings say so; a dry run and an import leave nothing.

        A job runs and commits whether or not its input could be kept.
        """
        self._root, self._job = root, None
        days = context.settings.keep_inputs_days
        if not days or request.dry_run or is_built_in(request.script):
            return
        with _only_logged(request.job_id):
            state = context.log.current_state()
            self._kept = open_inputs(context.storage, context.settings, state.erased, create=True)
            self._folder = self._kept.folder(days)
            code = script_files(request.script)
            brought = dict(_files_below(root.path, root.input.name)) | dict(
                _files_below(root.path, "plugins")
            )
            # The connector's settings are secret: they are in the root during the run alone.
            brought |= {path.name: path for path in root.path.glob("*.json") if path != root.config}
            self._job = KeptJob(
                job_id=request.job_id,
                tenant=request.tenant,
                environment=request.environment,
                script=request.script.name,
                parameters=dict(request.parameters),
                options={name: getattr(request, name) for name in _REQUEST},
                base=state.version,
                files=self._kept.keep(self._folder, brought | code),
                code=sorted(code),
            )

    def end(self, outcome: RunOutcome) -> None:
        """Keep the record of the run, which has ended."""
        if self._job is None:
            return
        with _only_logged(self._job.job_id):
            result = read_result(self._root)
            ended = {
                **self._job.to_json(),
                "status": outcome.status,
                "streams": None if result is None else result.streams,
                "output": output_hashes(self._root.output),
            }
            self._kept.record(self._folder, self._job.job_id, ended)


@contextmanager
def removing_old_inputs(context: TenantContext, request: RunRequest) -> Iterator[None]:
    """Delete behind the run the inputs whose time is over, and what it kept beside an erasure or a deletion.

    That depends on no setting: what was kept while another one held goes too.
    """

    def is_deleted() -> bool:
        return request_folder(request, context.settings) != tenant_of(context.storage.root)

    try:
        yield
    finally:
        with _only_logged(request.job_id, "Old kept inputs could not be deleted at the job %s."):
            remove_old_inputs(context, is_deleted=is_deleted)


@contextmanager
def _only_logged(job_id: str, text: str = "The input of the job %s is not kept.") -> Iterator[None]:
    try:
        yield
    except (FreezeframeError, OSError):
        _logger.warning(text, job_id, exc_info=True)


def output_hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each readable file that a script wrote for others, by its path."""
    found = {}
    for name, path in () if folder.is_symlink() else _files_below(folder.parent, folder.name):
        with suppress(OSError), path.open("rb") as file:
            found[name.partition("/")[2]] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
