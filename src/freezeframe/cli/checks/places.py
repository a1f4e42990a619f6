"""Checks of storage: the settings, the store, the control database, the master key."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path

from freezeframe.cli.checks.machine import Finding
from freezeframe.errors import SetupError
from freezeframe.settings import Settings


def settings_files() -> Finding:
    """Report the settings files that were read, and variables that look like settings but are unknown."""
    from freezeframe.configuration.files import project_file, user_file
    from freezeframe.configuration.variables import unknown_variables

    if unknown := unknown_variables(os.environ, Settings.model_fields):
        told = f"{', '.join(item.name for item in unknown)}: no setting, so it has no effect"
        meant = "; ".join(f"{item.name}: {item.remedy}" for item in unknown)
        return Finding("Settings", "warning", told, meant)
    files = [str(file) for file in (project_file(), user_file()) if file is not None and file.is_file()]
    return Finding("Settings", "ok", ", ".join(files) or "no file; freezeframe init makes one")


def storage(root: str, settings: Settings) -> Finding:
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
    """The finding for a place that cannot be a store (or a tenant's directory); None if it can."""
    from freezeframe.script.tenants import storage_at
    from freezeframe.store.model import directory as names

    if "://" not in root and not Path(root).is_dir():
        return None
    found = storage_at(root, settings)
    if names.is_store(found) and names.is_tenant(found):
        told = f"{root} is a store of many tenants, and one tenant's directory at the same time"
        return Finding("Storage", "error", told, _way_out(root))
    if is_store:
        names.require_no_tenant(found)
    else:
        names.require_no_store(found)
    return None


def _way_out(root: str) -> str:
    """How to move a tenant whose log was begun in a store to a directory of its own."""
    from freezeframe.store.model import directory as names

    parts = [
        names.TENANT_LOG_FOLDER,
        names.BLOBS_FOLDER,
        names.STAGING_FOLDER,
        names.KEYS_FOLDER,
    ]
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
        told = "none: the queue of jobs is not installed"
        return Finding("Database", "ok", told, "pip install 'freezeframe[jobs]'")

    from freezeframe.configuration.masking import mask_secrets
    from freezeframe.control.database import database_url
    from freezeframe.control.upgrade import is_current

    if "://" in root and not settings.database_url:
        told = "none: the store is in a bucket. A worker and the service need one"
        return Finding("Database", "ok", told, "freezeframe config set database_url postgresql://HOST/NAME")
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
        told = f"{mask_secrets(url)} cannot be used: {str(error).splitlines()[0]}"
        return Finding("Database", "error", told, "freezeframe config get database_url")
    if not current:
        told = f"{mask_secrets(url)} was made by an older freezeframe; the next job upgrades it"
        return Finding("Database", "warning", told, "freezeframe job list")
    return Finding("Database", "ok", mask_secrets(url))


def key(settings: Settings) -> Finding:
    """Check that the master key exists and only its owner may read it; it is not shown."""
    from freezeframe.store.blobs.sealing import master_key

    if settings.master_key_file is None and not settings.master_key_command:
        return Finding("Master key", "ok", "none is set; sealed files need one")
    return Finding("Master key", "ok", f"its fingerprint is {master_key(settings).fingerprint}")


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the nearest existing one above it."""
    return next(parent for parent in (path.resolve(), *path.resolve().parents) if parent.is_dir())
