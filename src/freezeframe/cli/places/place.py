"""The store and tenant that a command means, and the options that name them."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.errors import FreezeframeError, InputNotFound, InvalidOption, TenantNotFound

if TYPE_CHECKING:
    from freezeframe.storage import Storage
    from freezeframe.store import Tenant
    from freezeframe.store.maintenance.verification import Verification
    from freezeframe.store.snapshot_store import Store
    from freezeframe.store.tenant_log.history import Point


# Logging options of the long-running commands.


class LogFormatName(StrEnum):
    """Format of log lines."""

    TEXT = "text"
    JSON = "json"


class LogLevelName(StrEnum):
    """Lowest level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogFormatOption = Annotated[
    LogFormatName | None, typer.Option("--log-format", help="text or json (default: from the settings).")
]
LogLevelOption = Annotated[
    LogLevelName | None,
    typer.Option("--log-level", help="info has a line for each request and job (default: warning)."),
]


def begin_logging(kind: LogFormatName | None, level: LogLevelName | None, root: str) -> None:
    """Write this process's log, and those of the processes that it starts, as the options or settings say."""
    from freezeframe.observation import configure_logging
    from freezeframe.settings import load_settings

    for name, value in (("FORMAT", kind), ("LEVEL", level)):
        if value is not None:
            os.environ[f"FREEZEFRAME_LOG_{name}"] = value.value
    settings = load_settings(root=root)
    configure_logging(settings.log_format, settings.log_level)


# Shell completion of tenants and streams of the store or folder that the line names.
#
# A shell asks while somebody types, so nothing here fails, prints or starts anything; and what is offered
# is
# put into a command line, so names with signs that mean something to a shell are left out.

_NAMES_MAX = 200
_PLAIN = re.compile(r"[\w.@+-]+")


def tenant_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of the store's tenants that begin with ``incomplete``."""
    try:
        return _plain(_store(ctx.params).tenants(incomplete, None, _NAMES_MAX), incomplete)
    except Exception:  # noqa: BLE001 - no answer is the answer
        return []


def stream_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of the tenant's streams that begin with ``incomplete``."""
    try:
        return _plain(_tenant(ctx.params).streams(), incomplete)
    except Exception:  # noqa: BLE001 - no answer is the answer
        return []


def _plain(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]


def _store(given: dict[str, Any]) -> Any:
    from freezeframe.script import tenants as stores
    from freezeframe.settings import load_settings

    settings = load_settings(root=given.get("root"), environment=given.get("environment"))
    if "://" not in settings.root and not Path(settings.root).is_dir():
        raise FileNotFoundError(settings.root)
    return stores.open(settings.root, settings.environment)


def _tenant(given: dict[str, Any]) -> Any:
    if given.get("tenant_id") is not None:
        return _store(given).tenant(given["tenant_id"])
    from freezeframe.script.tenants import open_tenant

    folder = given.get("directory") or Path("snapshots")
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    return open_tenant(folder)


# The tenant of a command: one set of options for all commands.
#
# A tenant is a bare directory (``--dir``), or one of a store's (``--tenant``, and ``--root`` if it is not
# the
# store of the settings). Commands take a ``Place`` and say nothing of options; ``at_place`` puts them on
# the
# command line.

_HERE = Path("snapshots")
_COMPARED_IDS_MAX = 1000


def _store_of_the_settings() -> str:
    from freezeframe.settings import load_settings

    return load_settings().root


def _tenant_of_the_settings() -> str:
    from freezeframe.settings import load_settings

    tenant = load_settings().tenant
    if not tenant:
        raise InvalidOption(
            "The tenant is not named.",
            remedy="Name it by --tenant, FREEZEFRAME_TENANT, or tenant in the project's freezeframe.toml.",
        )
    return tenant


Directory = Annotated[
    Path | None, typer.Option("--dir", help="The tenant's own directory (default: snapshots).")
]
Root = Annotated[
    str | None,
    typer.Option("--root", help="A store: a directory, or s3://bucket/prefix (default: from the settings)."),
]
TenantOption = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        help="The tenant's id in the store (default: from the settings).",
        autocompletion=tenant_ids,
    ),
]
NeededTenant = Annotated[
    str,
    typer.Option(
        "--tenant",
        help="The tenant's id (default: from the settings).",
        autocompletion=tenant_ids,
        default_factory=_tenant_of_the_settings,
        show_default=False,
    ),
]
Environment = Annotated[
    str | None, typer.Option("--env", help="The store's environment (default: from the settings).")
]
StoreRoot = Annotated[
    str,
    typer.Option(
        "--root",
        help="The store: a directory, or s3://bucket/prefix (default: from the settings).",
        default_factory=_store_of_the_settings,
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Place:
    """Location of a tenant: a bare directory, or a store's root with a tenant's id."""

    directory: Path | None = None
    root: str | None = None
    tenant_id: str | None = None
    environment: str | None = None

    def __post_init__(self) -> None:
        if self.root is None and (self.tenant_id is not None or self.environment is not None):
            raise InvalidOption(
                "A tenant's id means nothing without its store.",
                cause="--tenant or --env is given without --root.",
                remedy="Name the store by --root, or the tenant's own directory by --dir.",
            )
        if self.root is not None and self.directory is not None:
            raise InvalidOption(
                "--dir and --root cannot be used together.",
                cause="The one is a tenant's own directory, the other a store of many.",
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
        """The tenant, which must be there."""
        if self.root is not None and self.tenant_id is not None:
            return _tenant_of(open_store(self.root, self.environment), self.tenant_id)
        self._require_folder()
        from freezeframe.script.tenants import open_tenant

        return open_tenant(self._folder)

    def verify(self) -> Verification:
        """Name what is damaged of the tenant, even where its log cannot be opened; see ``Tenant.verify``."""
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
        return _HERE if self.directory is None else self.directory

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


def place_of(
    directory: Path | None, root: str | None, tenant_id: str | None, environment: str | None
) -> Place:
    """The place that the options name, completed from the settings; raises as ``Place``."""
    if directory is None:
        from freezeframe.settings import load_settings

        tenant_id = tenant_id or load_settings().tenant or None
        if tenant_id is not None:
            root = root or load_settings().root
    return Place(directory, root, tenant_id, environment)


def open_store(root: str, environment: str | None, *, create: bool = False) -> Store:
    """The store at a root; with ``create`` it need not exist yet."""
    if not create:
        require_root(root)
    from freezeframe.script import tenants as stores

    if environment is None:
        from freezeframe.settings import load_settings

        environment = load_settings().environment
    return stores.open(root, environment)


def require_root(root: str) -> None:
    """Require that a local root exists; a bucket is checked on first use."""
    if "://" not in root and not Path(root).exists():
        raise InputNotFound(
            f"There is no directory {root}.",
            cause="No store was made there yet, or it is somewhere else.",
            remedy="Name a store by --root; freezeframe run and tenant create make a new one.",
            path=root,
        )


def _tenant_of(store: Store, tenant_id: str) -> Tenant:
    """The store's tenant; the error suggests a similar id."""
    try:
        return store.tenant(tenant_id)
    except TenantNotFound as error:
        from freezeframe.configuration.layers import nearest

        near = nearest(tenant_id, store.tenants("", None, _COMPARED_IDS_MAX))
        if not near:
            raise
        remedy = f"Did you mean {' or '.join(near)}?"
        raise TenantNotFound(error.problem, cause=error.cause, remedy=remedy, tenant=tenant_id) from None


def at_place(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of a place in place of its parameter ``place``.

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
    return expand(carried_out, "place", options, place_of)


def expand(
    command: Callable[..., None], name: str, options: Mapping[str, Any], make: Callable[..., Any]
) -> Callable[..., None]:
    """The command with ``options`` (annotations by name, None by default) in place of one parameter.

    It gets what ``make`` makes of their values. A place's options come last.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in signature.parameters.values()
    ]
    where = next(number for number, one in enumerate(own) if one.name == name)
    added = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for option, annotation in options.items()
    ]
    rest = own[where + 1 :]
    parameters = [*own[:where], *rest, *added] if where == 0 else [*own[:where], *added, *rest]

    @functools.wraps(command)
    def expanded(**arguments: Any) -> None:
        given = {option: arguments.pop(option) for option in options}
        command(**{name: make(**given)}, **arguments)

    # Typer reads a command's parameters from these two.
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    expanded.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return expanded


# Options and arguments that several commands share.

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only report what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation; required without a terminal.")]
Who = Annotated[str | None, typer.Option("--who", help="The author, for the history.")]
Message = Annotated[str | None, typer.Option("--message", help="The reason, for the history.")]
StreamArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The stream's name, for example Account.", autocompletion=stream_names
    ),
]
SeenVersion = Annotated[
    int | None, typer.Option("--version", min=0, help="The tenant's version (default: the newest).")
]
StreamVersion = Annotated[
    int | None,
    typer.Option(
        "--stream-version", min=0, help="The stream's own version number, in place of the tenant's."
    ),
]
AsOf = Annotated[str | None, typer.Option(help="A moment in ISO form; UTC without a zone.")]
_POINT = "A version of the tenant, a tag, or a moment (ISO; UTC without a zone)"
TenantVersion = Annotated[str, typer.Argument(metavar="VERSION", help=f"{_POINT}.")]
LaterVersion = Annotated[
    str | None, typer.Argument(metavar="LATER", help=f"{_POINT} (default: the newest version).")
]


def point(text: str) -> Point:
    """A version or a moment from an argument: digits are a version's number, even if a tag has that name."""
    return int(text) if text.isdecimal() else text
