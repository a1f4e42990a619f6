"""Choosing among listed names: complete checkpoints, search backwards, compacted files."""

import json
import os
import re
from pathlib import Path

import pytest
from tests.log.tables import TableBuilder, paths

from freezeframe.errors import CorruptLog, FreezeframeError, VersionNotFound
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.primitives.listing import (
    complete_checkpoints,
    find_checkpoint_before,
    list_log,
    sort_listing,
)
from freezeframe.log.primitives.options import LogOptions
from freezeframe.log.primitives.paths import checkpoint_name, checkpoint_part_name, commit_name
from freezeframe.log.segments.hint import Hint
from freezeframe.log.segments.management import SnapshotManagement
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import FaultyStorage


def folder_of(*names, size=1):
    storage = MemoryStorage()
    for name in names:
        storage.replace(f"log/{name}", b"x" * size)
    return storage


def test_b004_empty_checkpoint_files_are_ignored_and_empty_commits_are_not():
    """A writer died while it wrote the checkpoint; the commit's version exists all the same."""
    storage = folder_of(checkpoint_name(3), commit_name(3), size=0)
    listing = sort_listing(list_log(storage, "log"))
    assert listing.checkpoint_files == ()
    assert [file.version for file in listing.commits] == [3]


def test_b005_files_above_the_version_to_load_are_cut():
    """A checkpoint or commit above the wanted version plays no part."""
    storage = folder_of(commit_name(1), commit_name(2), checkpoint_name(2), commit_name(3))
    listing = sort_listing(list_log(storage, "log"), version_to_load=1)
    assert ([file.version for file in listing.commits], listing.checkpoint_files) == ([1], ())


def test_b006_the_latest_checksum_at_or_below_the_version_is_remembered():
    """A checksum above the wanted version is not used, one below it is."""
    table = TableBuilder().commits(4).checksum(1).checksum(3)
    assert table.log().log_segment_for_version(version_to_load=2).checksum.version == 1


def test_b009_a_multi_part_checkpoint_is_complete_only_with_all_its_parts():
    """Two of three parts are not a checkpoint; parts of another count do not help."""
    storage = folder_of(
        checkpoint_part_name(1, 1, 3),
        checkpoint_part_name(1, 2, 3),
        checkpoint_part_name(1, 3, 4),
        checkpoint_part_name(2, 1, 2),
        checkpoint_part_name(2, 2, 2),
    )
    files = sort_listing(list_log(storage, "log")).checkpoint_files
    assert [checkpoint.version for checkpoint in complete_checkpoints(files)] == [2]


def test_b031_the_search_goes_backwards_in_windows_and_strictly_below():
    """A checkpoint far back is found in windows that double; the version itself does not count."""
    names = [commit_name(version) for version in range(2500)]
    storage = FaultyStorage(folder_of(*names, checkpoint_name(100), checkpoint_name(2400)))
    assert find_checkpoint_before(storage, "log", 2400).version == 100
    assert sum(call.verb == "list_from" for call in storage.calls) == 2
    assert find_checkpoint_before(storage, "log", 100) is None
    assert find_checkpoint_before(storage, "log", -1).version == 2400


def test_b031_incomplete_and_empty_checkpoints_do_not_stop_the_search():
    """What cannot be used is passed over, checksums too."""
    storage = folder_of(checkpoint_name(5), checkpoint_part_name(8, 1, 2), "00000000000000000009.crc")
    storage.replace(f"log/{checkpoint_name(7)}", b"")
    assert find_checkpoint_before(storage, "log", 20).version == 5


# A listing is not a single moment: a hole left by another writer's haste is closed by looking again.


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
            table.delete(*map(commit_name, range(10)))
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
        assert table.live() == paths(snapshot)


def clean_up(table, until):
    table.checkpoint(until)
    table.delete(*map(commit_name, range(until)))


def test_files_that_are_cleaned_up_after_a_snapshot_was_opened_are_listed_again():
    """Its state is read anew; a checkpoint of its version has it, one of a later version does not."""
    for checkpointed in (8, 12):
        table = TableBuilder().commits(9)
        snapshot = table.log().current_snapshot
        before = table.live()
        assert paths(snapshot) == before
        snapshot.uncache()
        clean_up(table.commits(13), checkpointed)
        if checkpointed == 8:
            assert paths(snapshot) == before
            continue
        with pytest.raises(VersionNotFound, match=r"Version 8 can no longer be read.* begins at 12"):
            _ = snapshot.files
        with pytest.raises(VersionNotFound, match="Version 8 can no longer be read"):
            table.log().snapshot_at(version=8)


class Torn(MemoryStorage):
    """Its next listing has neither the deleted commits nor the checkpoint that replaces them."""

    is_torn = False

    def list_from(self, folder, start=""):
        found = list(super().list_from(folder, start))
        torn, self.is_torn = self.is_torn, False
        return iter([status for status in found if not torn or "checkpoint" not in status.name])


def test_a_listing_beside_a_cleanup_is_repeated():
    storage = Torn()
    table = TableBuilder(storage).commits(2)
    log = table.log()
    clean_up(table.commits(12), 10)
    storage.is_torn = True
    assert log.update().segment.checkpoint_version == 10
    storage.is_torn = True
    assert log.snapshot_at(version=10).version == 10


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


# Name lists of a log folder and the segment, or the error, that each must give.


FOLDER = Path(os.environ.get("FREEZEFRAME_CONFORMANCE", ""))
CASES_FILE = FOLDER / "listing_cases.json"
PRESENT = bool(os.environ.get("FREEZEFRAME_CONFORMANCE")) and CASES_FILE.is_file()
CASES = json.loads(CASES_FILE.read_text()) if PRESENT else {"cases": []}

needs_cases = pytest.mark.skipif(
    not PRESENT, reason=f"conformance data not found at {FOLDER}: skipped (set FREEZEFRAME_CONFORMANCE)"
)


class State:
    """The least a snapshot can be: its segment."""

    def __init__(self, segment):
        self.segment = segment
        self.version = segment.version

    def uncache(self):
        """Nothing is kept."""


class NameLog(SnapshotManagement[State]):
    """A log of which only the names matter."""

    def create_snapshot(self, segment, previous=None, new_commits=None):  # noqa: ARG002 - the seam's signature
        return State(segment)


def names(text):
    """The literal names that one entry of a case stands for."""
    if match := re.fullmatch(r"deltas (\d+)(?:-(\d+))?", text):
        return [f"{v:020d}.json" for v in range(int(match[1]), int(match[2] or match[1]) + 1)]
    if match := re.fullmatch(r"checkpoint (\d+)", text):
        return [f"{int(match[1]):020d}.checkpoint.parquet"]
    if match := re.fullmatch(r"parts (\d+)/(\d+)(?: (\d+)-(\d+))?", text):
        version, count = int(match[1]), int(match[2])
        parts = range(int(match[3] or 1), int(match[4] or count) + 1)
        return [f"{version:020d}.checkpoint.{part:010d}.{count:010d}.parquet" for part in parts]
    if match := re.fullmatch(r"v2 (\d+) (.+)", text):
        return [f"{int(match[1]):020d}.checkpoint.{match[2]}"]
    if match := re.fullmatch(r"compacted (\d+)-(\d+)", text):
        return [f"{int(match[1]):020d}.{int(match[2]):020d}.compacted.json"]
    return [text]


def expand(entries):
    return [name for entry in entries for name in names(entry)]


def storage_of(case):
    storage = MemoryStorage()
    for entry in case["files"]:
        text, size = (entry, 1) if isinstance(entry, str) else (entry["name"], entry["size"])
        for name in names(text):
            storage.replace(f"_delta_log/{name}", b"x" * size)
    return storage


def segment_of(case, storage):
    log = NameLog(MemoryStorage(), "_delta_log", LogOptions(sleep=lambda _: None))
    log.storage = storage
    wanted, start = case.get("version_to_load"), case.get("start_checkpoint")
    if case.get("last_checkpoint") is not None and wanted is None:
        return log.log_segment_from(Hint(version=case["last_checkpoint"]))
    return log.log_segment_for_version(start, wanted)


@needs_cases
@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["name"])
def test_b002_to_b024_the_names_give_the_segment_that_spark_chooses(case):
    """A folder of names gives Spark's segment, or its error."""
    storage = storage_of(case)
    expected = case["expect"]
    if "error" in expected:
        with pytest.raises(FreezeframeError) as caught:
            segment_of(case, storage)
        if expected["error"] != "*":
            assert expected["error"] == caught.value.error_code
        assert expected.get("message_contains", "") in str(caught.value)
        return
    segment = segment_of(case, storage)
    assert expected["version"] == segment.version
    checkpoint = segment.checkpoint.files if segment.checkpoint else ()
    assert expand(expected["checkpoint"]) == [file.name for file in checkpoint]
    assert expand(expected["deltas"]) == [file.name for file in segment.commits]
    assert expand(expected.get("compacted", [])) == [file.name for file in segment.compacted]
