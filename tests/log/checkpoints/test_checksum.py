"""Checksums: used where they help, never needed."""

import json
from typing import ClassVar

import pytest
from tests.log.tables import TableBuilder

from freezeframe.log.primitives.paths import checkpoint_name, checksum_name
from freezeframe.log.segments.hint import parse_checksum
from freezeframe.storage import LocalStorage


def known(table, version):
    account = table.accounts[version]
    return {
        "protocol": account["protocol", ""].to_json(),
        "metadata": account["metaData", ""].to_json(),
        "numFiles": len(table.live(version)),
    }


@pytest.fixture
def local(tmp_path):
    """A local disk, where nothing is read ahead, and the names of what was read from it."""

    class Noting(LocalStorage):
        names: ClassVar = set()

        def read(self, name, offset=0, length=None):
            self.names.add(name.rsplit("/", 1)[-1])
            return super().read(name, offset, length)

    Noting.names.clear()
    return Noting(tmp_path)


def test_b057_protocol_and_metadata_come_from_the_checksum(local):
    """With a checksum of the version, only the newest commit is read besides it."""
    table = TableBuilder(local).commits(9).checkpoint(5)
    table.checksum(8, **known(table, 8))
    snapshot = TableBuilder(local).log().current_snapshot
    assert {"_last_checkpoint", checksum_name(8), f"{8:020d}.json"} == local.names
    assert (snapshot.metadata.id, snapshot.version) == ("the-table", 8)
    assert not snapshot.is_loaded
    assert table.live() == sorted(snapshot.files["path"].to_pylist())


def test_b057_an_older_checksum_saves_reading_the_checkpoint_for_them(local):
    """The commits after the checksum are looked at, what lies before it is not."""
    table = TableBuilder(local).commits(9).checkpoint(5)
    table.checksum(7, **known(table, 7))
    TableBuilder(local).log()
    assert checkpoint_name(5) not in local.names


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"protocol":3}', b'{"metadata":{"id":"x"}}', b"\xff"]
)
def test_b061_a_checksum_that_is_none_is_passed_over(content):
    """Missing, empty, garbled or incomplete: reading goes on without it."""
    table = TableBuilder().commits(4).raw(checksum_name(3), content)
    snapshot = table.log().current_snapshot
    assert ("the-table", table.live()) == (snapshot.metadata.id, sorted(snapshot.files["path"].to_pylist()))


def test_b061_a_checksum_can_be_left_unused():
    """Spark's switch: then not even a lying checksum is believed."""
    table = TableBuilder().commits(3)
    lie = known(table, 2) | {"metadata": {"id": "lie"}}
    table.checksum(2, **lie)
    assert table.log().current_snapshot.metadata.id == "lie"
    assert table.log(use_checksum=False).current_snapshot.metadata.id == "the-table"


@pytest.mark.parametrize("name", ["fileSizeHistogram", "histogramOpt"])
def test_b065_the_histogram_goes_by_two_names(name):
    """Older and newer writers spell it differently."""
    histogram = {"sortedBinBoundaries": [0], "fileCounts": [1], "totalBytes": [2]}
    assert histogram == parse_checksum(json.dumps({name: histogram}).encode()).histogram


def test_b066_vector_counters_are_none_unless_written():
    """A table without vectors has no counters."""
    assert parse_checksum(b'{"numFiles":1}').num_deletion_vectors is None
    found = parse_checksum(b'{"numDeletedRecordsOpt":5,"numDeletionVectorsOpt":2}')
    assert (found.num_deleted_records, found.num_deletion_vectors) == (5, 2)


def test_a_checksum_survives_its_json():
    """What is written is read back equal."""
    table = TableBuilder().commits(3)
    files = [action.to_json() for key, action in table.accounts[2].items() if key[0] == "file"]
    fields = known(table, 2) | {
        "allFiles": files,
        "inCommitTimestampOpt": 5,
        "setTransactions": [{"appId": "a", "version": 1}],
    }
    once = parse_checksum(json.dumps(fields).encode())
    assert once == parse_checksum(json.dumps(once.to_json()).encode())
    assert (len(once.all_files), once.in_commit_timestamp) == (2, 5)
