"""Paths inside a tenant's snapshot directory, all defined here.

    Account.snapshot/        a stream: a plain Delta table
    _freezeframe/format.json   which format this is
    _freezeframe/log/          the tenant log, N.json by put-if-absent
    _freezeframe/staging/      leases of transactions under way, long commits before they are landed
    _freezeframe/blobs/        <writeId>/<name>: the bytes of files, never changed once written
    _freezeframe/keys/         the data key of sealed files, wrapped
    _freezeframe/inputs/       inputs of jobs that are kept for a time

and in a store, which holds many tenants:

    tenants/<folder>/            a tenant's snapshot directory, under a name that says nothing
    _freezeframe/registry/       which tenant of which environment has which folder
    job-roots/<folder>/          the folders that a tenant's scripts ran in (on a local disk; ``job_folders``)

Names are relative to the tenant's storage (the store's, for the last three). See the design's "On disk".
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, Self
from weakref import WeakKeyDictionary

from freezeframe.errors import CorruptLog, FormatTooNew, InvalidOption
from freezeframe.identifiers import StreamName
from freezeframe.settings import Settings
from freezeframe.storage import Storage
from freezeframe.storage.local import FileIdentity, failure, file_identity, make_private
from freezeframe.storage.probe import require_proven
from freezeframe.storage.safe_open import open_regular

OURS = "_freezeframe"
FORMAT_FILE = f"{OURS}/format.json"
TENANT_LOG_FOLDER = f"{OURS}/log"
STAGING_FOLDER = f"{OURS}/staging"
BLOBS_FOLDER = f"{OURS}/blobs"
KEYS_FOLDER = f"{OURS}/keys"
INPUTS_FOLDER = f"{OURS}/inputs"
REGISTRY_FOLDER = f"{OURS}/registry"
TENANTS_FOLDER = "tenants"
JOB_ROOTS_FOLDER = "job-roots"
JOB_FILE = f"{OURS}/job.json"
PULLED_FILE = f"{OURS}/pulled.json"
"""It is in the folder of a job that was pulled (``runs.pulled_jobs``)."""
PULLED_STORE = "store"
"""The store in that folder."""
_TENANT_ROOT = re.compile(rf"(?:^|/){TENANTS_FOLDER}/([0-9a-f]{{32}})$")
PARQUET, CSV = ".snapshot.parquet", ".snapshot.csv"
_TABLE_SUFFIX = ".snapshot"


def table_folder(stream: StreamName) -> str:
    """Return the folder of a stream's Delta table."""
    return f"{stream}{_TABLE_SUFFIX}"


class TablePlace(Protocol):
    """A Delta table's folder with the storage that it is in: a snapshot or a log of it says both."""

    @property
    def storage(self) -> Storage: ...  # noqa: D102 - described in the class
    @property
    def table(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class StreamTable:
    """The place of a stream's table, which is not read."""

    storage: Storage
    table: str

    @classmethod
    def of(cls, storage: Storage, stream: StreamName) -> Self:
        """Return the place of the stream's table in its tenant's storage."""
        return cls(storage, table_folder(stream))


def snapshot_paths(stream: str) -> tuple[str, ...]:
    """Return the names of a stream's snapshot files; the first that exists counts, as for gluestick."""
    return tuple(f"{stream}{suffix}" for suffix in (PARQUET, CSV))


def table_name(folder: str) -> str | None:
    """Return the stream whose table a folder would be; None for any other folder."""
    return folder.removesuffix(_TABLE_SUFFIX) if folder.endswith(_TABLE_SUFFIX) else None


def is_table_folder(name: str) -> bool:
    """Return whether a folder of that name, directly in a tenant's directory, is a stream's table."""
    return name.casefold().endswith(_TABLE_SUFFIX)


def is_working_copy(directory: str | os.PathLike[str]) -> bool:
    """Return whether a directory is the working copy of a job that is run."""
    return (Path(directory) / JOB_FILE).is_file()


def lease_file(write_id: str) -> str:
    """Return the lease file of an open transaction."""
    return f"{STAGING_FOLDER}/{write_id}.json"


def long_commit_file(sha256: str) -> str:
    """Return a table's commit that is too long for the entry, by the SHA-256 of its bytes."""
    return f"{STAGING_FOLDER}/{sha256}.commit"


def blob_file(blob: str) -> str:
    """Return the file of a blob, by the blob's name."""
    return f"{BLOBS_FOLDER}/{blob}"


def key_file(number: int) -> str:
    """Return a record of the tenant's wrapped data key."""
    return f"{KEYS_FOLDER}/{number:020d}.json"


def tenant_folder(folder: str) -> str:
    """Return the snapshot directory of a tenant in a store, by its folder in the registry."""
    return f"{TENANTS_FOLDER}/{folder}"


def tenant_of(root: str) -> str:
    """Return the folder name of a store's tenant, from its storage's root; else empty."""
    found = _TENANT_ROOT.search(root)
    return found.group(1) if found else ""


# A directory or bucket is one tenant's or a store of many, never both. It is checked when it is opened,
# and again before the first entry of either log is written.


def is_store(storage: Storage) -> bool:
    """Return whether the storage has a store's registry."""
    return next(iter(storage.list_from(REGISTRY_FOLDER)), None) is not None


def is_tenant(storage: Storage) -> bool:
    """Return whether the storage has a tenant's log, or is the folder of a store's tenant."""
    return bool(tenant_of(storage.root)) or next(iter(storage.list_from(TENANT_LOG_FOLDER)), None) is not None


def require_no_store(storage: Storage) -> None:
    """Refuse to use a store of many tenants as the directory of one."""
    if is_store(storage):
        raise InvalidOption(
            f"{storage.root} is a store of many tenants, not one tenant's directory.",
            cause="A registry of tenants is in it.",
            remedy="Name the store by --root and the tenant by --tenant; in Python: "
            "freezeframe.open(root).tenant(id).",
        )


def require_no_tenant(storage: Storage) -> None:
    """Refuse to use one tenant's directory as a store of many."""
    if not is_tenant(storage):
        return
    if is_store(storage):
        raise InvalidOption(
            f"{storage.root} is a store of many tenants, and one tenant's directory at the same time.",
            cause="A registry of tenants and a tenant's log are in it.",
            remedy="freezeframe doctor --root with this path explains how to move the tenant out.",
        )
    raise InvalidOption(
        f"{storage.root} is one tenant's directory, not a store of many.",
        cause="A tenant log is in it.",
        remedy="Name it by --dir (in Python: freezeframe.open_tenant), or name another directory.",
    )


def require_own_place(storage: Storage) -> None:
    """Refuse to begin a tenant or a store inside another's folders: what belongs to those is swept by them.

    That is a store's folder of tenants, and within a tenant's or a store's own folders or a stream's table.
    """
    path = storage.local_path("")
    if path is None:
        return
    path = path.resolve()
    for folder in (path, *path.parents):
        store = folder.parent / REGISTRY_FOLDER
        if folder.name == TENANTS_FOLDER and store.is_dir():
            owner = f"the store {folder.parent}"
        elif folder.name == OURS:
            owner = f"{folder.parent}, which freezeframe keeps its own files in"
        elif is_table_folder(folder.name) and (folder / "_delta_log").is_dir():
            owner = f"the stream {folder}"
        else:
            continue
        raise InvalidOption(
            f"{path} is inside of {owner}.",
            cause="What is written there would be taken for a part of that, and deleted with it.",
            remedy="Name a directory outside of it; a store's tenant by --root and --tenant, in Python: "
            "freezeframe.open(root).tenant(id).",
            path=str(path),
        )


# ``_freezeframe/format.json`` holds the format version, so that an older release refuses the directory.

FORMAT_VERSION = 1
_seen: WeakKeyDictionary[Storage, tuple[str | None, FileIdentity | None]] = WeakKeyDictionary()
# ``jobs``: entries can change several streams, files and the tenant itself. ``chain``: each entry names the
# hash of its predecessor, so a release that writes no chain must not add entries.
_FEATURES = ("tenantLog", "jobs", "chain")
_CONTENT = {"formatVersion": FORMAT_VERSION, "features": list(_FEATURES), "minimumFreezeframe": "0.1.0"}


def require_known_format(storage: Storage) -> bool:
    """Return whether the directory has the current format; a missing or older format is accepted too.

    It is called before every change, so that a running process stops after a newer freezeframe wrote. On a
    disk an unchanged file is not read again.
    """
    path, known = _seen.get(storage) or (_path(storage), None)
    now = None if path is None else file_identity(path)
    if known is not None and known == now:
        return True
    try:
        content = storage.read(FORMAT_FILE)
    except FileNotFoundError:
        return False
    is_present = _has_present_format(storage, content)
    if is_present:
        _seen[storage] = (path, now)
    return is_present


def _path(storage: Storage) -> str | None:
    path = storage.local_path(FORMAT_FILE)
    return None if path is None else str(path)


def _has_present_format(storage: Storage, content: bytes) -> bool:
    try:
        record = json.loads(content)
        version, features = int(record["formatVersion"]), set(record["features"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLog(
            f"{FORMAT_FILE} in {storage.root} cannot be read.",
            cause=f"It is damaged ({error}).",
            remedy="Restore it from a backup; every directory of format 1 has the same one.",
            file=FORMAT_FILE,
        ) from error
    unknown = sorted(features - set(_FEATURES))
    if version > FORMAT_VERSION or unknown:
        raise FormatTooNew(
            f"{storage.root} was written by a newer freezeframe.",
            cause=f"Its format is {version} with the unknown features {unknown}; "
            f"this version knows format {FORMAT_VERSION}.",
            remedy=f"Install freezeframe {record.get('minimumFreezeframe', 'of that format')} or later.",
        )
    return features >= set(_FEATURES)


def ensure_format(storage: Storage, *, probe: bool = True) -> None:
    """Write the format file if absent; the storage of a new directory is probed first.

    Without ``probe`` the storage is part of one that was probed before.

    A directory of an older freezeframe is raised to the current format, so that the older release refuses it.
    """
    if require_known_format(storage):
        return
    if probe:
        require_proven(storage, OURS)
    content = json.dumps(_CONTENT, indent=2).encode() + b"\n"
    try:
        storage.put_if_absent(FORMAT_FILE, content)
    except FileExistsError:
        # Another process created the directory concurrently, or an older freezeframe did.
        if not require_known_format(storage):
            storage.replace(FORMAT_FILE, content)


# A job's root holds the tenant's data in plain form: input, output, working copy and log. A local store keeps
# the roots beside its tenants; for a bucket they are in the state folder of the machine that ran the job.
# Deleting the tenant removes all of them, an erasure the older ones, and ``job_root_days`` expired ones.

LOCK_FILE = f"{OURS}/lock"
_STAMP = "%Y%m%dT%H%M%S%f"
_STAMP_LENGTH = 21
_DAY_MS = 24 * 3600 * 1000


def job_roots_folder(storage: Storage, settings: Settings) -> Path:
    """Return the folder of a tenant's job roots, from the tenant's storage; it need not exist."""
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


def unlisted_roots(settings: Settings) -> Path:
    """Return the folder of the roots of dry runs for tenants that are in no store."""
    return settings.state_dir / JOB_ROOTS_FOLDER / "dry-run"


def root_stamp(moment: datetime) -> str:
    """Return the prefix of a root's name: its start time, independent of its files' times."""
    return moment.astimezone(UTC).strftime(_STAMP)[:_STAMP_LENGTH]


def remove_job_roots(storage: Storage, settings: Settings, before_ms: int | None = None) -> int:
    """Remove a tenant's roots started before a moment (default: all), and return their number.

    Symbolic links in them are removed, not followed.
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
    """Return whether a live process has locked the root."""
    try:
        with open_regular(root, LOCK_FILE) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # there is none, or the script put something else in its place
    return False


def job_roots(folder: Path) -> list[Path]:
    """Return the roots in one tenant's folder, the oldest first."""
    return sorted(_roots(folder))


def _roots(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    except FileNotFoundError:
        return []


def _began_ms(root: Path) -> int:
    """Return the start time of a root from its name; 0 for a name without one."""
    try:
        began = datetime.strptime(root.name[:_STAMP_LENGTH], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return 0
    return int(began.timestamp() * 1000)


def _remove(root: Path) -> None:
    def writable(function: Any, path: str, _: Any) -> None:
        # A script may have made a folder read-only, or unreadable; its owner can still change that.
        Path(path).parent.chmod(0o700)
        if function in {os.open, os.scandir}:
            Path(path).chmod(0o700)
            shutil.rmtree(path, onerror=writable)
        else:
            function(path)

    try:
        shutil.rmtree(root, onerror=writable)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failure("remove", str(root), error) from error


# Uploads hold the tenant's data before any version does, so a deletion and an erasure remove them as well.

_UPLOADS = "uploads"


def uploads_folder(root: str, settings: Settings) -> Path:
    """Return the folder of a store's pending uploads, with a subfolder per tenant.

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
    uploads = uploads_folder(storage.root.removesuffix(f"/{TENANTS_FOLDER}/{folder}"), settings) / folder
    try:
        shutil.rmtree(uploads)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failure("remove", str(uploads), error) from error
