"""Which Spark a script's own ``SparkSession`` finds: the warm server, where there is one or it is wanted.

A plain script needs no Spark, and none is started for it; what the library needs, it starts by itself
when an update has rows to move. A script that speaks to Spark itself gets the warm server by Spark's own
variable, ``SPARK_REMOTE``, and the server is held while the script runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from freezeframe.engine.configuration import cores
from freezeframe.engine.job_database import VARIABLE, claimed
from freezeframe.engine.server import Address, attach, living_address, server_folder
from freezeframe.settings import Settings

REMOTE = "SPARK_REMOTE"
# Says that the address in SPARK_REMOTE is the warm server's: the library then shares its session.
OWN_REMOTE = "FREEZEFRAME_OWN_REMOTE"


@contextmanager
def script_spark(
    script: Path, settings: Settings, environment: Mapping[str, str], progress: Callable[[str], None]
) -> Iterator[dict[str, str]]:
    """The variables that tell the script where Spark is; the warm server is held until the block ends.

    Raises:
        JavaNotFound, JavaUnsupported, EngineUnavailable: the script wants Spark and it cannot be started.
    """
    if settings.spark.startswith("sc://"):
        yield {REMOTE: settings.spark}
        return
    if REMOTE in environment or settings.spark == "local":
        yield {}
        return
    master = settings.spark if settings.spark.startswith("spark://") else f"local[{cores()}]"
    if not speaks_to_spark(script):
        folder = server_folder(settings, master)
        address = living_address(folder)
        if address is None:
            yield {}
            return
        with claimed(folder) as database:
            yield _variables(address, database)
        return
    attachment = attach(settings, master, progress)
    try:
        with claimed(attachment.folder) as database:
            yield _variables(attachment.address, database)
    finally:
        attachment.close()


@contextmanager
def own_session(script: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """In the script's process: the session that it finds, in the job's own database; for a script that asks.

    Raises:
        EngineUnavailable: the warm server is gone.
    """
    url, database = environment.get(OWN_REMOTE), environment.get(VARIABLE)
    if not url or not database or environment.get(REMOTE) != url or not speaks_to_spark(script):
        yield
        return
    # Spark's client takes a second to load, where the warm runner has not.
    from freezeframe.engine.connect import script_session  # noqa: PLC0415

    with script_session(url, Path(database).parent.parent):
        yield


def speaks_to_spark(script: Path) -> bool:
    """Whether the script, or a module in its ``lib/``, names PySpark."""
    files = [script, *sorted((script.parent / "lib").glob("*.py"))]
    return any(b"pyspark" in file.read_bytes() for file in files)


def _variables(address: Address, database: Path) -> dict[str, str]:
    # Spark sends a token without TLS to a server called localhost only.
    url = f"sc://localhost:{address.port}/;token={address.token}"
    return {REMOTE: url, OWN_REMOTE: url, VARIABLE: str(database)}
