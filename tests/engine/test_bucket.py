"""Streams of a store in a bucket: every route of an update gives there what it gives on a disk."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from tests.buckets import client, keys, made_bucket
from tests.one_session import end_session

from freezeframe.engine.spark import SparkEngine
from freezeframe.identifiers import StreamName
from freezeframe.log.scan import data_files
from freezeframe.script.tenants import storage_at
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.storage.objects import ObjectStorage
from freezeframe.store.snapshot_store import Store
from freezeframe.store.table import staging
from freezeframe.store.tenant_log.roll_forward import table_snapshot

pytestmark = pytest.mark.spark

JARS = Path(__file__).parents[2] / ".cache" / "jars"
NUMBERS = range(300)
ROWS = pd.DataFrame({"Id": [f"A{n:03d}" for n in NUMBERS], "Name": "n", "Size": [n / 4 for n in NUMBERS]})


@pytest.fixture(scope="module")
def bucket():
    """A bucket of this module alone."""
    with made_bucket() as name:
        yield name


@pytest.fixture(scope="module")
def places(bucket, spark_settings, tmp_path_factory):
    """The same store twice, in the bucket and on the disk, and the engine of the first."""
    options = {
        "gc_grace_seconds": 0,
        "lease_dead_seconds": 0,
        "vectors_from_bytes": 0,
        "engine": "spark",
    }
    there = Settings(root=f"s3://{bucket}/a/b", spark_jars_dir=JARS, **options)
    engine = SparkEngine(there)
    here = Settings(**options)
    disk = SparkEngine(here)
    end_session()
    yield (
        Store(storage_at(there.root, there), engine, there),
        Store(LocalStorage(tmp_path_factory.mktemp("disk")), disk, here),
        engine,
    )
    end_session()
    engine.close()
    disk.close()


def content(rows, *names):
    """The rows in order, a cell without a value as None."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows, preserve_index=False)
    return table.select(names).sort_by([(name, "ascending") for name in names]).to_pylist()


def update(stream, frame, **options):
    """What became of the rows."""
    receipt = stream.update(frame, key="Id", **options)
    return receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted


def sparks(session):
    """Twenty rows as Spark's own, half of them new, each of them twice."""
    frame = session.range(290, 310).selectExpr("format_string('A%03d', id) AS Id", "'s' AS Name")
    return frame.union(frame)


def routes(tenant, session):
    """Each route once; the counts that were told and the rows at the end."""
    stream = tenant.stream("Account")
    past = tenant.stream("Past")
    told = [
        update(stream, ROWS),
        update(stream, pa.Table.from_pandas(ROWS.assign(Name=None, Size=ROWS.Size + 1).tail(90))),
        update(stream, ROWS.iloc[30:].assign(Name="m"), mode="full"),
        update(stream, sparks(session)),
        update(past, ROWS.head(20), history="scd2"),
        update(past, ROWS.head(10).assign(Size=7.5)),
    ]
    rows = content(stream.read(as_="arrow"), "Id", "Name", "Size")
    assert rows == content(stream.read(as_="spark").toArrow(), "Id", "Name", "Size")
    return told, rows, content(past.read(as_="pandas"), "Id", "Size")


def collected(tenant, bucket):
    """Whether a collection leaves what the logs name and nothing else: no folder marks, no uploads."""
    tenant.set_retention(keep_versions=1)
    tenant.gc()
    tenant.gc()
    state = tenant.context.log.current_state()
    tables = [table_snapshot(tenant.context.log, state, StreamName(name)) for name in tenant.streams()]
    live = [path for table in tables for path in table.files["path"].to_pylist()]
    folder = tenant.context.storage.uri("").split(f"//{bucket}/")[1]
    stored = [key for key in keys(bucket, folder) if key.endswith(".parquet") and "_delta_log" not in key]
    assert sorted(live) == sorted(key.split(".snapshot/")[1] for key in stored)
    assert [key for key in keys(bucket) if key.endswith(("/", "_begun"))] == []
    assert not client().list_multipart_uploads(Bucket=bucket).get("Uploads")


def test_rows_are_found_written_and_landed_in_a_bucket(places, bucket):
    """Overwrite, upsert, a frame of Spark's with repeated rows; what is left over goes."""
    there, _, engine = places
    acme = there.tenant("acme", create=True)
    stream = acme.stream("Account")
    changed = ROWS.assign(Name=None, Size=ROWS.Size + 1).tail(90)
    told = [update(stream, ROWS), update(stream, changed), update(stream, sparks(engine.session))]
    assert told == [(300, 0, 0, 0), (0, 90, 0, 0), (10, 10, 0, 0)]
    new = pd.DataFrame({"Id": [f"A{n}" for n in range(300, 310)]})
    expected = pd.concat([ROWS.assign(Size=ROWS.Size + (ROWS.index >= 210)), new])
    expected["Name"] = expected.Name.mask(expected.Id >= "A290", "s")
    collected(acme, bucket)
    rows = content(stream.read(as_="arrow"), "Id", "Name", "Size")
    assert content(pa.Table.from_pandas(expected, preserve_index=False), "Id", "Name", "Size") == rows


def test_landed_files_are_hashed_by_spark(places, bucket, monkeypatch):
    """The committing process reads no file whole that Spark wrote; its hashes are those of the files."""
    there, _, engine = places
    tenant = there.tenant("hashed", create=True)
    stream = tenant.stream("Account")
    monkeypatch.setattr(staging, "_READ_BYTES_MAX", 0)
    monkeypatch.setattr(data_files, "_WHOLE_BYTES_MAX", 0)
    read = []
    inner = ObjectStorage.read

    def noted(self, name, offset=0, length=None):
        content = inner(self, name, offset, length)
        if "/landed/" in name:
            read.append((length, len(content)))
        return content

    monkeypatch.setattr(ObjectStorage, "read", noted)
    frame = engine.session.range(30_000).selectExpr("id as Id", "id % 7 as v")
    assert stream.update(frame, override=True).inserted == 30_000
    assert read
    assert all(length is not None for length, _ in read)
    assert tenant.verify().is_sound


def test_workers_merge_the_files_of_a_bucket(places, monkeypatch):
    """They read and write them; the committing process writes the batch, and takes their hashes."""
    there, *_ = places
    tenant = there.tenant("merged", create=True)
    stream = tenant.stream("Account")
    update(stream, ROWS)
    update(stream, ROWS.assign(Id="B" + ROWS.Id))
    written = []
    inner = ObjectStorage.put_if_absent

    def noted(self, name, content):
        written.append(name)
        inner(self, name, content)

    monkeypatch.setattr(ObjectStorage, "put_if_absent", noted)
    receipt = stream.update(ROWS.iloc[30:].assign(Name="m"), mode="full", max_delete_ratio=1.0)
    assert (0, 270, 0, 330, "spark") == (
        receipt.inserted, receipt.updated, receipt.unchanged, receipt.deleted, receipt.engine,
    )  # fmt: skip
    files = [name.rpartition("/")[2] for name in written if name.endswith(".parquet")]
    assert files == ["pieces.parquet"]
    assert tenant.verify().is_sound


@pytest.mark.nightly
def test_every_route_gives_what_it_gives_on_a_disk(places, bucket):
    """Overwrite, upsert, merge, a frame of Spark's with repeated rows, history; what is left over goes."""
    there, here, engine = places
    acme = there.tenant("other", create=True)
    found = routes(acme, engine.session)
    assert found == routes(here.tenant("acme", create=True), engine.session)
    collected(acme, bucket)
    assert found[1] == content(acme.stream("Account").read(as_="arrow"), "Id", "Name", "Size")
