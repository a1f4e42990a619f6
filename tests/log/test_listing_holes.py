"""A listing is not a single moment: a hole left by another writer's haste is closed by looking again."""

import pytest
from tests.log.tables import TableBuilder

from freezeframe.errors import CorruptLog, VersionNotFound
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.primitives.paths import commit_name
from freezeframe.storage import MemoryStorage


class Hasty(MemoryStorage):
    """The first listings miss a commit that is there, as a disk's do while files are being made."""

    def __init__(self):
        super().__init__()
        self.missed = 0

    def list_from(self, folder, start=""):
        found = list(super().list_from(folder, start))
        if self.missed:
            self.missed -= 1
            found = [status for status in found if status.name != f"{2:020d}.json"]
        return iter(found)


@pytest.mark.parametrize("missed", [1, 3])
def test_a_hole_in_a_listing_is_looked_at_again(make_table, missed):
    """A commit that a listing missed is found by the next one, and nobody sees an error."""
    storage = Hasty()
    table = make_table(storage)
    table.create()
    for number in range(3):
        table.append([number])
    storage.missed = missed
    assert DeltaLog(storage, "t").update().version == 3
    assert storage.missed == 0


def test_a_hole_that_stays_is_damage(make_table):
    """A commit that is really gone is reported as a gap, not waited for."""
    storage = MemoryStorage()
    table = make_table(storage)
    table.create()
    for number in range(3):
        table.append([number])
    storage.delete(f"t/_delta_log/{2:020d}.json")
    with pytest.raises(CorruptLog) as caught:
        DeltaLog(storage, "t").update()
    assert caught.value.error_code == "DELTA_VERSIONS_NOT_CONTIGUOUS"


class Cleaned(MemoryStorage):
    """Writes a checkpoint and deletes what it covers when a commit is read that it makes needless."""

    table = None

    def read(self, name, offset=0, length=None):
        if self.table is not None and name.endswith(commit_name(2)):
            table, self.table = self.table, None
            table.checkpoint(10)
            for version in range(10):
                table.delete(commit_name(version))
        return super().read(name, offset, length)


def test_a_cleanup_between_listing_and_reading_is_listed_again():
    """Opening and updating take the checkpoint that is there now; nobody sees an error."""
    for opened_at in (2, 12):
        storage = Cleaned()
        table = TableBuilder(storage).commits(2)
        log = table.log() if opened_at == 2 else None
        storage.table = table.commits(12)
        snapshot = table.log().current_snapshot if log is None else log.update()
        assert snapshot.segment.checkpoint_version == 10
        assert table.live() == sorted(snapshot.files["path"].to_pylist())


def test_a_checkpoint_stands_for_its_missing_commit():
    """The newest version is the checkpoint's, with commits below it only; Spark answers the same."""
    table = TableBuilder().commits(9).checkpoint(8)
    table.delete(commit_name(8))
    assert table.log().current_snapshot.version == 8


def test_a_gap_outside_what_is_read_is_none():
    """Below the checkpoint a commit is missing: versions on either side of it are read, as by Spark."""
    table = TableBuilder().commits(9).checkpoint(5)
    table.delete(commit_name(2))
    log = table.log()
    assert (log.current_snapshot.version, log.snapshot_at(version=6).version) == (8, 6)
    assert (log.snapshot_at(version=1).version, log.snapshot_at(version=5).version) == (1, 5)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_version_behind_a_gap_cannot_be_built(version):
    """Its own commit is gone, or one before it and no checkpoint between; the error is Spark's."""
    table = TableBuilder().commits(9).checkpoint(5)
    table.delete(commit_name(2))
    with pytest.raises((CorruptLog, VersionNotFound)) as found:
        table.log().snapshot_at(version=version)
    assert found.value.error_code in {"DELTA_VERSIONS_NOT_CONTIGUOUS", "DELTA_VERSION_NOT_FOUND"}
