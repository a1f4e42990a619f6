"""Shell completion of tenants and streams of the store or folder that the line names.

A shell asks while somebody types, so nothing here fails, prints or starts anything; and what is offered is
put into a command line, so names with signs that mean something to a shell are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

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
    from freezeframe.script.tenant import stores
    from freezeframe.settings import load_settings

    settings = load_settings(root=given.get("root"), environment=given.get("environment"))
    if "://" not in settings.root and not Path(settings.root).is_dir():
        raise FileNotFoundError(settings.root)
    return stores.open(settings.root, settings.environment)


def _tenant(given: dict[str, Any]) -> Any:
    if given.get("tenant_id") is not None:
        return _store(given).tenant(given["tenant_id"])
    from freezeframe.script.tenant.tenants import open_tenant

    folder = given.get("directory") or Path("snapshots")
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    return open_tenant(folder)
