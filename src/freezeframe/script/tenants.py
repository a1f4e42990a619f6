"""Tenants and stores as a script reaches them: a directory or a bucket with storage and engine.

One engine serves the whole process and is opened by the first call that needs Spark; reading
needs none. Tenants are kept, so that a script's later calls find their state warm.
"""

from __future__ import annotations

import atexit
import os
import threading
from functools import cache
from pathlib import Path
from typing import Any, Literal

from freezeframe.engine.protocol import DeferredEngine, TableEngine
from freezeframe.errors import InvalidOption
from freezeframe.extras import require_release
from freezeframe.progress import wait_for
from freezeframe.script.current_job import job_at, job_folder_beside
from freezeframe.settings import Settings, load_settings
from freezeframe.storage import LocalStorage, Storage, open_bucket
from freezeframe.storage.location import S3Access, local_directory, path_text
from freezeframe.storage.probe import require_remembered
from freezeframe.store import Tenant
from freezeframe.store.maintenance.row_origins import INPUT_READERS, InputRow
from freezeframe.store.model.directory import OURS
from freezeframe.store.snapshot_store import Store
from freezeframe.store.transaction.changes import TenantGuard


class OutsideJob(TenantGuard):
    """The guard of such a directory; ``folder`` is the job's snapshot directory."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        self._folder = folder

    def require_writable(self) -> None:
        """See ``TenantGuard.require_writable``."""
        raise InvalidOption(
            f"{self._path} is not the snapshot directory of this job.",
            cause="An update of another directory would not be part of the job's commit.",
            remedy=f"Write to {self._folder}, which is ROOT_DIR/snapshots.",
            code="OUTSIDE_JOB",
            path=str(self._path),
        )


_lock = threading.Lock()
_tenants: dict[str, Tenant] = {}


def tenant_directory(snapshot_dir: str | os.PathLike[str]) -> Path:
    """Return the directory that a script names; errors as of ``local_directory``."""
    place = local_directory(snapshot_dir, may_be_bucket=False)
    assert place is not None  # noqa: S101 - a bucket was refused
    return place


def open_tenant(snapshot_dir: str | os.PathLike[str]) -> Tenant:
    """Return the tenant whose snapshot directory this is; the directory need not exist yet.

    In the script of a run, the run's snapshot directory means its open job: see ``current_job``. Any other
    directory can only be read there.

    Raises:
        InvalidOption: it is a file, no path at all, or the directory of another process's job.
        FormatTooNew: a newer freezeframe wrote it.
    """
    path = tenant_directory(snapshot_dir).resolve()
    if path.exists() and not path.is_dir():
        raise InvalidOption(
            f"{path} is a file, not a directory.", remedy="Pass the path of the tenant's directory."
        )
    job = job_at(path)
    if job is not None:
        return job
    folder = job_folder_beside(path)
    if folder is not None:
        return Tenant(LocalStorage(path), shared_engine(), load_settings(), OutsideJob(path, folder))
    with _lock:
        if str(path) not in _tenants:
            _tenants[str(path)] = Tenant(LocalStorage(path), shared_engine(), load_settings())
        return _tenants[str(path)]


def _find_input_row(*given: Any) -> InputRow | None:
    from freezeframe.script.kept_rows import find_input_row  # noqa: PLC0415 - most programs read no input

    return find_input_row(*given)


INPUT_READERS[:] = [_find_input_row]


@cache
def shared_engine() -> TableEngine:
    """Return this process's engine; it connects to Spark when it is first used."""
    engine = DeferredEngine(lambda: spark_engine(load_settings()))
    atexit.register(engine.close)
    return engine


def spark_engine(settings: Settings) -> TableEngine:
    """Return an engine that uses the Spark of these settings."""
    require_release("pyspark")
    from freezeframe.engine.spark import SparkEngine  # noqa: PLC0415 - reading must not load PySpark

    return SparkEngine(settings, wait_for)


def open(  # noqa: A001 - freezeframe.open
    root: str | os.PathLike[str],
    environment: str = "default",
    *,
    engine: Literal["spark", "auto"] | None = None,
) -> Store:
    """Open the store at ``root``: a directory, which need not exist yet, or ``s3://bucket/prefix``.

    ``environment`` is whose tenants are seen: the same id in two environments is two tenants. The
    bucket's credentials and endpoint come from the settings ``s3_…`` or the usual ``AWS_…`` variables.
    ``engine`` is who searches and merges stored rows (see the setting of that name, which counts without it).

    Raises:
        InvalidOption: ``root`` is a file, a URL of another kind, or one tenant's own directory; or there is
            no such engine.
        InvalidName: no environment can have that name.
        FormatTooNew: a newer freezeframe wrote it.
        StorageUnsuitable: the bucket's store has no atomic create, as was seen.
    """
    settings = load_settings(engine=engine)
    return Store(storage_at(path_text(root), settings), shared_engine(), settings, environment)


def storage_at(root: str, settings: Settings, *, is_asked_again: bool = False) -> Storage:
    """Return the storage at a store's root; errors as of ``open``.

    A bucket is put to the test at first contact; ``is_asked_again`` does it anew.
    """
    place = local_directory(root)
    if place is None:
        rest = root.partition("://")[2]
        access = S3Access.of(settings, os.environ)
        storage = open_bucket(
            f"s3://{rest}",
            is_trusted=settings.s3_conditional_writes == "trusted",
            **access.obstore_options(),
        )
        memory = settings.state_dir / "probed" / access.place
        require_remembered(storage, OURS, memory, is_asked_again=is_asked_again)
        return storage
    path = place.resolve()
    if path.exists() and not path.is_dir():
        raise InvalidOption(
            f"{root!r} is not a directory.", remedy="Pass the path of a directory, or s3://bucket/prefix."
        )
    return LocalStorage(path)
