"""Files that are staged, and what is read back of them."""

import errno
import io
import os
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import given
from tests.given import fails, table

from freezeframe.clock import now_ms
from freezeframe.engine.frames.rows import Rows
from freezeframe.errors import StorageUnavailable
from freezeframe.log import DeltaLog
from freezeframe.log.format.schema import arrow_to_delta
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store.model.receipt import Counts
from freezeframe.store.model.update_options import parse_update
from freezeframe.store.table.staging import StagingFolder
from freezeframe.store.tenant import open_job
from freezeframe.store.updates.update import ChangeResult


@pytest.fixture(params=[True, False])
def attempt(request, tmp_path):
    """An attempt into which something landed two files: short ones of rows that repeat themselves."""
    storage = LocalStorage(tmp_path) if request.param else MemoryStorage()
    for number in (1, 2):
        buffer = io.BytesIO()
        pq.write_table(pa.table({"Id": pa.array([f"{number:0100}"] * 10_000)}), buffer)
        assert buffer.tell() < 10_000
        storage.put_if_absent(f"T/try/landed/{number}.parquet", buffer.getvalue())
    return StagingFolder(DeltaLog(storage, "T").snapshot, "try")


def test_landed_rows_are_measured_in_memory(attempt):
    """However few bytes their files have: up to the limit all rows in their order, above it none."""
    paths = ["try/landed/1.parquet", "try/landed/2.parquet"]
    rows = attempt.read_batch(paths, 4_000_000)
    assert [f"{1:0100}"] * 10_000 + [f"{2:0100}"] * 10_000 == rows["Id"].to_pylist()
    assert attempt.read_batch(paths, 1_500_000) is None
    assert attempt.read_batch(paths, 100) is None


def test_timestamps_of_any_layout_are_read_as_they_are(attempt):
    """A year that nanoseconds cannot hold, written as INT96 by somebody's Spark."""
    buffer = io.BytesIO()
    moments = pa.array([datetime(1, 1, 1), datetime(9999, 12, 31)], pa.timestamp("us"))  # noqa: DTZ001
    pq.write_table(pa.table({"at": moments}), buffer, use_deprecated_int96_timestamps=True)
    attempt.store("try/landed/3.parquet", buffer.getvalue())
    assert moments.to_pylist() == attempt.read_batch(["try/landed/3.parquet"], 100_000)["at"].to_pylist()


@pytest.mark.parametrize("attempt", [True], indirect=True)
def test_only_values_that_repeat_get_a_dictionary(attempt, tmp_path):
    """One of the others is given up when it is large, and the file is larger by it."""
    rows = 20_000
    table = pa.table(
        {
            "Id": [f"{number:06}" for number in range(rows)],
            "City": [f"city {number % 900}" for number in range(rows)],
            "nothing": pa.nulls(rows, pa.string()),
            "tags": [["a", str(number)] for number in range(rows)],
        }
    )
    attempt.prepare()
    (path,) = attempt.write([table], arrow_to_delta(table.schema), ["Id"])
    group = (written := pq.ParquetFile(tmp_path / "T" / path)).metadata.row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    has_one = {name: column.has_dictionary_page for name, column in columns.items()}
    assert has_one == {"Id": False, "City": True, "nothing": True, "tags.list.element": True}
    assert written.read().equals(table)


@pytest.fixture
def synced(monkeypatch):
    """The paths of files and folders, in the order in which they were synced to the disk."""
    paths, real = [], os.fsync

    def fsync(handle):
        paths.append(Path(f"/proc/self/fd/{handle}").readlink())
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return paths


def update(tenant):
    """Change three streams in a job, two of them twice."""
    with tenant.job() as job:
        for number, name in enumerate("AABBC"):
            job.stream(name).update(table(number), key="Id")


def test_no_content_of_files_is_held_once_a_change_is_staged(local):
    """Also of what no commit names: keys for Spark's search, a window's batch; a job changes many streams."""

    def change(_, staging, __):
        staging.prepare()
        staging.write_keys(table(1, 2))
        return ChangeResult("", Counts())

    with given.tenant(local).stream("A")._staged(Rows(table(1)), parse_update("Id", {})) as (staged, _):
        staged.apply(change)
        assert [{}, {}] == [attempt._fresh for attempt in staged.attempts]


def test_a_jobs_files_are_durable_before_its_entry(open_finding, local, synced):
    """With their folders up to the tenant's, whoever made them; each once, however often a stream changes."""
    update(open_finding(local))
    root = Path(local.root)
    before = synced[: synced.index(root / "_freezeframe" / "log")]
    for name in "ABC":
        (row,) = DeltaLog(local, f"{name}.snapshot").snapshot.files.to_pylist()
        file = root / f"{name}.snapshot" / row["path"]
        assert [1, 1, 1] == [before.count(path) for path in (file, file.parent, file.parent.parent)]
    assert root in before


def test_a_held_jobs_files_are_durable_before_its_lease(open_finding, local, synced):
    """What waits for its publication is there after a power loss."""
    tenant = open_finding(local)
    with open_job(replace(tenant.context, review=lambda effects, _: effects), "held") as job:
        job.stream("A").update(table(1), key="Id")
    before = synced[: max(at for at, path in enumerate(synced) if path.name == "staging")]
    (file,) = Path(local.root, "A.snapshot").glob("*/*.parquet")
    for path in (file, file.parent, file.parent.parent, file.parents[2]):
        assert path in before


def test_the_time_of_a_version_is_after_its_files_are_durable(open_finding, local, monkeypatch):
    """A version is not visible before, so that a question of the time between must not find it."""
    tenant, real, synced = open_finding(local), os.fsync, []

    def fsync(handle):
        real(handle)
        if Path(f"/proc/self/fd/{handle}").readlink().suffix == ".parquet":
            time.sleep(0.02)
            synced.append(now_ms())

    monkeypatch.setattr(os, "fsync", fsync)
    tenant.stream("A").update(table(1), key="Id")
    assert max(synced) <= tenant.timestamp.timestamp() * 1000


@pytest.mark.parametrize("attempt", [True], indirect=True)
def test_each_folder_between_a_table_and_its_file_is_durable(attempt, synced, tmp_path):
    """Those of rows that Spark landed lie deeper than others."""
    (tmp_path / "T" / "batch" / "landed").mkdir(parents=True)
    pq.write_table(table(1), tmp_path / "T" / "batch" / "landed" / "rows.parquet")
    attempt.seal(["batch/landed/rows.parquet"], arrow_to_delta(table(1).schema))
    assert {tmp_path / "T" / "batch" / "landed", tmp_path / "T" / "batch", tmp_path / "T"} <= set(synced)


def test_a_dry_run_syncs_no_rows(open_finding, local, synced):
    tenant = open_finding(local)
    with tenant.job(dry_run=True) as job:
        job.stream("A").update(table(1), key="Id")
    assert [] == [path for path in synced if path.suffix == ".parquet"]


def test_rows_that_cannot_be_made_durable_are_not_committed(open_finding, local, synced, monkeypatch):
    """The job fails before its entry, and its files go."""
    tenant, real = open_finding(local), os.fsync

    def fsync(handle):
        if Path(f"/proc/self/fd/{handle}").readlink().suffix == ".parquet":
            raise OSError(errno.EIO, "Input/output error")
        real(handle)

    update(tenant)
    version = tenant.version
    monkeypatch.setattr(os, "fsync", fsync)
    with fails(StorageUnavailable, "could not sync"), tenant.job() as job:
        job.stream("A").update(table(7))
    monkeypatch.undo()
    assert version == open_finding(local).version
    (row,) = DeltaLog(local, "A.snapshot").snapshot.files.to_pylist()
    assert [row["path"]] == [item.name for item in local.list_below("A.snapshot") if ".parquet" in item.name]
