"""The tenant, the store and the control database that a command works on."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freezeframe.cli.options import Directory, Environment, Root, TenantOption, expand
from freezeframe.cli.progress import progress
from freezeframe.control.control_file import control_file
from freezeframe.errors import FreezeframeError, InputNotFound, InvalidOption, NotFound, TenantNotFound

if TYPE_CHECKING:
    from freezeframe.cli.output import Output
    from freezeframe.control.database import ControlDatabase
    from freezeframe.control.job import QueuedJob
    from freezeframe.control.queue import JobQueue
    from freezeframe.control.schedules import Schedules
    from freezeframe.settings import Settings
    from freezeframe.storage import Storage
    from freezeframe.store import Tenant
    from freezeframe.store.maintenance.verification import Verification
    from freezeframe.store.snapshot_store import Store


_HERE = Path("snapshots")


@dataclass(frozen=True, slots=True)
class TenantLocation:
    """Location of a tenant: a bare directory, or a store's root with a tenant's id."""

    directory: Path | None = None
    root: str | None = None
    tenant_id: str | None = None
    environment: str | None = None

    def __post_init__(self) -> None:
        if self.root is None and (self.tenant_id is not None or self.environment is not None):
            raise InvalidOption(
                "A tenant's id needs its store.",
                cause="--tenant or --env is given without --root.",
                remedy="Name the store by --root, or the tenant's own directory by --dir.",
            )
        if self.root is not None and self.directory is not None:
            raise InvalidOption(
                "--dir and --root cannot be used together.",
                cause="--dir names a tenant's own directory, --root a store of many tenants.",
                remedy="Give one of them.",
            )
        if self.root is not None and self.tenant_id is None:
            raise InvalidOption(
                "The store's tenant is not named.",
                remedy="Name it by --tenant or FREEZEFRAME_TENANT; freezeframe tenant list --root shows all.",
            )

    @property
    def name(self) -> str:
        """The tenant's id, or the path of its directory."""
        return self.tenant_id or str(self._folder)

    def __str__(self) -> str:
        return self.name if self.root is None else f"{self.tenant_id} in {self.root}"

    def tenant(self) -> Tenant:
        """Return the tenant, which must be there."""
        if self.root is not None and self.tenant_id is not None:
            return _tenant_of(open_store(self.root, self.environment), self.tenant_id)
        self._require_folder()
        from freezeframe.script.tenants import open_tenant

        return open_tenant(self._folder)

    @contextmanager
    def tenant_to_fill(self, output: Output, *, dry_run: bool) -> Iterator[Tenant]:
        """Yield the tenant; a store's that is not there is made, as by a run, and kept with what it gets.

        For a dry run it is made for the block alone.
        """
        if self.root is None or self.tenant_id is None:
            yield self.tenant()
            return
        store = open_store(self.root, self.environment, create=not dry_run)
        if store.folder(self.tenant_id) is not None:
            yield store.tenant(self.tenant_id)
            return
        from freezeframe.configuration.names import nearest
        from freezeframe.store.tenant_log.lease import live_leases

        similar = nearest(self.tenant_id, store.tenants())
        token = uuid.uuid4().hex
        tenant = (
            store.unlisted_tenant(self.tenant_id, token)
            if dry_run
            else store.tenant(self.tenant_id, create=True)
        )
        is_kept = False
        try:
            yield tenant
        finally:
            if dry_run:
                store.remove_unlisted(token)
            else:
                is_kept = tenant.version >= 0 or bool(live_leases(tenant.context.storage))
                if not is_kept:
                    store.delete_tenant(self.tenant_id)
        if dry_run or is_kept:
            made = "A real import would make" if dry_run else "Made"
            output.line(f"{made} a new tenant: {self.tenant_id}.{similar_line(similar)}")

    def verify(self) -> Verification:
        """Name what is damaged of the tenant, even if its log cannot be opened; see ``Tenant.verify``."""
        if self.root is not None and self.tenant_id is not None:
            return open_store(self.root, self.environment).verify_tenant(self.tenant_id)
        from freezeframe.settings import load_settings
        from freezeframe.store.maintenance.verification import verify_tenant

        return verify_tenant(self._storage(), load_settings())

    def _storage(self) -> Storage:
        self._require_folder()
        from freezeframe.storage import LocalStorage
        from freezeframe.store.model.directory import require_known_format, require_no_store

        storage = LocalStorage(self._folder)
        require_known_format(storage)
        require_no_store(storage)
        return storage

    @property
    def _folder(self) -> Path:
        if self.directory is None:
            return _HERE
        from freezeframe.script.tenants import tenant_directory

        return tenant_directory(self.directory)

    def _require_folder(self) -> None:
        if not self._folder.is_dir():
            no_tenant = "No tenant is named, so one in this directory was looked for."
            raise InputNotFound(
                f"There is no directory {self._folder}.",
                cause=no_tenant if self.directory is None else "",
                remedy="Name a store's tenant by --tenant (freezeframe tenant create NAME makes one), or the"
                " directory of a tenant by --dir.",
                path=str(self._folder),
            )


def similar_line(similar: Sequence[str]) -> str:
    """Return the sentence about tenants whose ids are like a new one's; empty without any."""
    return f" The store has {' and '.join(similar)}: is one of them meant?" if similar else ""


def location_of(
    directory: Path | None, root: str | None, tenant_id: str | None, environment: str | None
) -> TenantLocation:
    """Return the location that the options name, completed from the settings."""
    if directory is None:
        from freezeframe.settings import load_settings

        tenant_id = tenant_id or load_settings().tenant or None
        if tenant_id is not None:
            root = root or load_settings().root
    return TenantLocation(directory, root, tenant_id, environment)


def open_store(root: str, environment: str | None, *, create: bool = False) -> Store:
    """Return the store at a root; with ``create`` it need not exist yet."""
    if not create:
        require_root(root)
    from freezeframe.script import tenants

    if environment is None:
        from freezeframe.settings import load_settings

        environment = load_settings().environment
    with progress(""):
        return tenants.open(root, environment)


def require_root(root: str) -> None:
    """Require that a local root exists; a bucket is checked on first use."""
    from freezeframe.storage.location import local_directory

    place = local_directory(root)
    if place is not None and not place.exists():
        raise InputNotFound(
            f"There is no directory {root}.",
            cause="The store has not been created, or is in another directory.",
            remedy="Name a store by --root; freezeframe run and tenant create create one.",
            path=root,
        )


def _tenant_of(store: Store, tenant_id: str) -> Tenant:
    """Return the store's tenant; the error suggests a similar id."""
    try:
        return store.tenant(tenant_id)
    except TenantNotFound as error:
        from freezeframe.configuration.names import nearest

        near = nearest(tenant_id, store.tenants())
        if not near:
            raise
        remedy = f"Did you mean {' or '.join(near)}?"
        raise TenantNotFound(error.problem, cause=error.cause, remedy=remedy, tenant=tenant_id) from None


def at_location(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with options that name a tenant in place of its parameter ``location``.

    Its errors name options as flags.
    """

    @functools.wraps(command)
    def carried_out(**arguments: Any) -> None:
        try:
            command(**arguments)
        except FreezeframeError as error:
            from freezeframe.store.model.update_options import as_flag, say_options

            say_options(error, as_flag)
            raise

    options = {
        "directory": Directory,
        "root": Root,
        "tenant_id": TenantOption,
        "environment": Environment,
    }
    return expand(carried_out, "location", options, location_of)


@dataclass(frozen=True, slots=True)
class Control:
    """An open control database with its queue, schedules and settings."""

    settings: Settings
    database: ControlDatabase
    environment: str

    @property
    def queue(self) -> JobQueue:
        """The jobs."""
        from freezeframe.control.queue import JobQueue

        return JobQueue(self.database)

    @property
    def schedules(self) -> Schedules:
        """The schedules."""
        from freezeframe.control.schedules import Schedules

        return Schedules(self.database)

    def job(self, job_id: str, tenant: str | None) -> QueuedJob:
        """Return the job of that id; the tenant is needed only if two tenants have a job of the same id."""
        if tenant is None:
            from freezeframe.control.job import JobFilter

            wanted = JobFilter(environment=self.environment, job_id=job_id)
            found = self.queue.list(wanted, limit=2).jobs
            if len(found) > 1:
                raise InvalidOption(
                    f"Several tenants have a job {job_id}.", remedy="Name the tenant by --tenant."
                )
            if not found:
                raise NotFound(
                    f"There is no job {job_id}.", remedy="See freezeframe job list.", code="JOB_NOT_FOUND"
                )
            return found[0]
        return self.queue.get(self.environment, tenant, job_id)


@contextmanager
def control(root: str, environment: str | None = None, *, create: bool = False) -> Iterator[Control]:
    """Yield the control database of the store at ``root``, closed at the end.

    With ``create`` neither need be there yet; without, a mistyped root is an error and no new store.
    """
    from freezeframe.settings import load_settings

    settings = load_settings(root=root, environment=environment)
    if not create and not settings.database_url:
        require_root(root)
    with _open_control(root, settings) as found:
        yield found


@contextmanager
def present_control(root: str, environment: str | None = None) -> Iterator[Control | None]:
    """Yield the control database of the store at ``root`` as ``control`` gives it; None where it has none."""
    from freezeframe.settings import load_settings

    settings = load_settings(root=root, environment=environment)
    if not settings.database_url and ("://" in root or not control_file(root).is_file()):
        yield None
        return
    with _open_control(root, settings) as found:
        yield found


@contextmanager
def _open_control(root: str, settings: Settings) -> Iterator[Control]:
    from freezeframe.control.database import ControlDatabase, database_url

    database = ControlDatabase.open(database_url(settings, root))
    try:
        yield Control(settings, database, settings.environment)
    finally:
        database.close()


def forget_jobs(root: str, environment: str, tenant: str) -> None:
    """Take a tenant's schedules and jobs out of the control database of its store, where it has one."""
    with present_control(root, environment) as found:
        if found is not None:
            found.schedules.forget(environment, tenant)  # first, because due schedules create jobs
            found.queue.forget(environment, tenant)
