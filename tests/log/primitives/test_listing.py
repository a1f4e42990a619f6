"""Choosing among listed names: complete checkpoints, search backwards, compacted files."""

from tests.log.tables import TableBuilder

from freezeframe.log.primitives.listing import (
    complete_checkpoints,
    find_checkpoint_before,
    list_log,
    sort_listing,
)
from freezeframe.log.primitives.paths import checkpoint_name, checkpoint_part_name, commit_name
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
