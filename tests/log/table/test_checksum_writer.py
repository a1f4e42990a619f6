"""Checksums: made from the one before they equal those made from the state, and they find damage."""

from dataclasses import replace

import pytest

from freezeframe.errors import CorruptLog
from freezeframe.log.delta_log import DeltaLog
from freezeframe.log.format.action_columns import FILE_SCHEMA, no_rows, to_adds
from freezeframe.log.format.actions import CommitInfo, DomainMetadata, Metadata, Protocol, Txn
from freezeframe.log.segments.hint import Checksum, parse_checksum
from freezeframe.log.table.checksum_writer import (
    NotIncremental,
    checksum_after,
    checksum_of,
    checksum_text,
    verify_checksum,
    write_checksum,
)
from freezeframe.log.table.upkeep import Upkeep
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Fault, FaultyStorage, Way

WHOLE = Checksum(100, 2, 1, 1, metadata=Metadata("id"), protocol=Protocol(1, 2), transactions=(), domains=())


def stored(table, version):
    return parse_checksum(table.storage.read(f"t/_delta_log/{version:020d}.crc"))


def without_files(checksum):
    return replace(checksum, all_files=None, txn_id=None)


def test_from_before_and_from_the_state_is_the_same(table):
    """Behaviour 62: over appends, vectors, removes, progress and domains both ways agree at every version."""
    table.append(range(5))
    begun = table.begin()
    path = begun.snapshot.files["path"][0].as_py()
    begun.commit([*table.delete(begun, {path: [0]}), Txn("job", 1), DomainMetadata("d", "{}")], "DELETE")
    begun = table.begin()
    begun.commit(table.delete(begun, {path: [1]}), "DELETE")
    table.begin().commit([Txn("job", 2), DomainMetadata("d", "{}", removed=True)], "X")
    begun = table.begin()
    begun.commit([*table.remove_all(begun), *table.adds([9])], "WRITE")
    for version in range(6):
        snapshot = DeltaLog(table.storage, "t").snapshot_at(version=version)
        verify_checksum(snapshot, stored(table, version))
        assert without_files(checksum_of(snapshot)) == without_files(stored(table, version)), version


@pytest.mark.parametrize(
    ("previous", "actions", "code"),
    [
        (None, [], "MISSING_OLD_CRC"),
        (replace(WHOLE, num_files=None), [], "OLD_CRC_INCOMPLETE"),
        (replace(WHOLE, protocol=None), [], "PROTOCOL_MISSING"),
        (WHOLE, [CommitInfo({"operation": "MANUAL UPDATE"})], "INVALID_OPERATION_MANUAL_UPDATE"),
    ],
)
def test_what_cannot_be_carried_on_says_why(previous, actions, code):
    """Behaviour 62: Delta's reasons for which a checksum must be made anew."""
    assert NotIncremental(code) == checksum_after(previous, actions, no_rows(FILE_SCHEMA))


def test_a_file_that_is_added_again_is_one_file(make_table):
    """Behaviour 62: adds of live files (new statistics, row ids) change no count, and checkpoints go on."""
    table = make_table(MemoryStorage(), Upkeep(checkpoint_interval=3))
    table.create()
    adds = table.adds(range(3))
    table.begin().commit(adds, "WRITE")
    begun = table.begin()
    begun.commit(table.delete(begun, {adds[0].path: [0]}), "DELETE")
    live = to_adds(table.fresh().files)
    for again in (live[0], replace(live[0], size=live[0].size, path=live[0].path.replace("-", "%2D", 1))):
        table.begin().commit([replace(again, stats='{"numRecords": 3}'), Txn("n", len(again.path))], "WRITE")
    for version in range(5):
        snapshot = DeltaLog(table.storage, "t").snapshot_at(version=version)
        verify_checksum(snapshot, stored(table, version))
    assert (stored(table, 4).num_files, stored(table, 4).num_deletion_vectors) == (1, 1)
    assert table.fresh().segment.checkpoint_version == 3


def test_transactions_that_expire_do_not_stop_checkpoints(make_table, caplog):
    """Behaviour 62: with a retention of transactions the checksum does not list them, as in Delta."""
    configuration = {"setTransactionRetentionDuration": "interval 1 millisecond"}
    table = make_table(MemoryStorage(), Upkeep(checkpoint_interval=2), **configuration)
    table.create()
    table.begin().commit([Txn("old", 1, 5), *table.adds([1])], "WRITE")
    for number in range(2, 5):
        table.append([number])
    assert table.fresh().segment.checkpoint_version == 4
    assert (stored(table, 4).transactions, caplog.text) == (None, "")


def test_a_checksum_is_never_overwritten():
    """Behaviour 60: the second writer of a version's checksum changes nothing."""
    storage = MemoryStorage()
    assert write_checksum(storage, "log", 1, WHOLE)
    assert not write_checksum(storage, "log", 1, replace(WHOLE, num_files=7))
    assert parse_checksum(storage.read(f"log/{1:020d}.crc")) == WHOLE
    assert checksum_text(WHOLE).encode() == storage.read(f"log/{1:020d}.crc")


def test_a_checksum_that_cannot_be_written_only_warns(caplog):
    """Behaviour 60: the commit stands, with a warning in the log file."""
    storage = FaultyStorage(MemoryStorage(), [Fault(0, Way.FAIL_BEFORE)])
    assert not write_checksum(storage, "log", 1, WHOLE)
    assert "could not be written" in caplog.text
    with pytest.raises(FileNotFoundError):
        storage.read(f"log/{1:020d}.crc")


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("table_size_bytes", 1, "tableSizeBytes"),
        ("num_files", 99, "numFiles"),
        ("metadata", Metadata("other"), "metadata"),
        ("protocol", Protocol(1, 1), "protocol"),
        ("transactions", (Txn("x", 1),), "setTransactions"),
        ("domains", (DomainMetadata("x"),), "domainMetadata"),
        ("num_deleted_records", 5, "numDeletedRecordsOpt"),
    ],
)
def test_a_state_that_differs_is_found(table, field, value, named):
    """Behaviour 63: each field of the checksum is compared, and the one that differs is named."""
    table.append([1])
    snapshot = table.fresh()
    with pytest.raises(CorruptLog, match=named) as caught:
        verify_checksum(snapshot, replace(checksum_of(snapshot), **{field: value}))
    assert caught.value.error_code == "DELTA_TXN_LOG_FAILED_INTEGRITY"


def test_a_damaged_log_fails_against_its_checksum(table):
    """A commit of a writer that signs nothing, changed afterwards, no longer fits its checksum."""
    table.append([1])
    kept = stored(table, 1)
    name = f"t/_delta_log/{1:020d}.json"
    table.storage.replace(name, b'{"commitInfo":{"operation":"WRITE"}}\n')
    with pytest.raises(CorruptLog, match="numFiles"):
        verify_checksum(table.fresh(), kept)
