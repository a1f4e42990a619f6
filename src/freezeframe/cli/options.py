"""Options and arguments that several commands share, those of an update among them."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from freezeframe.cli.output import require_yes
from freezeframe.errors import InvalidOption
from freezeframe.store.model.update_options import OPTION_HELP, UpdateOptions, option_kinds

if TYPE_CHECKING:
    from freezeframe.store.tenant_log.history import Point


LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormatOption = Annotated[
    LogFormat | None, typer.Option("--log-format", help="text or json (default: from the settings).")
]
LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option("--log-level", help="info has a line for each request and job (default: warning)."),
]


def begin_logging(kind: LogFormat | None, level: LogLevel | None, root: str) -> None:
    """Write this process's log, and those of the processes that it starts, as the options or settings say."""
    from freezeframe.observation import configure_logging
    from freezeframe.settings import load_settings

    for name, value in (("FORMAT", kind), ("LEVEL", level)):
        if value is not None:
            os.environ[f"FREEZEFRAME_LOG_{name}"] = value
    settings = load_settings(root=root)
    configure_logging(settings.log_format, settings.log_level)


# A shell completes while a person types, so nothing here fails, prints or starts anything. The offered names
# become a part of a command line, so names with characters that a shell interprets are left out.

_NAMES_MAX = 200
_PLAIN = re.compile(r"[\w.@+-]+")


def tenant_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of the store's tenants that begin with ``incomplete``."""
    try:
        return _plain(_store(ctx.params).tenants(incomplete, None, _NAMES_MAX), incomplete)
    except Exception:  # noqa: BLE001 - nothing is offered then
        return []


def stream_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the tenant's streams that begin with ``incomplete``."""
    try:
        return _plain(_tenant(ctx.params).streams(), incomplete)
    except Exception:  # noqa: BLE001 - nothing is offered then
        return []


def _plain(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]


def _store(parameters: dict[str, Any]) -> Any:
    from freezeframe.script import tenants
    from freezeframe.settings import load_settings

    settings = load_settings(root=parameters.get("root"), environment=parameters.get("environment"))
    if "://" not in settings.root and not Path(settings.root).is_dir():
        raise FileNotFoundError(settings.root)
    return tenants.open(settings.root, settings.environment)


def _tenant(parameters: dict[str, Any]) -> Any:
    if parameters.get("tenant_id") is not None:
        return _store(parameters).tenant(parameters["tenant_id"])
    from freezeframe.script.tenants import open_tenant

    folder = parameters.get("directory") or Path("snapshots")
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    return open_tenant(folder)


def _store_of_the_settings() -> str:
    from freezeframe.settings import load_settings

    return load_settings().root


def tenant_of_the_settings() -> str:
    """Return the tenant that the settings name."""
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
        default_factory=tenant_of_the_settings,
        show_default=False,
    ),
]
SomeTenants = Annotated[
    list[str] | None,
    typer.Option(
        "--tenant",
        help="The tenant's id, or several: may be repeated (default: from the settings).",
        autocompletion=tenant_ids,
    ),
]
OfTenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        help="The tenant; needed by job replay, by others only where two have such a job.",
        autocompletion=tenant_ids,
    ),
]
AllTenants = Annotated[bool, typer.Option("--all-tenants", help="All tenants of the environment.")]
TenantPrefix = Annotated[str | None, typer.Option("--prefix", help="All tenants whose ids have this prefix.")]
TenantsFrom = Annotated[
    Path | None, typer.Option("--tenants-from", help="A file with a tenant's id in each line; - is stdin.")
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


def parse_moment(text: str) -> datetime:
    """Return the moment of a text in ISO form."""
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidOption(
            f"{text!r} is not a valid timestamp.",
            cause=str(error),
            remedy="Write it as 2026-11-21T08:00:00Z.",
        ) from error


def point(text: str) -> Point:
    """Return a version or a moment from an argument: digits are a version, even if a tag has that name."""
    return int(text) if text.isdecimal() else text


def expand(
    command: Callable[..., None], name: str, options: Mapping[str, Any], make: Callable[..., Any]
) -> Callable[..., None]:
    """Return the command with ``options`` (annotations by name, None by default) in place of one parameter.

    It gets what ``make`` makes of their values. A place's options come last.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in signature.parameters.values()
    ]
    where = next(number for number, parameter in enumerate(own) if parameter.name == name)
    added = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for option, annotation in options.items()
    ]
    rest = own[where + 1 :]
    parameters = [*own[:where], *rest, *added] if where == 0 else [*own[:where], *added, *rest]

    @functools.wraps(command)
    def expanded(**arguments: Any) -> None:
        values = {option: arguments.pop(option) for option in options}
        command(**{name: make(**values)}, **arguments)

    # Typer reads a command's parameters from these two.
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    expanded.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return expanded


_FLAG_NAMES = {"override": ["--override"], "drop_duplicates": ["--drop-duplicates/--no-drop-duplicates"]}
_METAVARS = {"replace_where": "SQL"}
FLAGS: dict[str, Any] = {
    name: Annotated[
        kind | None,
        typer.Option(*_FLAG_NAMES.get(name, ()), metavar=_METAVARS.get(name), help=OPTION_HELP[name]),
    ]
    for name, kind in option_kinds().items()
}


def with_update(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with these flags in place of its parameter ``update``: an ``UpdateOptions``."""
    return expand(
        command,
        "update",
        FLAGS,
        lambda **flags: {name: value for name, value in flags.items() if value not in (None, [])},
    )


CSV_FLAGS: dict[str, Any] = {
    "types": Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=TYPE", help="The type that a CSV column must be of: Phone=string."),
    ],
    "parse_dates": Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A CSV column of dates or times, which are text without it."),
    ],
    "escape": Annotated[
        str | None,
        typer.Option(help="What stands before a quote in CSV, if not a quote: a backslash in Spark's."),
    ],
}


def with_csv(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with these flags in place of its parameter ``csv``: options of ``import_stream``."""
    return expand(command, "csv", CSV_FLAGS, _csv_options)


def require_yes_for(update: UpdateOptions, streams: Iterable[str], what: str) -> None:
    """Ask for confirmation before rows are deleted that the file or files (``what``) lack."""
    names, mode = ", ".join(dict.fromkeys(streams)), update.get("mode")
    if update.get("override"):
        require_yes(f"Replace all rows of {names} by {what}?")
    elif update.get("replace_where") is not None:
        require_yes(f"Replace the rows of {names} where {update['replace_where']} by {what}?")
    elif mode == "full":
        require_yes(f"Delete the rows of {names} that {what} does not have?")


def _csv_options(
    types: list[str] | None, parse_dates: list[str] | None, escape: str | None
) -> dict[str, Any]:
    from freezeframe.script.types.known_types import types_of_words

    return {"types": types_of_words(types or ()), "parse_dates": parse_dates or None, "escape": escape or ""}
