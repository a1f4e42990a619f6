"""The comparison on Spark: Delta's own ``MERGE`` and its session, tuned for tables of one machine.

``MERGE`` does what an update of ours does: a null in the batch keeps the stored cell, cell by
cell. It commits as the stock writer does, without fsync and without any log above the table.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

DELTA = "4.4.0"
ORACLE = Path(__file__).parent.parent / ".cache" / "oracle"
CONFIGURATION = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def spark_session():
    """A classic session with Delta's jars, in a JVM of this process."""
    # Delta is built for an older Spark than ours, which `tools/setup.sh oracle` keeps beside it.
    sys.path.insert(0, str(ORACLE))
    from pyspark.sql import SparkSession

    jars = ",".join(str(jar) for jar in sorted((ORACLE / "jars").glob("*.jar")))
    builder = SparkSession.builder.master("local[*]").config("spark.jars", jars)
    for name, value in CONFIGURATION.items():
        builder = builder.config(name, value)
    # Spark makes this folder wherever the process stands, and nothing is ever put there.
    builder = builder.config("spark.sql.warehouse.dir", f"{tempfile.gettempdir()}/spark-warehouse")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def merge_statement(path: str, columns: Sequence[str], key: str) -> str:
    """``MERGE`` of the view ``batch``, cell-wise; columns that the batch lacks stay as they are."""
    values = ", ".join(f"t.{name} = coalesce(s.{name}, t.{name})" for name in columns if name != key)
    inserted = ", ".join(columns)
    given = ", ".join(f"s.{name}" for name in columns)
    return (
        f"MERGE INTO delta.`{path}` t USING batch s ON t.{key} = s.{key} "
        f"WHEN MATCHED THEN UPDATE SET {values} "
        f"WHEN NOT MATCHED THEN INSERT ({inserted}) VALUES ({given})"
    )
