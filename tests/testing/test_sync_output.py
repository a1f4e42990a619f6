"""Sync folders with invented data: the same seed, the same bytes, in the shapes that taps leave."""

import csv

import pytest

from freezeframe.testing import SyncSize, sync_output, write_sync_output
from freezeframe.testing.invented import crm_id


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    """Two folders of one seed are equal byte by byte; another seed's are not."""
    one = {stream: file.read_bytes() for stream, file in write_sync_output(tmp_path / "a", 1).items()}
    same = {stream: file.read_bytes() for stream, file in write_sync_output(tmp_path / "b", 1).items()}
    other = {
        stream: file.read_bytes() for stream, file in write_sync_output(tmp_path / "c", 1, seed=2).items()
    }

    assert one == same
    assert all(one[stream] != other[stream] for stream in one)


@pytest.mark.parametrize("sync", [1, 2])
def test_what_is_written_reads_back(tmp_path, sync):
    """A CSV reader gets the very rows back, quoted newlines and commas included."""
    files = write_sync_output(tmp_path, sync)
    for stream, rows in sync_output(sync).items():
        with files[stream].open(encoding="utf-8", newline="") as text:
            assert rows == list(csv.DictReader(text))


def test_shapes_are_those_of_the_taps():
    """57, 22 and 45 columns, each row with all of them, and text that a careless reader changes."""
    first = sync_output(1)

    assert {stream: len(rows[0]) for stream, rows in first.items()} == {
        "Lead": 57,
        "Invoice": 22,
        "GeneralLedgerCashReport": 45,
    }
    assert all(len(row) == len(rows[0]) for rows in first.values() for row in rows)
    assert any("\n" in row["Street"] and "," in row["Street"] for row in first["Lead"])
    assert any(row["PostalCode"].startswith("0") for row in first["Lead"])
    assert all(len(row["ExternalId__c"]) == 20 and row["ExternalId__c"].isdigit() for row in first["Lead"])
    assert {"A/RPaid", "Account#", "Product/Service"} <= set(first["GeneralLedgerCashReport"][0])
    mostly_empty = [column for column in first["Lead"][0] if not any(row[column] for row in first["Lead"])]
    assert len(mostly_empty) >= 20


def test_keys_are_unique_and_the_report_has_none():
    """Ids name one row each; the ledger holds lines that are equal in every column."""
    first = sync_output(1)
    for stream in ("Lead", "Invoice"):
        ids = [row["Id"] for row in first[stream]]
        assert len(ids) == len(set(ids))
    lines = [tuple(row.values()) for row in first["GeneralLedgerCashReport"]]
    assert len(lines) > len(set(lines))


def test_the_second_sync_brings_new_changed_and_unchanged_rows():
    """Each kind of row is there, so that an update has something to tell apart."""
    first, second = sync_output(1), sync_output(2)
    for stream in ("Lead", "Invoice"):
        known = {row["Id"]: row for row in first[stream]}
        fates = {"new" if row["Id"] not in known else row == known[row["Id"]] for row in second[stream]}
        assert fates == {"new", True, False}
    before = {tuple(row.values()) for row in first["GeneralLedgerCashReport"] if row["Date"] >= "2026-09-01"}
    after = {tuple(row.values()) for row in second["GeneralLedgerCashReport"]}
    assert before & after
    assert before - after
    assert after - before
    assert min(row["Date"] for row in second["GeneralLedgerCashReport"]) >= "2026-09-01"


def test_sizes_are_asked_for_and_too_small_ones_refused():
    """The full sync has the rows asked for; fewer than 10 cannot be split into fates."""
    first = sync_output(1, size=SyncSize(leads=10, invoices=20, ledger_lines=30))

    assert [len(rows) for rows in first.values()] == [10, 20, 30]
    with pytest.raises(ValueError, match="at least 10"):
        SyncSize(leads=9)


def test_crm_ids_are_distinct_when_case_is_ignored():
    """The three check letters repeat the case of the other fifteen, which is what they are for."""
    from random import Random

    random = Random(3)
    ids = [crm_id(random, "00Q") for _ in range(1000)]
    twin = crm_id(Random(3), "00Q")

    assert {len(one) for one in ids} == {18}
    assert len(ids) == len({one.upper() for one in ids})
    assert ids[0] == twin
