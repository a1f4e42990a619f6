"""A script that writes and reads by relative paths, in every way that Spark has."""

import os
from pathlib import Path

import pandas as pd
from pyspark.ml.feature import Binarizer
from pyspark.sql.functions import expr

import freezeframe as ff

tenant = os.environ.get("TENANT") or Path.cwd().name
spark = ff.spark()
rows = spark.createDataFrame([(1, tenant)], "id int, v string")
options = {"rowTag": "row", "header": True}
schema = "id int, v string"
answers = {}


def step(name, write, read):
    """Ask whether the path is taken, write there, and keep what is read back and whether files are here."""
    before = Path(f"out/{name}").exists()
    write(f"out/{name}")
    answers[name] = f"{before} {read(f'out/{name}').select('v').first()[0]} {Path(f'out/{name}').exists()}"


def stream(folder, **options):
    rows.write.mode("overwrite").json(f"{folder}-in")
    changes = spark.readStream.schema(schema).json(f"{folder}-in")
    return changes.writeStream.trigger(availableNow=True).options(**options)


def streamed(path):
    options = {"checkpointLocation": f"{path}-checkpoint", "cleanSource": "off"}
    stream(path, **options).format("parquet").start(path).awaitTermination()
    assert Path(f"{path}-checkpoint").exists()


def streamed_by_settings(path):
    spark.conf.set("spark.sql.streaming.checkpointLocation", f"{path}-checkpoints")
    stream(path, path=path).queryName("by_settings").toTable("by_settings").awaitTermination()
    spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert Path(f"{path}-checkpoints").exists()


def moved(path):
    rows.write.parquet(path)
    frame, here = spark.read.parquet(path), Path.cwd()
    os.chdir("..")
    frame.count()
    os.chdir(here)


def sql(text):
    return lambda path: spark.sql(text.format(path))


for form in ("parquet", "csv", "json", "orc", "xml"):
    step(
        form,
        lambda path, form=form: rows.write.options(**options).format(form).save(path),
        lambda path, form=form: spark.read.options(**options).schema(schema).format(form).load(path),
    )
step("text", rows.select("v").write.text, lambda path: spark.read.text(path).toDF("v"))
step(
    "dotted",
    lambda path: rows.write.csv(f"./{path}"),
    lambda path: spark.read.schema(schema).csv(f"./{path}/*"),
)
step(
    "option",
    lambda path: rows.write.format("parquet").option("path", path).save(),
    lambda path: spark.read.format("parquet").option("path", path).load(),
)
step(
    "partitions",
    lambda path: rows.write.partitionBy("id").parquet(path),
    lambda path: spark.read.option("basePath", path).parquet(f"{path}/id=1").where("id = 1"),
)
step("v2", lambda path: rows.writeTo("v2").using("parquet").option("path", path).create(), spark.read.parquet)
step("table", lambda path: rows.write.option("path", path).saveAsTable("saved"), spark.read.parquet)
step(
    "location",
    sql("create table located using parquet location '{}' as select 1 id, '" + tenant + "' v"),
    lambda _: spark.table("located"),
)
step(
    "options",
    sql("create table optional using json options (path '{}') as select '" + tenant + "' v"),
    spark.read.json,
)
step(
    "directory",
    sql("insert overwrite directory '{}' using parquet select '" + tenant + "' v"),
    sql("from parquet.`{}`"),
)
step("names", rows.write.parquet, lambda path: spark.table(f"parquet.`{path}`"))
step(
    "subquery",
    rows.write.parquet,
    lambda path: spark.range(1).select(expr(f"(select v from parquet.`{path}`) v")),
)
step("catalog", rows.write.parquet, lambda path: spark.catalog.createTable("listed", path, "parquet"))
step("moved", moved, spark.read.parquet)
step("stream", streamed, spark.read.parquet)
step("settings", streamed_by_settings, lambda _: spark.table("by_settings"))
step(
    "clone",
    spark.cloneSession().createDataFrame(rows.toPandas()).write.parquet,
    spark.read.parquet,
)
Binarizer(threshold=1.0).write().save("out/model")
answers["model"] = f"{Binarizer.load('out/model').getThreshold()} {Path('out/model').exists()}"
found = pd.DataFrame(sorted(answers.items()), columns=["Id", "v"])
ff.update_snapshot(os.environ.get("snapshot_dir", "snapshots"), "Answer", "Id", found)  # noqa: SIM112 - its name
