"""``freezeframe doctor``: checks that this machine has what jobs need."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from freezeframe.cli.commands import checks
from freezeframe.cli.commands.checks import Finding, looked_at
from freezeframe.cli.options import Json
from freezeframe.cli.output import FAILED, Output
from freezeframe.errors import FreezeframeError, InputNotFound, InvalidOption
from freezeframe.settings import Settings

_AUTHENTICATED = re.compile(r"^\s*spark\.authenticate[\s=:]+true\s*$", re.MULTILINE)
_QUOTAS = (
    "service_requests_per_second",
    "service_requests_at_once_per_principal",
    "service_tenant_stored_bytes_max",
    "service_tenant_jobs_queued_max",
    "service_tenant_uploads_max",
)


def production_looks(settings: Settings, root: str) -> dict[str, Callable[[], Finding]]:
    """Return the checks of ``doctor --production`` by part; see ``docs/explanation/threat-model.md``."""
    return {
        "Service secret": lambda: _secret(settings, root),
        "Service address": lambda: _address(settings),
        "Quotas": lambda: _quotas(settings),
        "Scripts": lambda: _scripts(settings),
        "Spark's authentication": lambda: _spark(settings),
        "Workers' database": lambda: _workers_database(settings),
        "Account": _account,
    }


def _secret(settings: Settings, root: str) -> Finding:
    from freezeframe.service.signing import load_secret

    if settings.service_secret_file is None:
        found = "the secret of sign-ins and the audit lies in the store, or is not made yet"
        remedy = "Set service_secret_file to a file of mode 0600 outside of the store."
        return Finding("Service secret", "error", found, remedy)
    if not settings.service_secret_file.is_file():
        found = f"there is no file {settings.service_secret_file}"
        return Finding("Service secret", "error", found, "Put 32 random bytes into it, mode 0600.")
    load_secret(settings, root)
    return Finding("Service secret", "ok", f"{settings.service_secret_file}, mode 0600")


def _address(settings: Settings) -> Finding:
    if urlsplit(settings.service_url).scheme != "https":
        found = f"browsers reach it at {settings.service_url or 'whatever address they ask'}"
        remedy = (
            "Put a proxy with TLS in front, serve at 127.0.0.1, and set service_url to its https address."
        )
        return Finding("Service address", "error", found, remedy)
    return Finding("Service address", "ok", settings.service_url)


def _quotas(settings: Settings) -> Finding:
    missing = [name for name in _QUOTAS if not getattr(settings, name)]
    if missing:
        found = f"no limit: {', '.join(missing)}"
        return Finding("Quotas", "warning", found, "Set them to what the largest tenant needs, twice.")
    return Finding("Quotas", "ok", "requests, stored bytes, uploads and queued jobs are limited")


def _scripts(settings: Settings) -> Finding:
    folder = settings.service_scripts_dir
    if folder is None:
        return Finding("Scripts", "ok", "none: jobs are imports only")
    real = (path for path in (folder, *folder.rglob("*")) if not path.is_symlink())
    open_to = [path for path in real if path.stat().st_mode & 0o022]
    if open_to:
        found = f"others may write to {open_to[0]}"
        return Finding(
            "Scripts", "error", found, f"chmod -R go-w {folder}: who writes there runs as the worker."
        )
    return Finding("Scripts", "ok", f"{folder}, written by its owner alone")


def _spark(settings: Settings) -> Finding:
    from freezeframe.engine.configuration import foreign_remote

    part, where = "Spark's authentication", settings.spark
    if where == "auto":
        where = foreign_remote(os.environ) or where
    if where.startswith("sc://"):
        if any(option.partition("=")[0] == "token" for option in where.split(";")[1:]):
            return Finding(part, "ok", "the server elsewhere is sent a token")
        found = "the server elsewhere is sent no token: who reaches its port runs code as its user"
        return Finding(
            part, "error", found, "Have it ask for one: FREEZEFRAME_SPARK='sc://host:port/;token=...'."
        )
    if where.startswith("spark://"):
        file = _spark_defaults()
        if file.is_file() and _AUTHENTICATED.search(file.read_text(errors="replace")):
            return Finding(part, "ok", f"spark.authenticate is true in {file}")
        found = f"spark.authenticate is not true in {file}: who reaches the cluster's ports runs code in it"
        return Finding(part, "error", found, "Set it and the cluster's secret, there and on each machine.")
    return Finding(part, "ok", "the warm server listens at the loopback and asks for a token of its own")


def _spark_defaults() -> Path:
    if folder := os.environ.get("SPARK_CONF_DIR"):
        return Path(folder) / "spark-defaults.conf"
    from freezeframe.engine.java import spark_home

    return spark_home() / "conf" / "spark-defaults.conf"


def _workers_database(settings: Settings) -> Finding:
    part, database = "Workers' database", urlsplit(settings.database_url)
    if not database.scheme.startswith("postgres"):
        found = "scripts can write keys: SQLite has no roles"
        remedy = "Use PostgreSQL and deploy/worker-role.sql, where scripts are not all your own."
        return Finding(part, "warning", found, remedy)
    return Finding(part, "ok", f"{database.username} here; workers may have a role of their own")


def _account() -> Finding:
    user = os.geteuid()
    if user == 0:
        found = "this is root"
        return Finding("Account", "error", found, "Run service and workers as a user without rights.")
    return Finding("Account", "ok", f"user {user}")


_MARKS = {"ok": "ok", "warning": "warning", "error": "ERROR"}


def doctor(
    directory: Annotated[
        Path | None, typer.Option("--dir", help="A folder that will hold snapshots, in the store's place.")
    ] = None,
    root: Annotated[
        str | None, typer.Option("--root", help="The store to look at (default: from the settings).")
    ] = None,
    start_spark: Annotated[
        bool,
        typer.Option(
            "--start-spark", help="Archive Spark's classes, start it if none runs, ask it for a row."
        ),
    ] = False,
    production: Annotated[
        bool, typer.Option("--production", help="Also check the hardening checklist of a service.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check that jobs can run on this machine, and print what to do.

    The exit code is 1 if jobs could not run, or could lose what they commit; with --production also where
    a service is not as safe as it can be.
    """
    if directory is not None and root is not None:
        raise InvalidOption("--dir and --root cannot be used together.", remedy="Give one of them.")
    findings = _examine(directory, root, start_spark=start_spark, production=production)
    output = Output(as_json=as_json)
    if as_json:
        output.table("This machine", [finding.to_json() for finding in findings])
    else:
        rows = [
            {"part": finding.part, "": _MARKS[finding.level], "found": finding.found} for finding in findings
        ]
        output.table("This machine", rows)
        for finding in findings:
            if finding.level != "ok" and finding.remedy:
                output.line(f"{finding.part}: {finding.remedy}")
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(FAILED)


def _examine(
    directory: Path | None, root: str | None, *, start_spark: bool, production: bool
) -> list[Finding]:
    wrong_settings, settings = _load_settings(root)
    place = str(directory) if directory is not None else settings.root
    folder = checks.nearest_folder(Path() if "://" in place else Path(place))

    def storage() -> Finding:
        if directory is not None and not directory.is_dir():
            raise InputNotFound(
                f"There is no directory {directory}.", remedy="Name one that exists by --dir."
            )
        wrong = checks.kind(place, settings, is_store=directory is None)
        return wrong or checks.check_storage(place, settings)

    looks = {
        "Python": checks.python,
        "Packages": checks.packages,
        "Settings": lambda: wrong_settings or checks.settings_files(),
        "Java": lambda: checks.java(settings),
        "Spark": lambda: checks.started_spark(settings) if start_spark else checks.spark(settings),
        "Spark's jars": lambda: checks.jars(settings),
        "Storage": storage,
        "Disk": lambda: checks.disk(folder),
        "Clock": lambda: checks.clock(folder),
        "Memory": lambda: checks.memory(settings),
        "Limits": checks.limits,
        "State": lambda: checks.state_folder(settings),
        "Database": lambda: checks.database(settings, settings.root),
        "Master key": lambda: checks.key(settings),
    }
    if production:
        looks |= production_looks(settings, place)
    return [looked_at(part, look) for part, look in looks.items()]


def _load_settings(root: str | None) -> tuple[Finding | None, Settings]:
    """Return the settings; if they are invalid, a finding and the defaults for the other checks."""
    from freezeframe.settings import Settings, load_settings

    try:
        return None, load_settings(root=root)
    except FreezeframeError as error:
        finding = Finding("Settings", "error", f"{error.problem} {error.cause}".strip(), error.remedy)
        defaults = Settings.model_construct()
        return finding, defaults if root is None else defaults.model_copy(update={"root": root})
