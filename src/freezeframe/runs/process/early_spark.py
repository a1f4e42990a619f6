"""Starts the warm Spark server early, beside the start of the runner or the script."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from freezeframe.engine.configuration.remote import foreign_remote
from freezeframe.engine.configuration.spark_configuration import warm_master
from freezeframe.engine.server.server import attach
from freezeframe.errors import FreezeframeError
from freezeframe.settings import Settings

if TYPE_CHECKING:
    from freezeframe.store import Tenant


def master_of(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """The master of a run's warm server; None where its settings or variables mean another Spark."""
    return None if foreign_remote(environment) else warm_master(settings.spark)


def speaks_to_spark(script: Path) -> bool:
    """Whether the script, or a module in its ``lib/``, names PySpark."""
    files = [script, *sorted((script.parent / "lib").glob("*.py"))]
    return any(b"pyspark" in file.read_bytes() for file in files)


def start_beside_runner(script: Path, settings: Settings, progress: Callable[[str], None]) -> None:
    """Start the server for a script that speaks to Spark, while the warm runner does its imports.

    Not for a script with requirements: its server may have to run another Python.
    """
    master = master_of(settings, os.environ)
    with contextlib.suppress(OSError):
        if master and speaks_to_spark(script) and not (script.parent / "requirements.txt").exists():
            _start_in_thread(settings, master, progress)


def start_early(settings: Settings, master: str, tenant: Tenant, progress: Callable[[str], None]) -> None:
    """Start the server in a thread where the job's updates will need it: the tenant has stored rows.

    What goes wrong is reported by the update that needs the server.
    """
    if settings.engine == "spark" and tenant.streams():
        _start_in_thread(settings, master, progress)


def _start_in_thread(settings: Settings, master: str, progress: Callable[[str], None]) -> None:
    threading.Thread(target=_start, args=(settings, master, progress), daemon=True).start()


def _start(settings: Settings, master: str, progress: Callable[[str], None]) -> None:
    with contextlib.suppress(FreezeframeError, OSError):
        attach(settings, master, progress).close()
