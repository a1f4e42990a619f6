"""The hardening checklist of a service (``doctor --production``)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from freezeframe.cli.checks.finding import Finding
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
    """The checks of ``doctor --production`` by part; see ``docs/explanation/threat-model.md``."""
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
    from freezeframe.service.base.secret import load_secret

    if settings.service_secret_file is None:
        told = "the secret of sign-ins and the audit lies in the store, or is not made yet"
        remedy = "Set service_secret_file to a file of mode 0600 outside of the store."
        return Finding("Service secret", "error", told, remedy)
    if not settings.service_secret_file.is_file():
        told = f"there is no file {settings.service_secret_file}"
        return Finding("Service secret", "error", told, "Put 32 random bytes into it, mode 0600.")
    load_secret(settings, root)
    return Finding("Service secret", "ok", f"{settings.service_secret_file}, mode 0600")


def _address(settings: Settings) -> Finding:
    if urlsplit(settings.service_url).scheme != "https":
        told = f"browsers reach it at {settings.service_url or 'whatever address they ask'}"
        remedy = (
            "Put a proxy with TLS in front, serve at 127.0.0.1, and set service_url to its https address."
        )
        return Finding("Service address", "error", told, remedy)
    return Finding("Service address", "ok", settings.service_url)


def _quotas(settings: Settings) -> Finding:
    missing = [name for name in _QUOTAS if not getattr(settings, name)]
    if missing:
        told = f"no limit: {', '.join(missing)}"
        return Finding("Quotas", "warning", told, "Set them to what the largest tenant needs, twice.")
    return Finding("Quotas", "ok", "requests, stored bytes, uploads and queued jobs are limited")


def _scripts(settings: Settings) -> Finding:
    folder = settings.service_scripts_dir
    if folder is None:
        return Finding("Scripts", "ok", "none: jobs are imports only")
    open_to = [one for one in (folder, *folder.rglob("*")) if _is_open(one)]
    if open_to:
        told = f"others may write to {open_to[0]}"
        return Finding(
            "Scripts", "error", told, f"chmod -R go-w {folder}: who writes there runs as the worker."
        )
    return Finding("Scripts", "ok", f"{folder}, written by its owner alone")


def _is_open(path: Path) -> bool:
    return not path.is_symlink() and bool(path.stat().st_mode & 0o022)


def _spark(settings: Settings) -> Finding:
    from freezeframe.engine.configuration.remote import foreign_remote

    part, where = "Spark's authentication", settings.spark
    if where == "auto":
        where = foreign_remote(os.environ) or where
    if where.startswith("sc://"):
        if any(option.partition("=")[0] == "token" for option in where.split(";")[1:]):
            return Finding(part, "ok", "the server elsewhere is sent a token")
        told = "the server elsewhere is sent no token: who reaches its port runs code as its user"
        return Finding(
            part, "error", told, "Have it ask for one: FREEZEFRAME_SPARK='sc://host:port/;token=...'."
        )
    if where.startswith("spark://"):
        file = _spark_defaults()
        if file.is_file() and _AUTHENTICATED.search(file.read_text(errors="replace")):
            return Finding(part, "ok", f"spark.authenticate is true in {file}")
        told = f"spark.authenticate is not true in {file}: who reaches the cluster's ports runs code in it"
        return Finding(part, "error", told, "Set it and the cluster's secret, there and on each machine.")
    return Finding(part, "ok", "the warm server listens at the loopback and asks for a token of its own")


def _spark_defaults() -> Path:
    if folder := os.environ.get("SPARK_CONF_DIR"):
        return Path(folder) / "spark-defaults.conf"
    from pyspark.find_spark_home import _find_spark_home

    home = _find_spark_home()  # type: ignore[no-untyped-call]
    return Path(home) / "conf" / "spark-defaults.conf"


def _workers_database(settings: Settings) -> Finding:
    part, database = "Workers' database", urlsplit(settings.database_url)
    if not database.scheme.startswith("postgres"):
        told = "whoever runs a script can write keys: SQLite has no roles"
        remedy = "Use PostgreSQL and deploy/worker-role.sql, where scripts are not all your own."
        return Finding(part, "warning", told, remedy)
    return Finding(part, "ok", f"{database.username} here; workers may have a role of their own")


def _account() -> Finding:
    user = os.geteuid()
    if user == 0:
        told = "this is root"
        return Finding("Account", "error", told, "Run service and workers as a user without rights.")
    return Finding("Account", "ok", f"user {user}")
