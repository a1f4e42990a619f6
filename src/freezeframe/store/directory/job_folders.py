"""Folders of jobs and uploads beneath a store."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from freezeframe.errors import InvalidOption
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.local import failure, make_private
from freezeframe.storage.safe_open import open_regular
from freezeframe.store.directory.paths import JOB_ROOTS_FOLDER, OURS, TENANTS_FOLDER, tenant_of

# Folders of jobs: where scripts run, and when their leftovers are deleted.
#
# A job's root holds the tenant's data in the clear: input, output, a working copy, the log. So it is kept
# where it is found by the tenant: in a local store beside the tenants, and for a store in a bucket in the
# state folder of the machine that ran the job. Deleting the tenant removes all of them, an erasure those
# that began before it, and time those that are older than ``job_root_days``.

LOCK_FILE = f"{OURS}/lock"
_STAMP = "%Y%m%dT%H%M%S%f"
_STAMP_LENGTH = 21
_DAY_MS = 24 * 3600 * 1000


def job_roots_folder(storage: Storage, settings: Settings) -> Path:
    """The folder of a tenant's job roots, from the tenant's storage; it need not exist."""
    folder = tenant_of(storage.root)
    if not folder:
        raise InvalidOption(
            f"{storage.root} is not a tenant of a store.",
            cause="Jobs are run for the tenants of a store.",
            remedy="Name the store by its root, and the tenant by its id.",
        )
    store = storage.root.removesuffix(f"/{TENANTS_FOLDER}/{folder}")
    if Path(store).is_absolute():
        return Path(store) / JOB_ROOTS_FOLDER / folder
    digest = hashlib.sha256(store.encode()).hexdigest()[:16]
    return settings.state_dir / JOB_ROOTS_FOLDER / digest / folder


def root_stamp(moment: datetime) -> str:
    """The prefix of a root's name: its start time, independent of its files' times."""
    return moment.astimezone(UTC).strftime(_STAMP)[:_STAMP_LENGTH]


def remove_job_roots(storage: Storage, settings: Settings, before_ms: int | None = None) -> int:
    """Remove a tenant's roots started before a moment (default: all), and return their number.

    Links that a script made are removed and not followed.
    """
    if not tenant_of(storage.root):
        return 0
    folder = job_roots_folder(storage, settings)
    roots = [root for root in _roots(folder) if before_ms is None or _began_ms(root) < before_ms]
    for root in roots:
        _remove(root)
    return len(roots)


def remove_expired_roots(folder: Path, settings: Settings, moment_ms: int) -> int:
    """Remove the unused roots in a tenant's folder older than ``job_root_days``."""
    oldest_ms = moment_ms - int(settings.job_root_days * _DAY_MS)
    roots = [root for root in _roots(folder) if _began_ms(root) < oldest_ms and not is_in_use(root)]
    for root in roots:
        _remove(root)
    return len(roots)


@contextmanager
def in_use(root: Path) -> Iterator[None]:
    """Lock a root for the block, which protects it from cleanup; the lock ends with the process."""
    make_private((root / LOCK_FILE).parent)
    (root / LOCK_FILE).touch(mode=0o600)
    with (root / LOCK_FILE).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def is_in_use(root: Path) -> bool:
    """Whether a live process has locked the root."""
    try:
        with open_regular(root, LOCK_FILE) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # there is none, or the script put something else in its place
    return False


def job_roots(folder: Path) -> list[Path]:
    """The roots in one tenant's folder, the oldest first."""
    return sorted(_roots(folder))


def _roots(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    except FileNotFoundError:
        return []


def _began_ms(root: Path) -> int:
    """The start time of a root from its name; 0 for a name without one."""
    try:
        began = datetime.strptime(root.name[:_STAMP_LENGTH], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return 0
    return int(began.timestamp() * 1000)


def _remove(root: Path) -> None:
    def writable(function: Any, path: str, _: Any) -> None:
        # A script may have made a folder read-only; its owner can still change that.
        Path(path).parent.chmod(0o700)
        function(path)

    try:
        shutil.rmtree(root, onerror=writable)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failure("remove", str(root), error) from error


# Pending data of a tenant in a service: uploads, and files of queued imports.
#
# They hold the tenant's data before it is in any version, so they go with the tenant, and with an erasure:
# nobody can tell what is in half a file.

_UPLOADS = "uploads"


def uploads_folder(root: str, settings: Settings) -> Path:
    """The folder of a store's pending uploads, with a subfolder per tenant.

    For a store in a bucket it is in the state folder of each machine that serves it.
    """
    if Path(root).is_absolute():
        return Path(root) / OURS / _UPLOADS
    return settings.state_dir / "service" / _UPLOADS


def remove_waiting(storage: Storage, settings: Settings) -> None:
    """Remove a tenant's pending uploads on this machine, given the tenant's storage."""
    folder = tenant_of(storage.root)
    if not folder:
        return
    place = uploads_folder(storage.root.removesuffix(f"/{TENANTS_FOLDER}/{folder}"), settings) / folder
    try:
        shutil.rmtree(place)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failure("remove", str(place), error) from error
