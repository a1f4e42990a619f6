"""Which Spark is installed: all of it, its client alone, or none."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from freezeframe.engine.java import spark_jars, spark_version

SOURCE = Path(__file__).parents[2] / "src"
ASK = """
from freezeframe.engine.java import spark_jars, spark_version
from freezeframe.errors import SetupError
try:
    print(spark_version())
    spark_jars()
except SetupError as error:
    print(error.problem)
"""


def test_spark_is_found_with_its_jars():
    """As pip names it; the jars are beside the package."""
    assert pyspark.__version__ == spark_version()
    assert [] != list(spark_jars().glob("spark-connect_*.jar"))


@pytest.mark.parametrize(
    ("installed", "told"),
    [("pyspark_client", ["4.1.1", "There is no Spark to start here."]), ("", ["PySpark is not installed."])],
)
def test_the_client_is_known_and_starts_nothing(tmp_path, installed, told):
    """In a Python without site packages, where only the named package is there."""
    if installed:
        (tmp_path / "pyspark").mkdir()
        (tmp_path / "pyspark" / "__init__.py").touch()
        metadata = tmp_path / f"{installed}-4.1.1.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text("Metadata-Version: 2.1\nName: pyspark-client\nVersion: 4.1.1\n")
    done = subprocess.run(
        [sys.executable, "-S", "-c", ASK],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{SOURCE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told == done.stdout.splitlines(), done.stderr
