"""The number of tasks of a merge follows from bytes and from Spark's cores, wherever the files are."""

import pyarrow as pa
import pytest

from freezeframe.engine.plans.merge import Layout, choose_layout, layout_of, tasks_at_once
from freezeframe.engine.protocol import MergeTask

MB, GB, TB = 2**20, 2**30, 2**40


@pytest.mark.parametrize(
    ("size", "at_once", "partitions"),
    [
        (17 * MB, 2, 2),
        (17 * MB, 400, 5),
        (GB, 2, 8),
        (GB, 400, 256),
        (5 * GB // 4, 4, 10),
        (125 * TB, 4, 1_024_000),
    ],
)
def test_tasks_follow_from_bytes_and_cores(size, at_once, partitions):
    """About 128 MB a task; less where cores would be idle, and never less than 4 MB."""
    assert choose_layout(size, None, at_once).partitions == partitions


def test_a_batch_is_hashed_where_its_share_fits():
    """What is unknown is sorted, which can spill."""
    assert choose_layout(GB, 8 * 64 * MB, 2) == Layout(8, is_batch_hashed=True)
    assert choose_layout(GB, 8 * 64 * MB + 8, 2) == Layout(8, is_batch_hashed=False)
    assert choose_layout(GB, None, 2) == Layout(8, is_batch_hashed=False)


@pytest.mark.spark
def test_files_elsewhere_are_planned_for_by_their_bytes(spark_session):
    """Of files in a bucket the log tells the bytes; how much is done at once, the session's Spark says."""
    schema = {"type": "struct", "fields": []}

    def tasks(size):
        stored = ("s3a://bucket/table/part.parquet",)
        task = MergeTask(stored, schema, stored, schema, schema, size_bytes=size)
        return layout_of(spark_session, task).partitions

    assert [tasks(size) for size in (MB, 5 * GB // 4, 125 * TB)] == [1, 10, 1_024_000]
    parts = spark_session.range(1 << 10).selectExpr("spark_partition_id() part").distinct().count()
    assert tasks_at_once(spark_session) == parts


@pytest.mark.spark
def test_a_window_is_written_in_so_many_tasks(bench):
    """At most one file a task: 640 MB, by what the caller says of it, are five tasks of two files here."""
    stored, batch = pa.table({"Id": range(500)}), pa.table({"Id": range(400, 600)})
    result, rows = bench.merge(stored, batch, where="Id >= 400", size_bytes=640 * MB)
    assert len(result.files) == 2
    assert sorted(row["Id"] for row in rows) == list(range(600))
