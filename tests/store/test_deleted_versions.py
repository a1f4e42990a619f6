"""Reads that began before their version was deleted, by an erasure or a collection."""

import pytest
from tests import given
from tests.given import content, table

from freezeframe.errors import CorruptData, VersionNotFound
from freezeframe.log import DeltaLog
from freezeframe.storage import LocalStorage

READERS = {
    "read of a view": lambda held: held["view"].read(as_="arrow"),
    "count of a view": lambda held: held["view"].count(where="v > 0"),
    "batches of a view": lambda held: held["view"].read_batches().read_all(),
    "snapshot of a view": lambda held: held["view"].snapshot().to_arrow(),
    "difference of a view": lambda held: held["view"].diff(0).changes("arrow"),
    "snapshot": lambda held: held["snapshot"].to_arrow(),
    "batches of a snapshot": lambda held: list(held["snapshot"].to_batches()),
    "dataset": lambda held: held["dataset"].to_table(),
    "dataset of a snapshot": lambda held: held["snapshot"].to_dataset().to_table(),
    "batches": lambda held: held["batches"].read_all(),
    "difference": lambda held: held["difference"].changes("arrow"),
    "rows of a receipt": lambda held: held["receipt"].changed_rows("arrow"),
    "stream's version": lambda held: held["stream"].read(stream_version=1, as_="arrow"),
    "batches of it": lambda held: held["stream"].read_batches(stream_version=1).read_all(),
    "snapshot of it": lambda held: held["stream"].snapshot(stream_version=1).to_arrow(),
    "snapshot by the table's path": lambda held: held["by path"].to_arrow(),
}


def _collect(tenant):
    tenant.set_retention(keep_versions=1)
    assert tenant.gc().files > 0


def _held(open_finding, root):
    """A tenant of six versions, and what readers opened while version 1 was kept."""
    tenant = open_finding(LocalStorage(root), gc_grace_seconds=0)
    receipts = [tenant.stream("A").update(table(number), override=True, key="Id") for number in range(6)]
    stream = tenant.stream("A")
    snapshot = stream.snapshot(version=1)
    by_path = DeltaLog.open(root / "A.snapshot").snapshot_at(version=1)
    by_path.files  # noqa: B018 - reads the state
    return tenant, {
        "stream": stream,
        "view": tenant.at(1).stream("A"),
        "snapshot": snapshot,
        "dataset": snapshot.to_dataset(),
        "batches": stream.read_batches(version=1),
        "difference": stream.diff(0, 1),
        "receipt": receipts[1],
        "by path": by_path,
    }


@pytest.mark.parametrize("delete", [_collect, lambda tenant: tenant.erase("A", ["5"])], ids=["gc", "erase"])
def test_every_reader_of_a_deleted_version_says_that_it_is_no_longer_kept(open_finding, tmp_path, delete):
    """Nothing is damaged: no copy is asked for, which would bring erased rows back."""
    tenant, held = _held(open_finding, tmp_path)
    delete(tenant)

    told = {}
    for name, read in READERS.items():
        try:
            read(held)
        except Exception as error:  # noqa: BLE001 - the test lists what is no typed error
            told[name] = (type(error), "copy" in str(error) or "backup" in str(error))
    assert dict.fromkeys(READERS, (VersionNotFound, False)) == told


def test_a_missing_file_of_a_kept_version_is_damage(open_finding, tmp_path):
    """Also where the tenant deletes old versions: what it keeps must be there."""
    tenant, _ = _held(open_finding, tmp_path)
    tenant.set_retention(keep_versions=2)
    tenant.gc()
    snapshot = tenant.stream("A").snapshot(version=4)
    for path in snapshot.file_uris():
        (tmp_path / path).unlink()

    with pytest.raises(CorruptData, match="is missing"):
        snapshot.to_arrow()
    with pytest.raises(CorruptData, match="is missing"):
        snapshot.to_dataset().to_table()
    with pytest.raises(CorruptData, match="is missing"):
        tenant.at(4).stream("A").read()
    assert {"A": [5]} == content(tenant)[0]


@pytest.mark.spark
@pytest.mark.parametrize("delete", [_collect, lambda tenant: tenant.erase("A", ["5"])], ids=["gc", "erase"])
def test_a_lazy_spark_frame_of_a_deleted_version_says_so(spark_engine, tmp_path, delete):
    """Where it is evaluated: by the script's own call of Spark, and in an update of a stream."""
    tenant = given.tenant(LocalStorage(tmp_path), spark_engine, engine="auto", gc_grace_seconds=0)
    for number in range(6):
        tenant.stream("A").update(table(number), override=True, key="Id")
    frame = tenant.stream("A").read(version=1, as_="spark")
    delete(tenant)

    for evaluate in (
        frame.collect,
        frame.count,
        frame.toArrow,
        lambda: tenant.stream("B").update(frame, key="Id"),
    ):
        with pytest.raises(VersionNotFound, match="deleted with its versions") as told:
            evaluate()
        assert "copy" not in str(told.value)
    assert ("A",) == tenant.streams()
