"""States and checkpoints that Spark makes are those of this process, for logs of every shape."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freezeframe.errors import CorruptData, FreezeframeError, UnsupportedTable
from freezeframe.log.actions import DeletionVector, DomainMetadata, Remove, Txn
from freezeframe.log.condensed import CondensedStates, write_condensed_checkpoint
from freezeframe.log.delta_log import DeltaLog
from freezeframe.storage import LocalStorage
from freezeframe.testing.tables import TableBuilder, file

NOW = 10_000_000_000
CHECKPOINT = 4
PATHS = [f"{attempt}/part-{number}.parquet" for attempt in ("a", "b") for number in range(5)]
ODD_PATHS = [
    ("p=x%20y/f", "p=x%20y/f"),
    ("a+b c", "a+b%20c"),
    ("file:/tmp/x", "file:///tmp/x"),
    ("/tmp//y", "file:/tmp/y"),
    ("100%", "100%25"),
    ("s3a://bucket/f", "s3a://bucket/f"),
    ("ü/ß", "%C3%BC/%C3%9F"),
]


def vector(source):
    number = source.choice([None, None, 0, 1])
    offset = source.choice([None, 7])
    return None if number is None else DeletionVector("u", f"vector-{number}", 10, 1, offset)


def busy(root, seed):
    """Commits of random adds and removes, some of them in other spellings, with small actions between."""
    source = random.Random(seed)
    table = TableBuilder(LocalStorage(root)).create()
    for number in range(9):
        actions = {}
        for _ in range(source.randrange(9)):
            path, mark = source.choice(PATHS), vector(source)
            actions[path, mark] = (
                file(path, size=source.randrange(99), deletion_vector=mark, stats='{"numRecords":1}')
                if source.random() < 0.6
                else Remove(path, source.choice([None, 1, NOW]), deletion_vector=mark, size=4)
            )
        # The builder's checkpoints take two spellings for two files, so the second ones come after them.
        known, other = source.choice(ODD_PATHS)
        spelled = known if number < CHECKPOINT else source.choice([known, other])
        actions[known] = source.choice([file(spelled), Remove(spelled, NOW)])
        small = [Txn("job", number), DomainMetadata(f"d{number % 3}", "{}", removed=number % 2 == 0)]
        table.commit(*actions.values(), *small)
    return table


def told(state):
    files = {json.dumps(row, sort_keys=True, default=str) for row in state.files.files.to_pylist()}
    removed = sorted((row["path"], str(row["deletion_vector"])) for row in state.files.tombstones.to_pylist())
    return files, removed, state.files.count, state.files.size, state.heads


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["", "parts", "json", "parquet", "compacted"])
def test_spark_makes_the_state_of_this_process(tmp_path, spark_engine, kind):
    """Random logs with odd paths and vectors, after checkpoints of each kind: the same files and heads."""
    table = busy(tmp_path, seed=len(kind))
    if kind == "compacted":
        table.compact(2, 6)
    elif kind:
        table.checkpoint(CHECKPOINT, kind)
    wanted = DeltaLog(table.storage, "t").current_snapshot.state
    log = DeltaLog(table.storage, "t", large=CondensedStates(spark_engine, from_bytes=1))
    assert told(wanted) == told(log.current_snapshot.state)
    assert [] == list(table.storage.list_below("t/_delta_log/_condensed"))


@pytest.mark.spark
def test_sparks_checkpoint_is_one_of_ours(tmp_path, spark_engine):
    """Read from the parts that Spark made, nothing differs; what is expired or removed is not in them."""
    table = busy(tmp_path, seed=3)
    before = DeltaLog(table.storage, "t").current_snapshot
    retention = before.deleted_file_retention_ms
    hint = write_condensed_checkpoint(before, spark_engine, now_ms=NOW + retention - 1, part_actions_max=1)
    after = DeltaLog(table.storage, "t").current_snapshot
    assert before.version == after.segment.checkpoint_version
    assert hint.parts == len(after.segment.checkpoint.files) > 1
    assert told(before.state)[0] == told(after.state)[0]
    young = [row["path"] for row in before.all_tombstones.to_pylist() if row["deletion_timestamp"] == NOW]
    assert sorted(young) == sorted(after.all_tombstones["path"].to_pylist())
    assert before.count == hint.num_of_add_files
    assert before.transactions == after.transactions
    assert before.domains == after.domains
    assert not any(row["data_change"] for row in after.all_tombstones.to_pylist())


@pytest.mark.spark
def test_a_torn_line_is_an_error(tmp_path, spark_engine):
    """A commit that is cut off is not a state with fewer files."""
    table = busy(tmp_path, seed=1)
    name = f"t/_delta_log/{3:020d}.json"
    torn = table.storage.read(name).replace(b'"path":', b'"path:', 1)
    table.storage.replace(name, torn)
    log = DeltaLog(table.storage, "t", large=CondensedStates(spark_engine, from_bytes=1))
    with pytest.raises(FreezeframeError) as told_error:
        _ = log.current_snapshot.state
    assert isinstance(told_error.value, CorruptData) or "DELTA" in told_error.value.error_code
    assert [] == list(table.storage.list_below("t/_delta_log/_condensed"))


def test_statistics_in_columns_are_left_to_this_process(tmp_path):
    """A checkpoint without statistics as text would lose them: it is refused before anything is written."""
    table = busy(tmp_path, seed=2).checkpoint(CHECKPOINT)
    name = tmp_path / "t" / "_delta_log" / f"{CHECKPOINT:020d}.checkpoint.parquet"
    content = pq.read_table(name)
    adds = content["add"].combine_chunks()
    kept = [field for field in adds.type if field.name != "stats"]
    columns = [adds.field(field.name) for field in kept] + [
        pa.nulls(len(adds), pa.struct([("n", pa.int64())]))
    ]
    parsed = pa.StructArray.from_arrays(
        columns, fields=[*kept, pa.field("stats_parsed", columns[-1].type)], mask=adds.is_null()
    )
    pq.write_table(content.set_column(content.schema.get_field_index("add"), "add", parsed), name)
    log = DeltaLog(table.storage, "t", large=CondensedStates(None, from_bytes=1))
    with pytest.raises(UnsupportedTable, match="cannot be condensed"):
        _ = log.current_snapshot.state
