"""The Spark server of a script's own ``SparkSession``: the warm one where it is available or required.

A plain script needs no Spark, and none is started for it; what the library needs, it starts by itself
when an update has rows to move. A script that speaks to Spark itself finds the session of its process, which
is made before it, and the warm server is held while it runs; ``SPARK_REMOTE`` names it to further processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from freezeframe.engine.configuration.remote import REMOTE, own_remote
from freezeframe.engine.server.job_database import VARIABLE, claim
from freezeframe.engine.server.server import Address, attach, living_address, server_folder
from freezeframe.runs.process.early_spark import master_of, speaks_to_spark, start_early
from freezeframe.script.tenant.tenants import spark
from freezeframe.settings import Settings
from freezeframe.store.tenant import Tenant


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

    Raises:
        JavaNotFound, JavaUnsupported, EngineUnavailable: the script wants Spark and it cannot be started.
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
    """Make the Spark session of the script's process before a script that asks for one.

    Raises:
        SetupError, EngineUnavailable: Spark cannot be started or reached.
    """
    if speaks_to_spark(script):
        spark()


def _variables(address: Address, database: Path) -> dict[str, str]:
    return {**own_remote(address.url), VARIABLE: str(database)}
