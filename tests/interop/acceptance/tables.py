# ruff: noqa: E501 - statements of SQL and rows of tables are read as one line
"""Tables for the acceptance run: one seeded workload for each feature of Delta, written by Spark or by delta-rs."""

import os
import random
import shutil
import time

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

STEP = 60
BEGIN = int(time.time()) // STEP * STEP - 60 * STEP
"""Seconds since 1970 of the first commit, an hour ago: older files would be beyond their retention."""


class Maker:
    """One table that is being made: its path, its seed's random numbers, and the statements of both writers."""

    def __init__(self, path, session, seed):
        self.path = path
        self.session = session
        self.seed = seed
        self.random = random.Random(seed)
        self.next_id = 0
        self.has_change_feed = False

    def sql(self, text):
        return self.session.sql(text.replace("TABLE_", f"delta.`{self.path}`")).collect()

    def create(self, columns="", *, partition="", cluster="", **properties):
        """An empty table of Spark's with the column ``id`` and others, and properties without their ``delta.``."""
        named = {f"delta.{name}": value for name, value in properties.items()}
        self.has_change_feed = named.get("delta.enableChangeDataFeed") == "true"
        text = ", ".join(f"'{name}' = '{value}'" for name, value in named.items())
        self.sql(
            f"CREATE TABLE TABLE_ (id INT{', ' if columns else ''}{columns}) USING delta "
            + (f"PARTITIONED BY ({partition}) " if partition else "")
            + (f"CLUSTER BY ({cluster}) " if cluster else "")
            + (f"TBLPROPERTIES ({text})" if text else "")
        )

    def insert(self, values="", columns="", count=None):
        """Some rows; ``values`` are expressions of the other columns over the row's number ``id``."""
        count = count or self.random.randint(3, 8)
        first, self.next_id = self.next_id, self.next_id + count
        into = f"(id, {columns})" if columns else ""
        self.sql(
            f"INSERT INTO TABLE_ {into} SELECT /*+ COALESCE(1) */ CAST(id AS INT)"
            f"{', ' if values else ''}{values} FROM range({first}, {first + count})"
        )

    def delete(self):
        self.sql(f"DELETE FROM TABLE_ WHERE id % 3 = {self.random.randint(0, 2)}")

    def update(self, assignment):
        self.sql(f"UPDATE TABLE_ SET {assignment} WHERE id % 4 = {self.random.randint(0, 3)}")

    # delta-rs

    def rows(self, count=None, **columns):
        """Rows for delta-rs: ``id`` and more columns, each a function of the number or an Arrow array."""
        count = count or self.random.randint(3, 8)
        numbers = range(self.next_id, self.next_id + count)
        self.next_id += count
        made = {name: pa.array([of(n) for n in numbers], kind) for name, (of, kind) in columns.items()}
        return pa.table({"id": pa.array(numbers, pa.int32()), **made})

    def write(self, rows, **options):
        write_deltalake(self.path, rows, mode=options.pop("mode", "append"), **options)

    @property
    def table(self):
        return DeltaTable(self.path)


def with_even_times(folder):
    """Commit n gets the time BEGIN + n * STEP, so that questions by time do not hang on the machine's speed."""
    for file in (folder / "_delta_log").glob("*.json"):
        if file.name[:20].isdigit() and len(file.name) == 25:
            moment = BEGIN + int(file.name[:20]) * STEP
            os.utime(file, (moment, moment))


def copied(source, target):
    """A copy at another place: neither reader holds anything of it in memory. It keeps the times of its files."""
    shutil.copytree(source, target)
    return target


PARTITIONS = {
    "STRING": "concat('s ', id % 3, '=/%é')",
    "INT": "CAST(id % 3 - 1 AS INT)",
    "BIGINT": "id % 3 * 3000000000",
    "SMALLINT": "CAST(id % 3 AS SMALLINT)",
    "TINYINT": "CAST(id % 3 - 2 AS TINYINT)",
    "BOOLEAN": "id % 2 = 0",
    "DATE": "date_from_unix_date(CAST(id % 3 * 9000 - 9000 AS INT))",
    "TIMESTAMP": "timestamp_micros(id % 3 * 86400000001)",
    "TIMESTAMP_NTZ": "CAST(timestamp_micros(id % 3 * 86400000001) AS TIMESTAMP_NTZ)",
    "DECIMAL(10,2)": "CAST(id % 3 * 1.25 AS DECIMAL(10,2))",
    "DECIMAL(38,10)": "CAST(id % 3 * 12345678901234567.125 AS DECIMAL(38,10))",
    "DOUBLE": "id % 3 / 4D",
    "FLOAT": "CAST(id % 3 / 4 AS FLOAT)",
    "BINARY": "CAST(concat('b', id % 3) AS BINARY)",
}
NAMED = "concat('n', id)"


def plain(at):
    at.create("s STRING, x DOUBLE")
    at.insert(f"{NAMED}, id / 4D")
    at.insert("NULL, id / 8D")
    at.random.choice([at.delete, lambda: at.update("s = 'u'")])()


def merged(at):
    at.create("s STRING")
    at.insert(NAMED, count=6)
    at.sql(
        "MERGE INTO TABLE_ t USING (SELECT * FROM VALUES (1, 'm'), (4, 'm'), (90, 'm') AS s(id, s)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    at.sql("OPTIMIZE TABLE_")


def restored(at):
    at.create("s STRING")
    at.insert(NAMED)
    at.sql(f"INSERT OVERWRITE TABLE_ VALUES ({at.seed}, 'o')")
    at.sql("RESTORE TABLE TABLE_ TO VERSION AS OF 1")


def partitioned(at):
    kind = list(PARTITIONS)[at.seed % len(PARTITIONS)]
    at.create(f"p {kind}, s STRING", partition="p")
    at.insert(f"if(id % 4 = 3, NULL, {PARTITIONS[kind]}), {NAMED}", count=8)
    at.delete()


def partitioned_twice(at):
    one, two = at.random.sample(list(PARTITIONS), 2)
    at.create(f"p {one}, `q.r` {two}, s STRING", partition="p, `q.r`")
    at.insert(f"{PARTITIONS[one]}, if(id % 4 = 3, NULL, {PARTITIONS[two]}), {NAMED}", count=8)
    at.sql("INSERT INTO TABLE_ VALUES (99, NULL, NULL, NULL)")


def nested(at):
    at.create(
        "s STRUCT<a: INT, `b.c`: STRUCT<d: ARRAY<STRING>>>, m MAP<STRING, STRUCT<e: DATE>>, r ARRAY<ARRAY<INT>>"
    )
    at.insert(
        "named_struct('a', CAST(id AS INT), 'b.c', named_struct('d', array('x', NULL))), "
        "map('k', named_struct('e', date_from_unix_date(CAST(id AS INT)))), array(array(1, NULL), NULL)"
    )
    at.sql("INSERT INTO TABLE_ VALUES (98, NULL, NULL, NULL), (99, NULL, map(), array())")


def every_type(at):
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(PARTITIONS))
    at.create(columns)
    at.insert(", ".join(f"if(id % 4 = 3, NULL, {value})" for value in PARTITIONS.values()), count=7)
    at.delete()


def mapped(mode):
    def whole(at):
        at.sql(
            "CREATE TABLE TABLE_ (id INT, `a b` STRING, gone INT, s STRUCT<`x,y`: INT>) USING delta "
            f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"
        )
        at.insert("concat('v', id), CAST(id AS INT), named_struct('x,y', CAST(id AS INT))")
        at.sql("ALTER TABLE TABLE_ RENAME COLUMN `a b` TO `c;d`")
        at.sql("ALTER TABLE TABLE_ DROP COLUMN gone")
        at.insert("concat('w', id), named_struct('x,y', NULL)")

    return whole


def mapped_partition(at):
    at.sql(
        "CREATE TABLE TABLE_ (id INT, `p p` STRING) USING delta PARTITIONED BY (`p p`) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    at.insert("concat('p', id % 2)")
    at.sql("ALTER TABLE TABLE_ RENAME COLUMN `p p` TO `q=q`")
    at.delete()


def vectors(at):
    at.create("s STRING", enableDeletionVectors="true")
    at.insert(NAMED, count=9)
    at.delete()
    at.update("s = 'u'")


def widened(at):
    before, after, value = [
        ("TINYINT", "INT", "CAST(id AS TINYINT)"),
        ("SMALLINT", "BIGINT", "CAST(id AS SMALLINT)"),
        ("INT", "DOUBLE", "CAST(id AS INT)"),
        ("FLOAT", "DOUBLE", "CAST(id / 3 AS FLOAT)"),
        ("DECIMAL(5,2)", "DECIMAL(12,4)", "CAST(id / 4 AS DECIMAL(5,2))"),
        ("DATE", "TIMESTAMP_NTZ", "date_from_unix_date(CAST(id AS INT))"),
        ("INT", "DECIMAL(12,2)", "CAST(id AS INT)"),
    ][at.seed % 7]
    # Spark enables the feature of the new type by itself only where a table is made.
    more = {"feature.timestampNtz": "supported"} if after == "TIMESTAMP_NTZ" else {}
    at.create(f"v {before}", enableTypeWidening="true", **more)
    at.insert(value)
    at.sql(f"ALTER TABLE TABLE_ ALTER COLUMN v TYPE {after}")
    at.insert("NULL")


def row_tracked(at):
    at.create("s STRING", enableRowTracking="true")
    at.insert(NAMED)
    at.update("s = 'u'")
    at.sql("OPTIMIZE TABLE_")


def change_feed(at):
    at.create("s STRING", enableChangeDataFeed="true", enableDeletionVectors=["false", "true"][at.seed % 2])
    at.insert(NAMED, count=8)
    at.update("s = 'u'")
    at.delete()


def change_feed_merged(at):
    at.create("s STRING, p INT", partition="p", enableChangeDataFeed="true")
    at.insert(f"{NAMED}, CAST(id % 2 AS INT)", count=6)
    at.sql(
        "MERGE INTO TABLE_ t USING (SELECT * FROM VALUES (1, 'm', 1), (4, 'm', 0), (90, 'm', 1) AS s(id, s, p)) s "
        "ON t.id = s.id WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def commit_times(at):
    at.create("s STRING", enableInCommitTimestamps="true")
    at.insert(NAMED)
    at.insert(NAMED)


def commit_times_later(at):
    at.create("s STRING")
    at.insert(NAMED)
    at.sql("ALTER TABLE TABLE_ SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    at.insert(NAMED)


def v2_checkpoint(at):
    form = ["json", "parquet"][at.seed % 2]
    at.session.conf.set("spark.databricks.delta.checkpointV2.topLevelFileFormat", form)
    try:
        at.create("s STRING", checkpointPolicy="v2", checkpointInterval="2")
        for _ in range(3):
            at.insert(NAMED)
    finally:
        at.session.conf.unset("spark.databricks.delta.checkpointV2.topLevelFileFormat")


def checkpoint_in_parts(at):
    at.session.conf.set("spark.databricks.delta.checkpoint.partSize", "2")
    try:
        at.create("s STRING", checkpointInterval="2")
        for _ in range(3):
            at.insert(NAMED)
    finally:
        at.session.conf.unset("spark.databricks.delta.checkpoint.partSize")


def struct_statistics(at):
    at.sql(
        "CREATE TABLE TABLE_ (id INT, t TIMESTAMP, d DECIMAL(38,10), p DATE) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.checkpointInterval' = '2', 'delta.checkpoint.writeStatsAsStruct' = 'true', "
        f"'delta.checkpoint.writeStatsAsJson' = '{['false', 'true'][at.seed % 2]}')"
    )
    for _ in range(2):
        at.insert(
            "timestamp_micros(id * 1000001), CAST(id * 12345678901234567.89 AS DECIMAL(38,10)), "
            "date_from_unix_date(CAST(id % 2 AS INT))"
        )


def local_times(at):
    at.create("t TIMESTAMP_NTZ, z TIMESTAMP, p TIMESTAMP_NTZ", partition="p")
    at.insert(
        "CAST(timestamp_micros(id * 1000001) AS TIMESTAMP_NTZ), timestamp_micros(-id), "
        "CAST(timestamp_micros(id % 2 * 1000001) AS TIMESTAMP_NTZ)"
    )


def variants(at):
    at.create("v VARIANT")
    at.insert("parse_json(concat('{\"a\": [', id, ', null, \"x\"]}'))")
    at.sql("INSERT INTO TABLE_ VALUES (99, NULL), (100, parse_json('1.5'))")


def clustered(at):
    at.create("s STRING, n BIGINT", cluster="n")
    at.insert(f"{NAMED}, id * 7")
    at.sql("OPTIMIZE TABLE_")


def checked(at):
    at.create("n INT NOT NULL")
    at.sql("ALTER TABLE TABLE_ ADD CONSTRAINT small CHECK (n < 1000)")
    at.insert("CAST(id AS INT)")
    at.update("n = 900")


def defaults(at):
    at.create("d INT DEFAULT 7, s STRING DEFAULT 'x'", **{"feature.allowColumnDefaults": "supported"})
    at.insert("CAST(id AS INT), 'given'")
    at.sql("INSERT INTO TABLE_ (id) VALUES (90), (91)")


def append_only(at):
    at.create("s STRING", appendOnly="true")
    at.insert(NAMED)
    at.insert(NAMED)


def domains(at):
    at.create("s STRING", **{"feature.domainMetadata": "supported", "enableRowTracking": "true"})
    at.insert(NAMED)
    at.sql("ALTER TABLE TABLE_ ADD COLUMNS (x INT)")
    at.insert(f"{NAMED}, CAST(id AS INT)")


def protected(at):
    at.create(
        "s STRING",
        **{"feature.vacuumProtocolCheck": "supported", "feature.checkpointProtection": "supported"},
    )
    at.insert(NAMED)
    at.sql("VACUUM TABLE_")


def evolved(at):
    at.create("s STRING")
    at.insert(NAMED)
    at.sql("ALTER TABLE TABLE_ ADD COLUMNS (x INT AFTER id, y STRUCT<a: INT>)")
    at.insert(f"CAST(id AS INT), {NAMED}, named_struct('a', 1)")
    at.sql("ALTER TABLE TABLE_ ADD COLUMNS (y.b STRING)")


SPARK = {
    "plain": plain,
    "merge and optimize": merged,
    "overwrite and restore": restored,
    "partitions of every type": partitioned,
    "two partition columns": partitioned_twice,
    "nested columns": nested,
    "columns of every type": every_type,
    "column mapping by name": mapped("name"),
    "column mapping by id": mapped("id"),
    "mapped partition column": mapped_partition,
    "deletion vectors": vectors,
    "type widening": widened,
    "row tracking": row_tracked,
    "change data feed": change_feed,
    "change data feed of a merge": change_feed_merged,
    "in-commit timestamps": commit_times,
    "in-commit timestamps from a later version": commit_times_later,
    "V2 checkpoint with sidecars": v2_checkpoint,
    "checkpoint in parts": checkpoint_in_parts,
    "checkpoint with statistics as struct": struct_statistics,
    "timestamps without zone": local_times,
    "variants": variants,
    "clustering": clustered,
    "check constraint": checked,
    "default columns": defaults,
    "append only": append_only,
    "domain metadata": domains,
    "protocol checks": protected,
    "columns added": evolved,
}
NAME = (lambda n: f"n{n}" if n % 4 else None, pa.string())


def rs_appended(at):
    for _ in range(3):
        at.write(at.rows(s=NAME))


def rs_partitioned(at):
    of, kind = [
        (lambda n: f"s {n % 3}=/%é", pa.string()),
        (lambda n: n % 3 - 1, pa.int64()),
        (lambda n: n % 2 == 0, pa.bool_()),
        (lambda n: n % 3 * 9000, pa.date32()),
        (lambda n: n % 3 * 86_400_000_001, pa.timestamp("us", "UTC")),
        (lambda n: n % 3 * 86_400_000_001, pa.timestamp("us")),
        (lambda n: n % 3 / 4, pa.float64()),
        (lambda n: f"b{n % 3}".encode(), pa.binary()),
    ][at.seed % 8]
    for _ in range(2):
        at.write(at.rows(count=6, s=NAME, p=(lambda n: of(n) if n % 4 else None, kind)), partition_by=["p"])


def rs_nested(at):
    struct = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    at.write(
        at.rows(
            t=(lambda n: {"a": n, "b": ["x", None]} if n % 3 else None, struct),
            m=(lambda n: [("k", n)], pa.map_(pa.string(), pa.int64())),
        )
    )


def rs_types(at):
    at.write(
        at.rows(
            count=7,
            a=(lambda n: n % 100, pa.int8()),
            b=(lambda n: n, pa.int16()),
            c=(lambda n: n / 3, pa.float32()),
            d=(lambda n: n * 86_400_000_001, pa.timestamp("us", "UTC")),
            e=(lambda n: n * 1_000_001, pa.timestamp("us")),
            f=(lambda n: f"{n}".encode(), pa.binary()),
            g=(lambda n: n * 100, pa.date32()),
        )
    )


def rs_deleted(at):
    at.write(at.rows(count=9, s=NAME))
    at.table.delete(f"id % 3 = {at.random.randint(0, 2)}")
    at.table.update({"s": "'u'"}, predicate="id % 4 = 1")


def rs_merged(at):
    at.write(at.rows(count=6, s=NAME))
    source = pa.table({"id": pa.array([1, 4, 90], pa.int32()), "s": ["m"] * 3})
    (
        at.table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


def rs_checkpointed(at):
    for _ in range(3):
        at.write(at.rows(s=NAME))
    at.table.create_checkpoint()
    at.write(at.rows(s=NAME))


def rs_evolved(at):
    at.write(at.rows(s=NAME))
    at.write(at.rows(s=NAME, x=(lambda n: n / 4, pa.float64())), schema_mode="merge")


def rs_overwritten(at):
    at.write(at.rows(s=NAME))
    at.write(at.rows(x=(lambda n: n, pa.int64())), mode="overwrite", schema_mode="overwrite")
    at.table.restore(0)


def rs_optimized(at):
    for _ in range(3):
        at.write(at.rows(s=NAME))
    at.table.optimize.compact()
    at.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def rs_compacted_log(at):
    for _ in range(4):
        at.write(at.rows(s=NAME))
    at.table.compact_logs(1, 3)


def rs_constrained(at):
    at.write(at.rows(s=NAME))
    at.table.alter.add_constraint({"positive": "id >= 0"})
    at.write(at.rows(s=NAME))


def rs_change_feed(at):
    at.has_change_feed = True
    at.write(at.rows(count=8, s=NAME), configuration={"delta.enableChangeDataFeed": "true"})
    at.table.update({"s": "'u'"}, predicate="id % 4 = 1")
    at.table.delete("id % 3 = 1")


DELTA_RS = {
    "appends of delta-rs": rs_appended,
    "partitions of delta-rs": rs_partitioned,
    "nested columns of delta-rs": rs_nested,
    "columns of delta-rs": rs_types,
    "delete and update of delta-rs": rs_deleted,
    "merge of delta-rs": rs_merged,
    "checkpoint of delta-rs": rs_checkpointed,
    "columns added by delta-rs": rs_evolved,
    "overwrite and restore of delta-rs": rs_overwritten,
    "optimize and vacuum of delta-rs": rs_optimized,
    "log compaction of delta-rs": rs_compacted_log,
    "check constraint of delta-rs": rs_constrained,
    "change data feed of delta-rs": rs_change_feed,
}
