"""Keyed updates of all sizes, file by file: the rows, the counts, and what becomes of files."""

import datetime as dt
import io
import json
from collections import Counter
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from freezeframe.errors import (
    CorruptData,
    DuplicateKeyError,
    InvalidOption,
    OutsideWindow,
    SchemaDriftError,
    StorageNotShared,
)
from freezeframe.identifiers import StreamName
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.log.scan import rows
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.memory import FaultyStorage
from freezeframe.store import Tenant
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.model.directory import StreamTable
from freezeframe.store.model.update_options import Update
from freezeframe.store.table import keys, staging
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.table.reader import has_vectors, live_files
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.updates import batch as batches
from freezeframe.store.updates import file_merge, plan, upsert
from freezeframe.store.updates import merge as merging
from freezeframe.store.updates.batch import UpdateBatch
from freezeframe.store.updates.file_merge import BatchRows, FileGroup, FileMerge, MergedFiles
from freezeframe.store.updates.rule import Fates, MergeRule
from freezeframe.store.updates.update import StreamUpdate

BY_FILE = {
    (upsert, "PATCHED_BYTES_MAX"): 0,
    (staging, "_GROUP_ROWS"): 1,
    (keys, "PART_ROWS_MIN"): 1,
    (keys, "processors"): lambda: 3,
    (merging, "processors"): lambda: 3,
}
"""Limits by which each update by key goes file by file, and three tasks share a file."""
TINY = {**BY_FILE, (file_merge, "KEYS_MAX"): 2, (file_merge, "PIECE_ROWS"): 1}
"""The same with few keys and rows at a time."""
RUNS = {(upsert, "RUN_ROWS_MIN"): 1, (upsert, "processors"): lambda: 3}
"""Limits by which threads share an upsert."""


def limit(patch, limits):
    for (module, name), value in limits.items():
        patch.setattr(module, name, value)


class Tasks(ArrowEngine):
    """What Spark is asked to run, in this process."""

    def storage_of_tasks(self, storage):
        return storage

    def run(self, calls):
        return [call() for call in calls]


def tenant_in_process(**options):
    storage = MemoryStorage()
    return Tenant(storage, ArrowEngine(), Settings(engine="auto", **options))


def tenant_in_tasks(**options):
    storage = MemoryStorage()
    return Tenant(storage, Tasks(), Settings(engine="spark", **options))


def counts(receipt):
    return receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted


def frame(numbers, **columns):
    return pd.DataFrame({"Id": [f"{n:04}" for n in numbers], **columns})


def rows_of(stream, **options):
    return stream.read(as_="arrow", **options).to_pylist()


@pytest.mark.parametrize(
    ("compatibility", "left", "fates"),
    [("plain", [0, 2], "3 left, 1 rewritten"), ("auto", [0, 1, 2], "4 left, 1 marked")],
)
def test_files_that_do_not_change_are_left(monkeypatch, compatibility, left, fates):
    """A full extract marks rows of files, or writes the files anew in their order; new rows come last."""
    monkeypatch.setattr("freezeframe.log.scan.file_rows._BATCH_ROWS_MAX", 4)
    stream = tenant_in_process(vectors_from_bytes=0, compatibility=compatibility).stream("Lead")
    for start in (0, 10, 20):
        stream.update(frame(range(start, start + 10), n=range(10)), key="Id")
    before = stream._snapshot().files["path"].to_pylist()
    batch = frame([*range(17), 18, 19, *range(20, 30), 50], n=[*range(10), *range(7), 80, 9, *range(10), 1])
    receipt = stream.update(batch, mode="full")
    assert (1, 1, 28, 1) == counts(receipt)
    files = stream._snapshot().files
    assert [before[number] for number in left] == [
        path for path in before if path in files["path"].to_pylist()
    ]
    assert receipt.engine == "process"
    told = stream.explain(batch.assign(n=batch["n"].where(batch["Id"] != "0005", 70)), mode="full").route
    assert str(told).endswith(f"; files: {fates}")
    rows = {row["Id"]: row["n"] for row in rows_of(stream)}
    assert rows == dict(zip(batch["Id"], batch["n"], strict=True))
    assert [f"{n:04}" for n in (*range(17), 18, 19)] == [key for key in rows if key < "0020"]


@pytest.mark.parametrize(
    ("changed", "fate", "rows_left"),
    [
        ([], "no row of it changes", [8]),
        ([0, 5], "2 of its 8 rows change", [6, 1, 1]),
        ([0, 1, 2], "3 of its 8 rows change", [4, 4]),
        ([0, 1, 2, 5], "5 of its 8 rows are deleted then", [4, 1, 3]),
        ([0, 1, 2, 4, 5, 6], "8 of its 8 rows are deleted then", [4, 4]),
    ],
)
def test_a_file_stays_where_few_of_its_rows_change(monkeypatch, changed, fate, rows_left):
    """Changed rows are marked in it; where few of a group are left, all are moved, and so of the file."""
    limit(monkeypatch, BY_FILE | {(staging, "_GROUP_ROWS"): 4})
    stream = tenant_in_tasks(vectors_from_bytes=0).stream("Lead")
    stream.update(pa.table({"Id": range(8), "n": range(8)}), key="Id")
    batch = pa.table({"Id": range(8), "n": [n + 10 * (n in changed) for n in range(8)]})
    (choice,) = stream.explain(batch, mode="full").route.choices
    assert fate == choice.reason
    receipt = stream.update(batch, mode="full")
    assert (0, len(changed), 8 - len(changed), 0) == counts(receipt)
    live = [file.rows - file.deleted for file in live_files(stream._snapshot().files)]
    assert sorted(rows_left) == sorted(live)
    assert has_vectors(stream._snapshot()) is ("rows change" in fate)
    assert batch.to_pylist() == stream.read(as_="arrow").sort_by("Id").to_pylist()


def test_rows_of_a_stream_are_marked_only_from_its_size_on(monkeypatch):
    """Below it files are written anew, also those that stay apart, so that old readers read on."""
    made = tenant_in_process(vectors_from_bytes=0)
    for start in (0, 4):
        made.stream("Lead").update(pa.table({"Id": range(start, start + 4), "n": range(4)}), key="Id")
    limit(
        monkeypatch,
        {(merging, "SETTLED_BYTES"): live_files(made.stream("Lead")._snapshot().files)[0].size + 1},
    )
    settings = made.context.settings.model_copy(update={"vectors_from_bytes": 1 << 30})
    stream = Tenant(made.context.storage, made.context.engine, settings).stream("Lead")
    receipt = stream.update(pa.table({"Id": range(8), "n": [9, 1, 2, 3, 9, 1, 2, 3]}), mode="full")
    assert (0, 2, 6, 0) == counts(receipt)
    assert not has_vectors(stream._snapshot())


def test_many_small_files_become_one():
    """A stream that full extracts alone change has a handful of files."""
    stream = tenant_in_process(vectors_from_bytes=0).stream("Lead")
    stream.update(frame(range(1), n=[0]), key="Id")
    for count in range(2, 30):
        stream.update(frame(range(count), n=range(count)), mode="full")
    assert stream._snapshot().files.num_rows < 9
    assert [f"{n:04}" for n in range(29)] == sorted(row["Id"] for row in rows_of(stream))


def test_a_file_without_rows_left_goes():
    """No empty file takes its place."""
    stream = tenant_in_process(vectors_from_bytes=0).stream("Lead")
    stream.update(frame(range(5), n=range(5)), key="Id")
    stream.update(frame(range(100, 110), n=range(10)))
    stream.update(frame(range(100, 110), n=range(10)), mode="full", max_delete_ratio=1.0)
    assert stream._snapshot().files.num_rows == 1
    assert stream.count() == 10


def test_small_files_become_one_beside_a_large_one(monkeypatch):
    """A large file that is written anew, too, leaves the small ones behind it their place in one."""
    tenant = tenant_in_process(vectors_from_bytes=0)
    stream = tenant.stream("Lead")
    content = pa.table({"Id": range(2_000), "n": range(2_000)})
    for start, end in [(0, 1_900), (1_900, 1_901), (1_901, 1_902), (1_902, 2_000)]:
        stream.update(content.slice(start, end - start), key="Id")
    sizes = stream._snapshot().files["size"].to_pylist()
    assert len(sizes) == 4
    assert sum(sizes[1:]) < sizes[0]
    for module in (merging, plan):
        monkeypatch.setattr(module, "SETTLED_BYTES", sizes[0])
    rewriting = Tenant(tenant.context.storage, tenant.context.engine, Settings(engine="auto"))
    rewriting.stream("Lead").update(content.slice(0, 1_999), mode="full")
    counts_of = rewriting.stream("Lead")._snapshot().files["stats"].to_pylist()
    assert [1_900, 99] == [json.loads(text)["numRecords"] for text in counts_of]


def test_columns_that_go_and_widen_are_written_anew_in_each_file(monkeypatch):
    """Stored values take the new type exactly: integers as decimals, times as text, parts of structs."""
    limit(monkeypatch, TINY)
    stream = tenant_in_tasks(vectors_from_bytes=0).stream("Lead")
    old = pa.table({"Id": [1, 2], "gone": [1, 1], "n": pa.array([7, -8], pa.int32()), "s": [{"x": 1}, None]})
    stream.update(old, key="Id")
    new = pa.table(
        {
            "Id": [2, 3],
            "n": pa.array(["0.5", "1.5"]).cast(pa.decimal128(12, 1)),
            "s": [{"y": "b", "x": 5}, {"y": "c", "x": None}],
        }
    )
    receipt = stream.update(new, drop_column="gone")
    assert (1, 1, 0, 0) == counts(receipt)
    rows = stream.read(as_="arrow").sort_by("Id").to_pylist()
    assert [(1, 7, {"x": 1, "y": None}), (2, 0.5, {"x": 5, "y": "b"}), (3, 1.5, {"x": None, "y": "c"})] == [
        (row["Id"], float(row["n"]), row["s"]) for row in rows
    ]


def test_a_key_twice_in_the_stored_rows_is_damage():
    """A stream that already holds a key twice is not made worse."""
    stream = tenant_in_process(vectors_from_bytes=0).stream("Lead")
    stream.update(pa.table({"Id": range(5), "n": range(5)}), key="Id")
    snapshot = stream._snapshot()
    batch = pa.table({"Id": [3], "n": [1]})
    task = FileMerge(
        snapshot,
        "attempt",
        snapshot.delta_schema,
        MergeRule(batch.schema, ("Id", "n"), ("Id",)),
        BatchRows(batch.schema, 1, table=batch),
        tuple(FileGroup(rows.plan_reads(snapshot, None, None).reads, (None,)) for _ in range(2)),
    )
    with pytest.raises(CorruptData, match="more than once"):
        task.run()


def test_a_key_twice_in_a_file_that_tasks_share_is_found(monkeypatch):
    """Neither of them sees both rows, and their answers together tell of more rows than keys."""
    limit(monkeypatch, BY_FILE)
    stream = tenant_in_process().stream("Lead")
    stream.update(pa.table({"Id": [0, 1, 2, 0], "n": range(4)}), override=True)
    snapshot, batch = stream._snapshot(), pa.table({"Id": [0, 1], "n": [7, 7]})
    (read,) = rows.plan_reads(snapshot, None, None).reads
    rule = MergeRule(batch.schema, ("Id", "n"), ("Id",))
    batch = BatchRows(batch.schema, 2, table=batch)
    groups = (FileGroup((read,), (None,), is_marked=True),)
    task = FileMerge(snapshot, "try", snapshot.delta_schema, rule, batch, groups)
    parts = task.shares(3)
    assert len(parts) == 3
    merged = MergedFiles.joined([part.run() for part in parts])
    assert (3, 2) == (merged.met, merged.flags(2).sum())


SIZES = pytest.mark.parametrize("bytes_max", [0, batches.LANDED_BYTES_MAX], ids=["large", "small"])


def landed_update(stream, rows, monkeypatch, bytes_max, **options):
    """An update by two files of rows, as Spark lands them, its snapshot, and the folder with the files."""
    monkeypatch.setattr(batches, "LANDED_BYTES_MAX", bytes_max)
    snapshot = stream._snapshot()
    folder = StagingFolder(snapshot, "try")
    half = len(rows) // 2
    for number, part in enumerate((rows.slice(0, half), rows.slice(half)), 1):
        pq.write_table(part, content := io.BytesIO())
        folder.store(f"try/landed/{number}.parquet", content.getvalue())
    paths = folder.batch_paths(["1.parquet", "2.parquet"])
    batch = UpdateBatch(rows.slice(0, 0), len(rows), 0, paths, folder, values_known=False, landed=rows.schema)
    update, engine = Update(key=("Id",), **options), ArrowEngine()
    return StreamUpdate(StreamName(stream.name), engine, Settings(), update, batch, 0.0), snapshot, folder


@SIZES
def test_a_landed_file_that_is_missing_deletes_no_stored_row(monkeypatch, bytes_max):
    """A full extract is refused with the file's name, whether its rows are read at once or by file."""
    stream = tenant_in_process().stream("Lead")
    stored = pa.table({"Id": [1, 2, 3, 4], "n": [1, 2, 3, 4]})
    stream.update(stored, key="Id")
    options = {"mode": "full", "max_delete_ratio": 1.0}
    update, snapshot, folder = landed_update(stream, stored, monkeypatch, bytes_max, **options)
    told = update.apply(snapshot, folder, CommitIdentity("whole", 0))
    assert (0, 0, 4, 0) == counts(told.counts)
    snapshot.storage.delete(f"{snapshot.table}/{update.batch.paths[1]}")
    with pytest.raises(StorageNotShared, match=r"landed/2\.parquet' .* missing"):
        update.apply(snapshot, folder, CommitIdentity("part", 0))


@SIZES
@pytest.mark.parametrize("mode", ["upsert", "full"])
def test_a_landed_key_that_no_timestamp_reaches_is_refused(monkeypatch, bytes_max, mode):
    """A date arrives for a key of timestamps, and the error says so at each size and in each mode."""
    stream = tenant_in_process().stream("Lead")
    near, far = pa.array([0, 1], pa.timestamp("us")), pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())
    stored = pa.table({"Id": near, "v": near})
    stream.update(stored, key="Id")
    rows = pa.table({"Id": far, "v": near})
    update, snapshot, folder = landed_update(stream, rows, monkeypatch, bytes_max, mode=mode)
    with pytest.raises(SchemaDriftError, match="of the batch does not fit"):
        update.apply(snapshot, folder, CommitIdentity("far", 0))


def test_files_of_a_batch_hold_all_its_rows():
    """Fewer rows than were landed are refused, also where the file is there."""
    pq.write_table(pa.table({"Id": [1, 2]}), content := io.BytesIO())
    storage = MemoryStorage()
    storage.put_if_absent("rows.parquet", content.getvalue())
    file = ("rows.parquet", len(content.getvalue()))
    batch = BatchRows(pa.schema([("Id", pa.int64())]), 3, storage, (file,))
    for read in (lambda: list(batch.key_pieces(["Id"])), lambda: batch.take(np.arange(3))):
        with pytest.raises(StorageNotShared, match="wrote 3 rows, and 2 of them"):
            read()


def test_new_rows_are_read_once_where_the_rest_is_merged():
    """Their keys are not read again, for all that they can meet is known."""
    pq.write_table(rows := pa.table({"Id": [1, 2, 3]}), content := io.BytesIO())
    storage = FaultyStorage(MemoryStorage())
    storage.put_if_absent("rows.parquet", content.getvalue())
    batch = BatchRows(rows.schema, 3, storage, (("rows.parquet", len(content.getvalue())),))
    table, group = StreamTable(storage, "T"), FileGroup((), ())
    rule = MergeRule(rows.schema, ("Id",), ("Id",))
    task = FileMerge(table, "try", arrow_to_delta(rows.schema), rule, batch, (group,))
    met = MergedFiles(Fates(), {}, frozenset(), {}, {}, 0, np.packbits([1, 0, 0]).tobytes(), 1, 0)
    assert task.write_new(StagingFolder(table, "try"), met).rows == 2
    assert ["read"] == [call.verb for call in storage.calls if call.name == "rows.parquet"][1:]


@pytest.mark.parametrize("inside", [[], [1]])
def test_a_file_without_a_row_in_the_window_is_not_read(inside):
    """Its footer alone: damage of its rows is seen only where one of them goes."""
    stream = tenant_in_process(vectors_from_bytes=0).stream("Report")
    stream.update(pa.table({"n": range(5)}), override=True)
    snapshot, batch = stream._snapshot(), pa.table({"n": pa.array([], pa.int64())})
    (read,) = rows.plan_reads(snapshot, None, None).reads
    name = f"{snapshot.table}/{read.path}"
    content = bytearray(snapshot.storage.read(name))
    content[8] ^= 1
    snapshot.storage.replace(name, bytes(content))
    rule = MergeRule(batch.schema, ("n",), (), absent="removed")
    group = FileGroup((read,), (np.array(inside, np.int64),), is_marked=True)
    batch = BatchRows(batch.schema, 0, table=batch)
    task = FileMerge(snapshot, "try", snapshot.delta_schema, rule, batch, (group,))
    with pytest.raises(CorruptData) if inside else nullcontext():
        merged = task.run()
        assert (0, {}, frozenset()) == (merged.rows, merged.marked, merged.replaced)


@pytest.fixture
def windowed(spark_engine, tmp_path):
    """A stream of five keys, of which three are in the window ``day = 2``."""
    tenant = Tenant(LocalStorage(tmp_path), spark_engine, Settings(vectors_from_bytes=0))
    stream = tenant.stream("Lead")
    stream.update(pa.table({"Id": [1, 2, 3, 4, 5], "day": [1, 2, 2, 2, 2], "v": [*"abcdz"]}), key="Id")
    stream.update(pa.table({"Id": [5], "day": [1]}))
    return stream


@pytest.mark.spark
def test_a_keyed_window_counts_by_key(windowed):
    """Inside the window keys are inserted, updated, unchanged or deleted; outside nothing is touched."""
    batch = pa.table({"Id": [2, 3, 6], "day": [2, 2, 2], "v": ["b", "C", "e"]})
    assert (1, 1, 1, 1) == counts(windowed.update(batch, replace_where="day = 2"))
    assert {1: "a", 2: "b", 3: "C", 5: "z", 6: "e"} == {row["Id"]: row["v"] for row in rows_of(windowed)}


@pytest.mark.spark
def test_a_window_refuses_keys_and_rows_outside(windowed):
    """A key that is stored outside would become two rows; a row outside would not be found again."""
    with pytest.raises(DuplicateKeyError, match=r"1 keys .* outside the window"):
        windowed.update(pa.table({"Id": [1], "day": [2]}), replace_where="day = 2")
    with pytest.raises(OutsideWindow, match="1 rows"):
        windowed.update(pa.table({"Id": [9], "day": [3]}), replace_where="day = 2")
    with pytest.raises(InvalidOption, match="not a predicate"):
        windowed.update(pa.table({"Id": [9], "day": [3]}), replace_where="day >")
    assert windowed.stream_version == 1


REPORT = pa.schema({"day": pa.date32(), "Amount": pa.int64()})
DAYS = [dt.date(2026, 1, day) for day in (1, 2, 3)]
ROWS = st.lists(
    st.fixed_dictionaries({"day": st.none() | st.sampled_from(DAYS), "Amount": st.integers(0, 1)}), max_size=6
)


def check_window(tenant, stored, batch, window):
    """Put the rows in place of those in the window, or of all; rows, counts and files are a multiset's."""
    stream = tenant.stream(f"Report{len(tenant.streams())}")
    stream.update(pa.Table.from_pylist(stored, schema=REPORT), override=True)
    batch = [row for row in batch if not window or (row["day"] and row["day"] >= DAYS[1])]
    before = stream._snapshot().files["path"].to_pylist()
    options = {"replace_where": window} if window else {"override": True}
    receipt = stream.update(pa.Table.from_pylist(batch, schema=REPORT), **options)
    old, new, found = (
        Counter((row["day"], row["Amount"]) for row in side) for side in (stored, batch, rows_of(stream))
    )
    inside = Counter({row: n for row, n in old.items() if not window or (row[0] and row[0] >= DAYS[1])})
    assert old - inside + new == found
    expected = (new - inside).total(), 0, (inside & new).total(), (inside - new).total()
    assert expected == counts(receipt)
    assert receipt.committed == (inside != new)
    if not inside:
        assert set(before) <= set(stream._snapshot().files["path"].to_pylist())


@settings(max_examples=examples(40))
@given(stored=ROWS, batch=ROWS)
def test_rows_without_key_are_replaced_as_a_multiset(stored, batch):
    """All go; what is equal counts as unchanged, and equal rows make no version."""
    check_window(tenant_in_process(vectors_from_bytes=0), stored, batch, "")


@pytest.mark.spark
@settings(max_examples=examples(12), suppress_health_check=list(HealthCheck))
@given(stored=ROWS, batch=ROWS, engine=st.sampled_from(["auto", "spark"]))
def test_a_window_without_key_is_replaced_as_a_multiset(
    spark_engine, tmp_path_factory, stored, batch, engine
):
    """Rows inside go, others (null too) stay in their files."""
    storage = LocalStorage(tmp_path_factory.mktemp("window"))
    tenant = Tenant(storage, spark_engine, Settings(engine=engine, vectors_from_bytes=0))
    check_window(tenant, stored, batch, "day >= DATE'2026-01-02'")


@pytest.mark.parametrize("column", ["_before", "_change_type"])
def test_an_override_counts_columns_of_any_name(column):
    """Also those that rows of changes have, which cannot be shown then."""
    stream = tenant_in_process().stream("S")
    stream.update(pa.table({"Id": [1, 2], column: ["a", "b"]}), key="Id")
    receipt = stream.update(pa.table({"Id": [2, 3], column: ["B", "c"]}), override=True)
    assert (1, 1, 0, 1) == counts(receipt)


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        ({"a": ["x", None], "b": [1, 1], "v": [1, 2]}, {"a": [None], "b": [1], "v": [3]}, (0, 1, 0, 1)),
        (
            {"a": [None, "x"], "b": [None, None], "v": [1, 2]},
            {"a": ["x"], "b": [None], "v": [2]},
            (0, 0, 1, 1),
        ),
        ({"a": [0.0], "b": [1], "v": [1]}, {"a": [-0.0], "b": [1], "v": [1]}, (0, 0, 1, 0)),
        (
            {"a": [float("nan")], "b": [1], "v": [0.0]},
            {"a": [float("nan")], "b": [1], "v": [-0.0]},
            (0, 1, 0, 0),
        ),
        ({"a": ["1"], "b": [1], "v": [1]}, {"a": [1], "b": [1], "v": [1]}, (0, 0, 1, 0)),
        ({"a": [True], "b": [1], "v": [1]}, {"a": [b"1"], "b": [1], "v": [1]}, (1, 0, 0, 1)),
    ],
    ids=["null", "undecided", "zeros", "nan", "text", "no common type"],
)
def test_an_override_compares_keys_as_keys(first, then, expected):
    """Nulls, zeros and NaN are one key each; a column of the key may have no value or another type."""
    stream = tenant_in_process().stream("S")
    stream.update(pa.table(first), key=["a", "b"], null_keys="match")
    assert expected == counts(stream.update(pa.table(then), override=True, null_keys="match"))


def test_an_override_over_a_lost_file_is_damage():
    """Rows that are not there are not counted as none."""
    stream = tenant_in_process().stream("S")
    stream.update(pa.table({"Id": range(5), "n": range(5)}), key="Id")
    snapshot = stream._snapshot()
    snapshot.storage.delete(f"{snapshot.table}/{snapshot.files['path'][0].as_py()}")
    with pytest.raises(CorruptData, match=r"missing|not there|cannot be read"):
        stream.update(pa.table({"Id": range(6), "n": range(6)}), override=True)
