"""``_last_checkpoint``: read, checked, distrusted, and written canonically."""

import json
from typing import ClassVar

import pytest
from tests.log.tables import SCHEMA, TableBuilder, file, paths

from freezeframe.errors import CorruptLog, UnsupportedTable
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.primitives.paths import checkpoint_name, checksum_name
from freezeframe.log.segments.hint import (
    GarbledHint,
    Hint,
    canonical_checksum,
    hint_text,
    parse_checksum,
    parse_hint,
    read_hint,
)
from freezeframe.storage import LocalStorage, MemoryStorage

GARBLED = [b"", b"{", b"[]", b"{}", b'{"version":-1}', b'{"version":"9"}', b"\xff\xfe"]
SAMPLE = (
    '{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", '
    '"k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}'
)


def test_b026_a_missing_hint_is_none_and_the_log_is_listed_from_zero():
    """Without a hint the newest checkpoint is found by listing."""
    assert read_hint(MemoryStorage(), "t/_delta_log") == (None, False)
    table = TableBuilder().commits(12).checkpoint(10)
    assert table.log().current_snapshot.segment.checkpoint_version == 10


@pytest.mark.parametrize("content", GARBLED)
def test_b027_a_garbled_hint_is_read_three_times_and_then_the_log_is_searched(content):
    """Whatever stands in the hint, the answer is the same; only time is lost."""
    table = TableBuilder().commits(12).checkpoint(10).raw("_last_checkpoint", content)
    waits = []
    log = table.log(sleep=waits.append)
    assert waits == [1.0, 1.0]
    assert log.current_snapshot.segment.checkpoint_version == 10
    assert table.live() == paths(log.current_snapshot)


def test_b028_the_checksum_of_the_protocols_sample():
    """The sample of the Delta protocol has the MD5 that it says."""
    assert canonical_checksum(json.loads(SAMPLE)) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_b028_texts_are_url_encoded_in_utf8():
    """Octets outside the unreserved ones become %XX; the order of keys does not matter."""
    left = canonical_checksum({"a": "€+~ ", "b": True, "c": None})
    assert left == canonical_checksum({"c": None, "b": True, "a": "€+~ "})
    assert left != canonical_checksum({"c": None, "b": True, "a": "€+~"})


def test_b028_a_wrong_checksum_or_a_repeated_key_is_no_hint_and_no_checksum_is_fine():
    """The checksum catches a half-overwritten hint."""
    good = hint_text(Hint(version=10, size=3))
    assert parse_hint(good.encode()).version == 10
    assert parse_hint(b'{"version":10,"size":3}').version == 10
    for bad in (good.replace('"size":3', '"size":4'), '{"version":1,"version":2}'):
        with pytest.raises(GarbledHint):
            parse_hint(bad.encode())
    assert parse_hint(good.replace('"size":3', '"size":4').encode(), verify=False).size == 4


def test_b029_version_size_and_parts_come_first_and_absent_fields_are_left_out():
    """Old readers scan for the first fields; nulls are not written."""
    text = hint_text(Hint(version=10, size=3, parts=2, tags={"a": "b"}))
    assert list(json.loads(text)) == ["version", "size", "parts", "tags", "checksum"]


def test_b030_long_lists_of_a_v2_checkpoint_are_left_out():
    """More than thirty sidecars or other actions do not go into the hint."""
    few, many = [{}] * 30, [{}] * 31
    hint = Hint(version=1, v2_checkpoint={"path": "x", "sidecarFiles": many, "nonFileActions": few})
    assert {"path": "x", "nonFileActions": few} == json.loads(hint_text(hint))["v2Checkpoint"]


# Checksums: used where they help, never needed.


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
    """Only the newest commit is read besides it; of an older checksum the commits after it, no checkpoint."""
    table = TableBuilder(local).commits(9).checkpoint(5)
    table.checksum(8, **known(table, 8))
    snapshot = TableBuilder(local).log().current_snapshot
    assert {"_last_checkpoint", checksum_name(8), f"{8:020d}.json"} == local.names
    assert (snapshot.metadata.id, snapshot.version) == ("the-table", 8)
    assert not snapshot.is_loaded
    assert table.live() == paths(snapshot)
    table.delete(checksum_name(8)).checksum(7, **known(table, 7))
    local.names.clear()
    TableBuilder(local).log()
    assert checksum_name(7) in local.names
    assert checkpoint_name(5) not in local.names


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"protocol":3}', b'{"metadata":{"id":"x"}}', b"\xff"]
)
def test_b061_a_checksum_that_is_none_is_passed_over(content):
    """Missing, empty, garbled or incomplete: reading goes on without it."""
    table = TableBuilder().commits(4).raw(checksum_name(3), content)
    snapshot = table.log().current_snapshot
    assert ("the-table", table.live()) == (snapshot.metadata.id, paths(snapshot))


def test_b061_a_checksum_can_be_left_unused():
    """Spark's switch: then not even a lying checksum is believed."""
    table = TableBuilder().commits(3)
    lie = known(table, 2) | {"metadata": {"id": "lie"}}
    table.checksum(2, **lie)
    assert table.log().current_snapshot.metadata.id == "lie"
    assert table.log(use_checksum=False).current_snapshot.metadata.id == "the-table"


def stale(version, newest_actions=()):
    """A log of four versions, and a checksum that is of what ``version`` was before it was written anew."""
    table = TableBuilder().commits(3).commit(*newest_actions)
    before = known(table, version)
    was = before["metadata"] | {"id": "was"}
    return table.checksum(version, **before | {"metadata": was, "protocol": OLD.to_json()})


OLD, NEW = Protocol(1, 1), Protocol(1, 2)
ANEW = Metadata("anew", json.dumps(SCHEMA), ("p",), created_time=1)


def test_what_the_newest_commit_says_wins_over_its_checksum():
    """A commit that was taken back leaves its checksum, if a writer without checksums writes it anew."""
    snapshot = stale(3, (NEW, ANEW, file("f3"))).log().current_snapshot
    assert (NEW, ANEW, 3) == (snapshot.protocol, snapshot.metadata, snapshot.count)


@pytest.mark.parametrize("stored", [Protocol(3, 7, ("futureFeature",), ("futureFeature",))])
def test_a_feature_that_the_checksum_does_not_know_is_refused(stored):
    """As without the checksum."""
    with pytest.raises(UnsupportedTable, match="futureFeature"):
        stale(3, (stored,)).log()


@pytest.mark.parametrize("version", [2, 3])
def test_a_checksum_that_the_log_contradicts_is_refused_with_the_state(version):
    """Before any row is read: its columns would be those of before. As Spark does."""
    table = stale(version)
    snapshot = table.log().current_snapshot
    assert "was" == snapshot.metadata.id
    for read in (lambda: snapshot.files, snapshot.to_arrow, lambda: snapshot.count):
        with pytest.raises(CorruptLog, match=f"{version:020d}.crc .* protocol and metadata") as caught:
            read()
        assert "DELTA_TXN_LOG_FAILED_INTEGRITY" == caught.value.error_code
    (finding,) = table.log().maintenance.verify()
    assert (f"t/_delta_log/{checksum_name(version)}", caught.value.error_code) == (finding.file, finding.code)
    table.delete(checksum_name(version))
    assert ("the-table", 2) == (table.log().current_snapshot.metadata.id, table.log().current_snapshot.count)


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
