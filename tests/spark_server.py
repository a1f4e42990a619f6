"""The settings of the tests' own Spark server, and of the server in which Delta answers."""

import contextlib
from pathlib import Path

from hypothesis import settings
from pyspark.sql.connect.session import SparkSession
from tests.examples import NIGHTLY
from tests.quick_java import JAVA_OPTIONS, with_classes
from tests.spark_processes import connect_server

CACHE = Path(__file__).parent.parent / ".cache"
JARS = CACHE / "jars"
ORACLE = CACHE / "oracle"
"""The newest Spark that Delta has been built for, and Delta's jars; a process apart from the product's."""
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    # VACUUM lists a table by so many tasks; by ten thousand, the default, two files take a minute.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
# Queries of tests are small, and each is another one: to compile one takes longer than to interpret it.
# The server has its own Spark, whatever this process runs with.
HOME = {"SPARK_HOME": str(ORACLE / "pyspark"), "SPARK_CONF_DIR": str(ORACLE)}
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}


def spark_defaults(folder, options):
    """Write the options, and that queries are interpreted, for ``SPARK_CONF_DIR``; return the folder."""
    folder.mkdir(parents=True)
    # At night queries are compiled, as those of the product.
    options = options if settings.get_current_profile_name() == NIGHTLY else {**INTERPRETED, **options}
    lines = "".join(f"{name} {value}\n" for name, value in options.items())
    (folder / "spark-defaults.conf").write_text(lines)
    return folder


@contextlib.contextmanager
def delta_server(folder):
    """A Connect session in which Delta's own implementation answers."""
    jars = sorted((ORACLE / "jars").glob("*.jar"))
    assert jars, f"Spark with Delta is not in {ORACLE}: `make test` fetches it"
    options = {**DELTA, **INTERPRETED, "spark.sql.warehouse.dir": str(folder)}
    server = connect_server(
        folder / "log", options=options, heap="2g", classes=jars, spark=ORACLE / "pyspark", environment=HOME
    )
    with server as port:
        # Not made by the builder: it is not to be this process's session.
        session = SparkSession(f"sc://127.0.0.1:{port}")
        yield session
        session.stop()


def spark_environment(state, patch):
    """Set the variables by which this process and its children find the server of a state folder."""
    jars = ",".join(str(jar) for jar in sorted(JARS.glob("*.jar")))
    defaults = spark_defaults(state / "conf", {"spark.jars": jars} if jars else {})
    patch.delenv("SPARK_REMOTE", raising=False)
    # A share of the memory, as a heap that a test makes smaller may not begin larger than it may become.
    for name, value in {
        "JAVA_TOOL_OPTIONS": f"{JAVA_OPTIONS} -XX:InitialRAMPercentage=9 -XX:NewRatio=1",
        "FREEZEFRAME_STATE_DIR": str(with_classes(state / "run")),
        "FREEZEFRAME_SPARK": "auto",
        "FREEZEFRAME_SPARK_MEMORY": "3g",
        "FREEZEFRAME_SPARK_IDLE_SECONDS": "5",
        "SPARK_CONF_DIR": str(defaults),
    }.items():
        patch.setenv(name, value)
