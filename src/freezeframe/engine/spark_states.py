"""The last action of each file of a Delta log, found by Spark: for logs that no one process should hold."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.window import Window

from freezeframe.engine.configuration import READ_OPTIONS
from freezeframe.engine.spark_files import exact_path, written_names

_VECTOR = "struct<storageType string, pathOrInlineDv string, offset int, sizeInBytes int, cardinality bigint>"
ACTIONS = f"""
add struct<path string, partitionValues map<string, string>, size bigint, modificationTime bigint,
    dataChange boolean, stats string, deletionVector {_VECTOR}, tags map<string, string>,
    baseRowId bigint, defaultRowCommitVersion bigint, clusteringProvider string>,
remove struct<path string, deletionTimestamp bigint, dataChange boolean, extendedFileMetadata boolean,
    partitionValues map<string, string>, size bigint, deletionVector {_VECTOR},
    baseRowId bigint, defaultRowCommitVersion bigint>
"""
_BEFORE_ALL_COMMITS = -1
_ORDER_DIGITS = 20
_PLAIN_PATH = r"^[A-Za-z0-9_\-.=]+(/[A-Za-z0-9_\-.=]+)*$"
_SCHEME = r"^([A-Za-z][A-Za-z0-9+.\-]*):"
# Snappy is what every reader of checkpoints takes; each page can be checked.
_WRITE_OPTIONS = {
    "compression": "snappy",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "parquet.page.write-checksum.enabled": "true",
}


def condense(
    session: SparkSession,
    checkpoint: Sequence[str],
    commits: Sequence[str],
    output: str,
    *,
    parts: int,
    removed_after_ms: int | None = None,
) -> tuple[str, ...]:
    """Carry it out; `log.condensing.LogCondenser` says what is promised."""
    frames = []
    if checkpoint:
        reader = session.read.schema(ACTIONS).options(**READ_OPTIONS)
        frame = reader.parquet(*map(exact_path, checkpoint))
        frames.append(frame.select("add", "remove", F.lit(_BEFORE_ALL_COMMITS).cast("bigint").alias("order")))
    if commits:
        # A line that is torn is an error, not an action less.
        reader = session.read.schema(ACTIONS).option("mode", "FAILFAST")
        frame = reader.json(list(map(exact_path, commits)))
        place = frame.metadataColumn("_metadata").getField("file_name")
        order = F.substring(place, 1, _ORDER_DIGITS).cast("bigint")
        frames.append(frame.select("add", "remove", order.alias("order")))
    actions = frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])
    written = _last(actions, parts)
    if removed_after_ms is not None:
        removed = F.col("remove.deletionTimestamp") > removed_after_ms
        written = written.where(F.col("add").isNotNull() | F.coalesce(removed, F.lit(False)))  # noqa: FBT003
    settled = [F.col(kind).withField("dataChange", F.lit(False)).alias(kind) for kind in ("add", "remove")]  # noqa: FBT003
    written.select(*settled).write.mode("overwrite").options(**_WRITE_OPTIONS).parquet(output)
    return written_names(session, output)


def _last(actions: DataFrame, parts: int) -> DataFrame:
    """Of each key the action of the latest commit."""
    keyed = actions.where(F.col("add").isNotNull() | F.col("remove").isNotNull()).select(
        "add",
        "remove",
        "order",
        _canonical(F.coalesce("add.path", "remove.path")).alias("path"),
        F.coalesce(_vector("add"), _vector("remove"), F.lit("")).alias("vector"),
    )
    # By the protocol a commit has one action of a file; where a writer broke that, the file stays.
    newest_first = Window.partitionBy("path", "vector").orderBy(F.desc("order"), F.col("add").isNull())
    turn = F.row_number().over(newest_first)
    return keyed.repartition(parts, "path", "vector").withColumn("turn", turn).where(F.col("turn") == 1)


def _vector(kind: str) -> Column:
    """The unique id of an action's deletion vector, null where it has none."""
    vector = F.col(f"{kind}.deletionVector")
    offset = F.coalesce(F.concat(F.lit("@"), vector.getField("offset")), F.lit(""))
    return F.concat(vector.getField("storageType"), vector.getField("pathOrInlineDv"), offset)


def _canonical(path: Column) -> Column:
    """One spelling for one file: what `log.canonical_paths` calls equal is equal here."""
    rest = F.regexp_replace(path, _SCHEME, "")
    has_authority = rest.startswith("//")
    authority = F.when(has_authority, F.regexp_extract(rest, "^//([^/]*)", 1)).otherwise(F.lit(""))
    below = F.when(has_authority, F.regexp_replace(rest, "^//[^/]*", "")).otherwise(rest)
    below = F.regexp_replace(below, "/{2,}", "/")
    # Spark takes a plus sign for a blank, which it is in a form and not in a path.
    decoded = F.coalesce(F.try_url_decode(F.regexp_replace(below, r"\+", "%2B")), below)
    scheme = F.regexp_extract(path, _SCHEME, 1)
    scheme = F.when((scheme == "") & decoded.startswith("/"), F.lit("file")).otherwise(scheme)
    odd = F.concat(scheme, F.lit(":"), authority, F.lit(":"), decoded)
    return F.when(path.rlike(_PLAIN_PATH), path).otherwise(F.when(scheme == "", decoded).otherwise(odd))
