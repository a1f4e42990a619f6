"""Spark in a script's process."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from freezeframe.engine.configuration import warm_master
from freezeframe.engine.environment import REMOTE, foreign_remote, own_remote
from freezeframe.engine.server.job_database import VARIABLE, claim
from freezeframe.engine.server.server import Address, attach, living_address, server_folder
from freezeframe.errors import FreezeframeError
from freezeframe.script.tenants import spark
from freezeframe.settings import Settings

if TYPE_CHECKING:
    from freezeframe.store import Tenant


# Starts the warm Spark server early, beside the start of the runner or the script.


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


# The Spark server of a script's own ``SparkSession``: the warm one where it is available or required.
#
# A plain script needs no Spark, and none is started for it; what the library needs, it starts by itself
# when an update has rows to move. A script that speaks to Spark itself finds the session of its process,
# which
# is made before it, and the warm server is held while it runs; ``SPARK_REMOTE`` names it to further
# processes.


@contextmanager
def script_spark(
    script: Path,
    settings: Settings,
    environment: Mapping[str, str],
    progress: Callable[[str], None],
    tenant: Tenant,
) -> Iterator[dict[str, str]]:
    """Variables by which the script finds Spark; the warm server is held until the block ends.

    Beside a script that does not speak to Spark itself, a server that its updates will need is started.
    """
    if settings.spark.startswith("sc://"):
        yield {REMOTE: settings.spark}
        return
    master = master_of(settings, environment)
    if master is None:
        yield {}
        return
    if not speaks_to_spark(script):
        folder = server_folder(settings, master)
        address = living_address(folder)
        if address is None:
            start_early(settings, master, tenant, progress)
            yield {}
            return
        with claim(folder) as database:
            yield _variables(address, database)
        return
    attachment = attach(settings, master, progress)
    try:
        with claim(attachment.folder) as database:
            yield _variables(attachment.address, database)
    finally:
        attachment.close()


def begin_session(script: Path) -> None:
    """Make the Spark session of the script's process before a script that asks for one."""
    if speaks_to_spark(script):
        spark()


def _variables(address: Address, database: Path) -> dict[str, str]:
    return {**own_remote(address.url), VARIABLE: str(database)}
