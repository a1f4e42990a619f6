"""Where a batch's keys are found: positions in files, by key alone."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect import functions as F  # noqa: N812 - the name by which Spark code calls it

from freezeframe.engine.plans.key_search import key_column
from freezeframe.engine.protocol import FindTask
from freezeframe.errors import InvalidOption
from freezeframe.log.format.schema import arrow_to_delta

pytestmark = pytest.mark.spark


def found(bench, stored, keys, **options):
    """The rows that were found, as (number of the file, position in it, place in the batch)."""
    rows = places(bench.engine.find(search(bench, stored, keys, **options)))
    return sorted(tuple(row.values()) for row in rows)


def search(bench, stored, keys, **options):
    return FindTask(
        stored=tuple(bench.file(table) for table in stored),
        stored_schema=arrow_to_delta(pa.schema([stored[0].schema.field(name) for name in keys.column_names])),
        target_schema=arrow_to_delta(keys.schema),
        keys=(bench.file(keys),),
        rows=len(keys),
        **options,
    )


def places(table):
    return table.select(["file", "row", "place"]).to_pylist()


def test_each_key_is_found_with_its_file_and_position(bench):
    """Two files, of which each holds some of the keys; a key that is nowhere is not found."""
    stored = [pa.table({"Id": ["a", "b", "c"], "n": [1, 2, 3]}), pa.table({"Id": ["d", "e"], "n": [4, 5]})]
    keys = pa.table({"Id": ["e", "x", "b"]})
    assert found(bench, stored, keys) == [(0, 1, 2), (1, 1, 0)]


def test_composite_keys_and_nulls_that_match(bench):
    """With null_keys='match' a null equals a null; without it, it is never found."""
    stored = [pa.table({"a": ["x", "x", None], "b": pa.array([1, None, 2], pa.int64())})]
    keys = pa.table({"a": ["x", None, "x"], "b": pa.array([None, 2, 1], pa.int64())})
    assert found(bench, stored, keys, null_keys="match") == [(0, 0, 2), (0, 1, 0), (0, 2, 1)]
    assert found(bench, stored, keys) == [(0, 0, 2)]


def test_keys_are_compared_in_the_target_type(bench):
    """A file that was written before a column was widened is searched as if it had been after."""
    stored = [pa.table({"Id": pa.array([1, 2], pa.int32())})]
    keys = pa.table({"Id": pa.array([2, 2**40], pa.int64())})
    assert found(bench, stored, keys) == [(0, 1, 0)]


def test_a_key_may_be_called_as_spark_calls_its_own_columns(bench):
    """The place of a row is never mistaken for a column of the stream."""
    stored = [pa.table({"_metadata": ["a", "b"], "`odd`": ["c", "d"]})]
    assert found(bench, stored, pa.table({"_metadata": ["b"], "`odd`": ["d"]})) == [(0, 1, 0)]


def test_many_keys_are_found_without_holding_them_all_at_once(bench, monkeypatch):
    """Above the limit both sides are split by key; the answer is the same."""
    monkeypatch.setattr("freezeframe.engine.plans.key_search.BROADCAST_KEYS_MAX", 1)
    stored = [pa.table({"Id": list(range(50))})]
    assert [(0, n, n // 10) for n in (0, 10, 20)] == found(bench, stored, pa.table({"Id": [0, 10, 20]}))


def test_several_searches_at_once_find_what_each_finds(bench):
    """Keys of other types, nulls that match, two files, a key that is nowhere: one query, own answers."""
    numbers = pa.table({"Id": pa.array([1, 2, 3], pa.int64())})
    pairs = pa.table({"a": ["x", "x", None], "b": pa.array([1, None, 2], pa.int64())})
    tasks = [
        search(bench, [pa.table({"Id": ["a", "b"]}), pa.table({"Id": ["c"]})], pa.table({"Id": ["c", "a"]})),
        search(bench, [numbers], pa.table({"Id": pa.array([9], pa.int64())})),
        search(bench, [pairs], pairs, null_keys="match"),
        search(bench, [numbers], numbers),
    ]
    answers = [sorted(tuple(row.values()) for row in places(item)) for item in bench.engine.find_all(tasks)]
    own = [(0, row, row) for row in range(3)]
    assert [[(0, 0, 1), (1, 0, 0)], [], own, own] == answers


def test_files_of_one_name_are_refused():
    """Spark tells files by their names, so two of one name could not be told apart."""
    schema = arrow_to_delta(pa.schema([("Id", pa.string())]))
    with pytest.raises(InvalidOption, match="same name"):
        FindTask(("/a/x.parquet", "/b/x.parquet"), schema, schema, ("/k.parquet",))


def test_page_checksums_are_of_no_concern_to_positions(bench):
    """Positions count through all row groups of a file."""
    table = pa.table({"Id": [f"{n:04}" for n in range(1_000)]})
    path = bench.new() + ".parquet"
    pq.write_table(table, path, row_group_size=100)
    schema = arrow_to_delta(table.schema)
    task = FindTask((path,), schema, schema, (bench.file(pa.table({"Id": ["0999", "0500"]})),), rows=2)
    rows = bench.engine.find(task)
    assert set(zip(rows["row"].to_pylist(), rows["place"].to_pylist(), strict=True)) == {(999, 0), (500, 1)}


def test_keys_that_share_their_first_part_are_split_evenly(bench, spark_session, monkeypatch):
    """Nine keys in ten of one account: they are found by several tasks, none with most of the rows."""
    monkeypatch.setattr("freezeframe.engine.plans.key_search.BROADCAST_KEYS_MAX", 1)
    monkeypatch.setattr("freezeframe.engine.plans.key_search.KEYS_PER_TASK", 100)
    accounts = ["everybody's" if number % 10 else f"own {number}" for number in range(1000)]
    stored = pa.table({"account": accounts, "Id": range(1000)})
    keys = stored.slice(100, 800)
    assert [(0, row, row - 100) for row in range(100, 900)] == found(bench, [stored], keys)
    split = spark_session.createDataFrame(stored.to_pandas())
    whole = key_column(["account", "Id"], "error").alias("key")
    tasks = split.select(whole).repartition(8, "key").groupBy(F.spark_partition_id()).count().collect()
    assert len(tasks) == 8
    assert 250 > max(row["count"] for row in tasks)
