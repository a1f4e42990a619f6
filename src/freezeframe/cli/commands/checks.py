"""Checks of `freezeframe doctor`, a function each; they return what they found and what to do."""

import os
import platform
import re
import resource
import shlex
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from freezeframe.errors import FreezeframeError, SetupError
from freezeframe.extras import installed_version, unfit_packages, untested_pair
from freezeframe.settings import Settings

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check: ``ok``, ``warning`` (jobs run, with a defect) or ``error`` (they do not)."""

    part: str
    level: Level
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name, and whether jobs can run."""
        return {"part": self.part, "ok": self.level != "error", **asdict(self)}


def looked_at(part: str, look: Callable[[], Finding]) -> Finding:
    """Return the finding of a check; an error of the check itself is a finding too."""
    try:
        return look()
    except FreezeframeError as error:
        return Finding(part, "error", f"{error.problem} {error.cause}".strip(), error.remedy)
    except OSError as error:
        return Finding(part, "error", str(error), "check who may read and write there, and the disk itself")


_GIGABYTE = 1024**3
_DISK_ERROR_BYTES = _GIGABYTE // 2
_DISK_WARNING_BYTES = 5 * _GIGABYTE
_SKEW_SECONDS_MAX = 5.0
_FILES_MIN = 4096
_MEMORY_SHARE_MAX = 0.75
_UNITS = {"k": 1024, "m": 1024**2, "g": _GIGABYTE, "t": 1024**4}
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def disk(folder: Path) -> Finding:
    """Check free space and free inodes where the store is."""
    usage = shutil.disk_usage(folder)
    files = os.statvfs(folder)
    found = f"{usage.free / _GIGABYTE:.1f} GB of {usage.total / _GIGABYTE:.0f} GB free at {folder}"
    remedy = "freezeframe gc --dry-run"
    if usage.free < _DISK_ERROR_BYTES:
        return Finding("Disk", "error", found, remedy)
    if files.f_files and files.f_favail < files.f_files / 100:
        return Finding("Disk", "warning", f"{found}, but only {files.f_favail:,} files more", remedy)
    return Finding("Disk", "warning" if usage.free < _DISK_WARNING_BYTES else "ok", found, remedy)


def memory(settings: Settings) -> Finding:
    """Check that the warm server's memory fits into the machine's or the container's."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if _CGROUP_LIMIT.is_file() and (limit := _CGROUP_LIMIT.read_text().strip()).isdigit():
        total = min(total, int(limit))
    found = f"{total / _GIGABYTE:.1f} GB; the warm Spark server takes {settings.spark_memory} of it"
    wanted = _bytes(settings.spark_memory)
    if wanted is None or wanted <= total * _MEMORY_SHARE_MAX or "://" in settings.spark:
        return Finding("Memory", "ok", found)
    half = max(1, round(total / 2 / _GIGABYTE))
    return Finding("Memory", "warning", found, f"freezeframe config set spark_memory {half}g")


def clock(folder: Path) -> Finding:
    """Compare the clocks of disk and machine: they may differ on network disks, and leases need both."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".freezeframe-doctor-") as file:
        file.write(b"now")
        file.flush()
        skew = abs(Path(file.name).stat().st_mtime - time.time())
    if skew > _SKEW_SECONDS_MAX:
        found = f"the disk at {folder} and this machine differ by {skew:.0f} seconds"
        return Finding("Clock", "warning", found, "timedatectl set-ntp true, on both")
    return Finding("Clock", "ok", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def limits() -> Finding:
    """Check the limits of open files and of a file's size."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if size != resource.RLIM_INFINITY:
        found = f"no file may be larger than {size:,} bytes"
        return Finding("Limits", "warning", found, "ulimit -f unlimited")
    if files != resource.RLIM_INFINITY and files < _FILES_MIN:
        return Finding("Limits", "warning", f"{files:,} open files", f"ulimit -n {_FILES_MIN}")
    return Finding("Limits", "ok", "any number of open files" if files < 0 else f"{files:,} open files")


def state_folder(settings: Settings) -> Finding:
    """Check that the folder of the warm server's token is writable and only this user's."""
    folder = settings.state_dir
    if not folder.exists():
        return Finding("State", "ok", f"{folder} is not there yet; it is made with mode 0700")
    status = folder.stat()
    if status.st_uid != os.geteuid():
        found = f"{folder} belongs to another user"
        return Finding("State", "error", found, "freezeframe config set state_dir FOLDER --user")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("State", "error", f"{folder} cannot be written", f"chmod 700 {folder}")
    if stat.S_IMODE(status.st_mode) & 0o077:
        return Finding("State", "warning", f"others may look into {folder}", f"chmod 700 {folder}")
    return Finding("State", "ok", str(folder))


def _bytes(text: str) -> int | None:
    found = re.fullmatch(r"(\d+)([kmgt])b?", text.strip().lower())
    return None if found is None else int(found[1]) * _UNITS[found[2]]


_NAMED = ("pyspark", "pandas", "pyarrow")
_INSTALL = "pip install --upgrade freezeframe"
_CONNECT_SECONDS = 3.0
_CONNECT_PORT = 15002
_MASTER_PORT = 7077


def python() -> Finding:
    """Return the Python that runs this, and its system."""
    return Finding("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def packages() -> Finding:
    """Check that each package has a version that this freezeframe was tested with."""
    named = ", ".join(f"{name} {installed_version(name)}" for name in _NAMED)
    if wrong := unfit_packages():
        return Finding("Packages", "error", "; ".join(wrong.values()), _INSTALL)
    if pair := untested_pair():
        return Finding("Packages", "warning", f"{pair} is not tested together", _INSTALL)
    return Finding("Packages", "ok", f"freezeframe {version('freezeframe')}, {named}")


def java(settings: Settings) -> Finding:
    """Check the Java that would start Spark; a remote server needs none here."""
    from freezeframe.engine.java import find_java

    if settings.spark.startswith("sc://"):
        return Finding("Java", "ok", f"not needed: Spark is at {settings.spark.partition(';')[0]}")
    found = find_java()
    return Finding("Java", "ok", f"Java {found.version} ({found.command})")


def spark(settings: Settings) -> Finding:
    """Check that Spark runs, or that the first job can start it."""
    from freezeframe.engine.server.server import running_servers

    if "://" in settings.spark:
        return _remote(settings.spark)
    if settings.spark == "local":
        return Finding("Spark", "ok", "started by each job for itself")
    running = running_servers(settings)
    if not running:
        first_start = "" if _is_archived(settings) else ", and sooner after freezeframe spark archive"
        return Finding("Spark", "ok", f"no warm server runs; the first job starts one{first_start}")
    first = running[0]
    return Finding("Spark", "ok", f"a warm server runs: process {first.process}, {first.spark_memory}")


def _is_archived(settings: Settings) -> bool:
    """Return whether a server of this machine would find its classes archived; unknown without Java."""
    from freezeframe.engine.java import find_java
    from freezeframe.engine.server.launch import class_archive

    try:
        return class_archive(settings.state_dir, find_java()).exists()
    except FreezeframeError:
        return True


def jars(settings: Settings) -> Finding:
    """Check that Spark has the jars to reach a store in a bucket."""
    from freezeframe.engine.configuration import is_bucket, own_jars, s3_packages
    from freezeframe.engine.java import spark_version

    folder = settings.spark_jars_dir
    if found := own_jars(settings):
        return Finding("Spark's jars", "ok", f"{len(found)} jars in {folder}")
    if not is_bucket(settings):
        return Finding("Spark's jars", "ok", "none, and none are needed: the store is not a bucket")
    if settings.spark.startswith("sc://"):
        return Finding("Spark's jars", "ok", "none here: the server elsewhere brings its own")
    if folder is not None:
        remedy = "put the jars there, or leave spark_jars_dir out"
        return Finding("Spark's jars", "error", f"none in {folder}, and the store is in a bucket", remedy)
    return Finding("Spark's jars", "ok", f"Spark fetches {s3_packages(spark_version())} at its first start")


def started_spark(settings: Settings) -> Finding:
    """Check that Spark answers a query; archive its classes and start the server where there is none."""
    from freezeframe.cli.commands.spark import archive_classes
    from freezeframe.engine.connect import connect

    warning = None
    if settings.spark == "auto" and not _is_archived(settings):
        try:
            archive_classes(settings, lambda text: sys.stderr.write(f"{text}\n"))
        except (FreezeframeError, OSError) as error:  # Spark starts without, later
            warning = error
    connection = connect(settings, lambda _: None)
    try:
        count, version = connection.session.range(1).count(), connection.session.version
    finally:
        connection.close()
    answers = f"Spark {version} answers ({count} row)"
    if warning is not None:
        remedy = "jobs start later without the archive; freezeframe spark archive tries it again"
        return Finding("Spark", "warning", f"{answers}, but its classes are not archived: {warning}", remedy)
    return Finding("Spark", "ok", answers)


def _remote(url: str) -> Finding:
    place = urlsplit(url.partition("/;")[0])
    port = place.port or (_CONNECT_PORT if place.scheme == "sc" else _MASTER_PORT)
    where = f"{place.hostname}:{port}"
    try:
        socket.create_connection((place.hostname or "", port), _CONNECT_SECONDS).close()
    except OSError as error:
        return Finding(
            "Spark", "error", f"{where} cannot be reached: {error}", "freezeframe config get spark"
        )
    return Finding("Spark", "ok", f"{where} listens")


def settings_files() -> Finding:
    """Report the settings files that were read, and variables that look like settings but are unknown."""
    from freezeframe.configuration.files import project_file, user_file
    from freezeframe.configuration.names import unknown_variables

    if unknown := unknown_variables(os.environ, Settings.model_fields):
        found = f"{', '.join(item.name for item in unknown)}: no setting, so it has no effect"
        meant = "; ".join(f"{item.name}: {item.remedy}" for item in unknown)
        return Finding("Settings", "warning", found, meant)
    files = [str(file) for file in (project_file(), user_file()) if file is not None and file.is_file()]
    return Finding("Settings", "ok", ", ".join(files) or "no file; freezeframe init makes one")


def check_storage(root: str, settings: Settings) -> Finding:
    """Check that the store's storage creates files exclusively and durably."""
    from freezeframe.script.tenants import storage_at
    from freezeframe.storage import LocalStorage
    from freezeframe.storage.probe import require_atomic_create

    if "://" in root:
        storage_at(root, settings, is_asked_again=True)
        return Finding("Storage", "ok", f"{root} creates names atomically and keeps them")
    place = nearest_folder(Path(root))
    with tempfile.TemporaryDirectory(prefix=".freezeframe-doctor-", dir=place) as folder:
        require_atomic_create(LocalStorage(folder), "probe")
    return Finding("Storage", "ok", f"{place} creates files atomically and keeps them")


def kind(root: str, settings: Settings, *, is_store: bool) -> Finding | None:
    """Return the finding for a place that cannot be a store (or a tenant's directory); None if it can."""
    from freezeframe.script.tenants import storage_at
    from freezeframe.store.model import directory as names

    if "://" not in root and not Path(root).is_dir():
        return None
    storage = storage_at(root, settings)
    if names.is_store(storage) and names.is_tenant(storage):
        found = f"{root} is a store of many tenants, and one tenant's directory at the same time"
        return Finding("Storage", "error", found, _way_out(root))
    if is_store:
        names.require_no_tenant(storage)
    else:
        names.require_no_store(storage)
    return None


def _way_out(root: str) -> str:
    """Return how to move a tenant whose log was begun in a store to a directory of its own."""
    from freezeframe.store.model import directory as names

    parts = [names.TENANT_LOG_FOLDER, names.BLOBS_FOLDER, names.STAGING_FOLDER]
    parts += [names.KEYS_FOLDER, names.INPUTS_FOLDER]
    if "://" in root:
        moved = ", ".join(f"{part}/" for part in parts)
        return (
            "stop all jobs; with the bucket's own tool move every *.snapshot/ folder directly below it, "
            f"{moved} to a prefix of its own, and copy {names.FORMAT_FILE} there. The store opens again then"
        )
    place, goal = Path(root).resolve(), Path(f"{Path(root).resolve()}-tenant")
    tables = sorted(path.name for path in place.iterdir() if names.is_table_folder(path.name))
    here = [shlex.quote(str(place / part)) for part in parts if (place / part).exists()]
    there = shlex.quote(str(goal / names.OURS))
    steps = [f"mkdir -p {there}", f"mv {' '.join(here)} {there}"]
    if tables:
        steps.append(f"mv {shlex.join(str(place / table) for table in tables)} {shlex.quote(str(goal))}")
    steps.append(f"cp {shlex.quote(str(place / names.FORMAT_FILE))} {there}")
    command = " && ".join(steps)
    return f"stop all jobs, then run: {command} - the store opens again, and --dir {goal} is the tenant"


def database(settings: Settings, root: str) -> Finding:
    """Check that the control database can be reached and has this version; it is not changed."""
    try:
        from sqlalchemy import create_engine
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import SQLAlchemyError
    except ModuleNotFoundError:
        found = "none: the queue of jobs is not installed"
        return Finding("Database", "ok", found, "pip install 'freezeframe[jobs]'")

    from freezeframe.configuration.masking import mask_secrets
    from freezeframe.control.database import database_url
    from freezeframe.control.upgrade import is_current

    if "://" in root and not settings.database_url:
        found = "none: the store is in a bucket. A worker and the service need one"
        return Finding("Database", "ok", found, "freezeframe config set database_url postgresql://HOST/NAME")
    url = database_url(settings, root)
    parsed = make_url(url)
    if parsed.drivername.startswith("sqlite") and not Path(parsed.database or "").is_file():
        return Finding("Database", "ok", "none yet; the first job of the queue makes it")
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    try:
        engine = create_engine(parsed)
        with engine.connect() as connection:
            current = is_current(connection)
        engine.dispose()
    except SetupError as error:
        return Finding("Database", "error", f"{mask_secrets(url)}: {error.problem}", error.remedy)
    except (SQLAlchemyError, ImportError) as error:
        found = f"{mask_secrets(url)} cannot be used: {str(error).splitlines()[0]}"
        return Finding("Database", "error", found, "freezeframe config get database_url")
    if not current:
        found = f"{mask_secrets(url)} was made by an older freezeframe; the next job upgrades it"
        return Finding("Database", "warning", found, "freezeframe job list")
    return Finding("Database", "ok", mask_secrets(url))


def key(settings: Settings) -> Finding:
    """Check that the master key exists and only its owner may read it; it is not shown."""
    from freezeframe.store.blobs.sealing import master_key

    if settings.master_key_file is None and not settings.master_key_command:
        return Finding("Master key", "ok", "none is set; sealed files need one")
    return Finding("Master key", "ok", f"its fingerprint is {master_key(settings).fingerprint}")


def nearest_folder(path: Path) -> Path:
    """Return the folder itself, or the nearest existing one above it."""
    return next(parent for parent in (path.resolve(), *path.resolve().parents) if parent.is_dir())
