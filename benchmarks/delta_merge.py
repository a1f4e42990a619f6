"""The comparison: Delta's own ``MERGE`` on Spark, tuned for small tables, in a process of its own.

It does what an update of ours does: a null in the batch keeps the stored cell, cell by cell. It
commits as the stock writer does, without fsync and without any log above the table.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pandas as pd

JARS = Path(__file__).parent.parent / ".cache" / "jars"
CONFIGURATION = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class DeltaMerge:
    """A Delta table updated by ``MERGE``; each call returns the seconds that it took in its process."""

    def __init__(self, path: Path, *, with_vectors: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there, str(path)), kwargs={"with_vectors": with_vectors}, daemon=True
        )
        self._process.start()

    def create(self, rows: pd.DataFrame) -> float:
        return self._ask(("create", rows))

    def merge(self, rows: pd.DataFrame) -> float:
        return self._ask(("merge", rows))

    def read(self) -> pd.DataFrame:
        return self._ask(("read", None))

    def close(self) -> None:
        self._here.send(None)
        self._process.join(timeout=60)

    def _ask(self, question: tuple[str, pd.DataFrame | None]):
        self._here.send(question)
        answer = self._here.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(connection: Connection, path: str, *, with_vectors: bool) -> None:
    from pyspark.sql import SparkSession

    jars = ",".join(str(jar) for jar in sorted(JARS.glob("*.jar")))
    builder = SparkSession.builder.master("local[*]").config("spark.jars", jars)
    for name, value in CONFIGURATION.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    while (question := connection.recv()) is not None:
        verb, rows = question
        try:
            started = time.perf_counter()
            if verb == "create":
                vectors = str(with_vectors).lower()
                writer = spark.createDataFrame(rows).coalesce(1).write.format("delta")
                writer.option("delta.enableDeletionVectors", vectors).save(path)
            elif verb == "merge":
                _merge(spark, path, rows)
            else:
                connection.send(spark.read.format("delta").load(path).toPandas())
                continue
            connection.send(time.perf_counter() - started)
        except Exception as error:  # noqa: BLE001 - the other process raises it
            connection.send(RuntimeError(str(error)))
    spark.stop()


def _merge(spark, path: str, rows: pd.DataFrame) -> None:
    spark.createDataFrame(rows).createOrReplaceTempView("batch")
    values = ", ".join(f"t.{name} = coalesce(s.{name}, t.{name})" for name in rows.columns if name != "Id")
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING batch s ON t.Id = s.Id "
        f"WHEN MATCHED THEN UPDATE SET {values} WHEN NOT MATCHED THEN INSERT *"
    )
