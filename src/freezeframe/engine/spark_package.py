"""The installed Spark: ``pyspark``, or ``pyspark-client``, which connects to a server elsewhere."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from freezeframe.errors import SetupError

_PACKAGES = ("pyspark", "pyspark-client")


def spark_version() -> str:
    """The version of PySpark."""
    for name in _PACKAGES:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    raise SetupError("PySpark is not installed.", remedy="Install it: pip install 'pyspark[connect]'.")


def spark_home() -> Path:
    """Return the folder of Spark, which SPARK_HOME may name."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 - PySpark is loaded when needed

    return Path(_find_spark_home())  # type: ignore[no-untyped-call]


def spark_jars() -> Path:
    """The folder with Spark's jars."""
    release = spark_version()
    found = find_spec("pyspark")
    jars = Path(found.origin).parent / "jars" if found and found.origin else Path()
    if not (found and jars.is_dir()):
        raise SetupError(
            "There is no Spark to start here.",
            cause=f"pyspark-client {release} connects to a server elsewhere and brings no Spark.",
            remedy="Name a server by FREEZEFRAME_SPARK=sc://HOST:15002, or install pyspark[connect].",
        )
    return jars
