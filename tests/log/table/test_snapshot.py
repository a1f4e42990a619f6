"""Snapshot: lazy, immutable, complete."""

import json
from dataclasses import replace

import pyarrow.compute as pc
import pytest
from tests.log.tables import TableBuilder, all_tombstones, file, paths

from freezeframe.errors import CorruptLog, InvalidOption
from freezeframe.log.format.actions import Add, DomainMetadata, Metadata, Protocol, Remove, Txn
from freezeframe.log.primitives.arrow import milliseconds
from freezeframe.log.primitives.paths import commit_name
from freezeframe.log.scan.rows import files_matching
from freezeframe.log.segments import commit_content

DAY_MS = 86_400_000
NOW = 100 * DAY_MS


def test_b055_tombstones_younger_than_the_retention_are_listed():
    """Seven days unless the table says otherwise; exactly the retention is expired, as is no time."""
    ages = [0, 6, 7, 8]
    table = TableBuilder().create().commit(*(file(f"f{age}") for age in ages), file("timeless"))
    table.commit(*(Remove(f"f{age}", NOW - age * DAY_MS) for age in ages), Remove("timeless"))
    snapshot = table.log(clock=lambda: NOW).current_snapshot
    assert sorted(snapshot.tombstones["path"].to_pylist()) == ["f0", "f6"]
    assert all_tombstones(snapshot).num_rows == 5


def test_b055_expired_tombstones_are_not_held_in_memory():
    """Neither of commits nor of a checkpoint: what is left is what is young."""
    table = TableBuilder().create().commit(file("f")).commit(Remove("f", NOW - 8 * DAY_MS))
    table.commit(Remove("g", NOW), Remove("h"))
    for log in (table.log(clock=lambda: NOW), table.checkpoint(3).log(clock=lambda: NOW)):
        assert log.current_snapshot.state.files.tombstones["path"].to_pylist() == ["g"]


def test_b055_a_retention_that_is_no_duration_keeps_all_tombstones():
    """The table is read; that the property is garbled is said when tombstones are asked for."""
    table = TableBuilder().create(**{"delta.deletedFileRetentionDuration": "a while"})
    snapshot = table.commit(file("f")).commit(Remove("f", 1)).log(clock=lambda: NOW).current_snapshot
    assert snapshot.state.files.tombstones.num_rows == 1
    with pytest.raises(InvalidOption):
        snapshot.tombstones  # noqa: B018 - it is what refuses


def test_b055_a_retention_that_is_raised_brings_tombstones_back():
    """The next snapshot has those that the log still holds, as a log opened then has."""
    table = TableBuilder().create().commit(file("f")).commit(Remove("f", NOW - 8 * DAY_MS))
    log = table.log(clock=lambda: NOW)
    assert log.current_snapshot.tombstones.num_rows == 0
    raised = {"delta.deletedFileRetentionDuration": "interval 1 month"}
    table.commit(replace(log.current_snapshot.metadata, configuration=raised))
    assert log.update().tombstones.num_rows == 1


def test_b055_the_latest_transaction_of_each_application_counts():
    """A version may even go down."""
    table = TableBuilder().create().commit(Txn("a", 5)).commit(Txn("b", 1)).commit(Txn("a", 3))
    found = table.log().current_snapshot.transactions
    assert {app: txn.version for app, txn in found.items()} == {"a": 3, "b": 1}


def test_b055_transactions_expire_where_the_table_says_so():
    """Older than the retention, or without a time: gone."""
    table = TableBuilder().create(**{"delta.setTransactionRetentionDuration": "interval 1 days"})
    table.commit(Txn("old", 1, NOW - 2 * DAY_MS), Txn("new", 1, NOW - 1000), Txn("timeless", 1))
    assert set(table.log(clock=lambda: NOW).current_snapshot.transactions) == {"new"}


def test_b055_removed_domains_are_not_listed():
    """Latest per domain, without those that were removed."""
    table = TableBuilder().create().commit(DomainMetadata("a", "1"), DomainMetadata("b", "1"))
    table.commit(DomainMetadata("a", "2")).commit(DomainMetadata("b", "1", removed=True))
    found = table.log().current_snapshot.domains
    assert {name: domain.configuration for name, domain in found.items()} == {"a": "2"}


@pytest.mark.parametrize(
    "content", [b"", b"\n", b'{"add":{"path":"a","siz', b'{"commitInfo":{}}\n{"add":', b"{}\n[1]\n"]
)
@pytest.mark.parametrize("newest", [True, False])
def test_b056_an_empty_or_torn_commit_is_refused(content, newest):
    """Wherever it stands, the file is named; with nothing after it, the table does not even open."""
    table = TableBuilder().commits(3).raw(commit_name(3), content)
    if not newest:
        table.version += 1
        table.accounts.append(table.accounts[-1])
        table.commit(file("f4"))
    with pytest.raises(CorruptLog) as caught:
        table.log().current_snapshot.state  # noqa: B018 - reading it is what fails
    assert caught.value.error_code == "DELTA_LOG_MALFORMED_JSON"
    assert commit_name(3) in str(caught.value)


def test_b056_an_unknown_field_of_changing_type_is_no_matter():
    """What Arrow's reader cannot follow is read line by line, with the same answer."""
    lines = [
        b'{"add":{"path":"a","partitionValues":{},"size":1,"x":1}}',
        b'{"add":{"path":"b","size":2,"x":"y"}}',
    ]
    table = TableBuilder().create().raw(commit_name(1), b"\n".join(lines))
    assert paths(table.log().current_snapshot) == ["a", "b"]


def test_b056_partition_values_and_tags_of_any_names_are_kept():
    """Keys that the metadata does not name, dates and nulls among the values."""
    values = b'"partitionValues":{"d":"2020-01-01","n":null},"tags":{"t":"2020-01-01"}'
    line = b'{"add":{"path":"a","size":1,%b}}' % values
    table = TableBuilder().create().raw(commit_name(1), line + b"\n" + line.replace(b'"a"', b'"b"'))
    row = table.log().current_snapshot.files.to_pylist()[0]
    assert {k: v for k, v in row["partition_values"] if k != "p"} == {"d": "2020-01-01", "n": None}
    assert row["tags"] == [("t", "2020-01-01")]


def test_lines_spelled_with_spaces_count_as_well():
    """JSON is JSON: spaces, carriage returns and blank lines change nothing."""
    table = TableBuilder().create()
    first, second = (
        b'{ "add" : {"path": "a", "partitionValues": {"p":"x"}} }',
        b'{"add":{"path":"b","size":1}}',
    )
    table.raw(commit_name(1), first + b"\r\n\r\n" + second + b"\r\n")
    assert paths(table.log().current_snapshot) == ["a", "b"]


def test_two_protocols_in_one_commit_are_damage():
    """One commit holds at most one of each (Action Reconciliation)."""
    table = TableBuilder().create().commit(Protocol(1, 2), Protocol(1, 1))
    with pytest.raises(CorruptLog) as caught:
        table.log()
    assert caught.value.error_code == "DELTA_DUPLICATE_ACTIONS_FOUND"
    assert "copy" not in caught.value.remedy


def test_b057_the_state_is_not_read_before_it_is_asked_for():
    """Protocol, metadata and schema are there; files are read later, once."""
    snapshot = TableBuilder().commits(4).log().current_snapshot
    assert (
        [field["name"] for field in snapshot.delta_schema["fields"]],
        snapshot.is_loaded,
    ) == (["id", "p"], False)
    assert snapshot.files is snapshot.files
    assert snapshot.is_loaded


def test_a_large_commit_is_read_in_pieces(monkeypatch):
    """The same files, sizes and partitions as were written."""
    monkeypatch.setattr(commit_content, "PIECE_BYTES", 1 << 19)
    many = [file(f"part-{number:06d}.parquet", size=number, stats="x" * 200) for number in range(5_000)]
    table = TableBuilder().create().commit(*many).commit(Remove("part-000007.parquet", 1))
    snapshot = table.log().current_snapshot
    assert (4_999, sum(range(5_000)) - 7) == (snapshot.count, snapshot.size)
    assert snapshot.files["partition_values"][4_998].as_py() == [("p", "a")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 7 days", 7 * DAY_MS),
        ("INTERVAL 1 week 2 hours", 7 * DAY_MS + 7_200_000),
        ("30 minutes", 1_800_000),
    ],
)
def test_durations_are_read_as_table_properties_write_them(text, expected):
    """With or without the word interval, several units, any case."""
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["", "interval", "a week", "5", "interval 1 century", "interval 5 days and"])
def test_a_text_that_is_no_duration_is_refused(text):
    """A number and a unit that is known, or nothing."""
    with pytest.raises(InvalidOption):
        milliseconds(text)


@pytest.mark.parametrize("name", [".p", "a.b", "[0]", "..", "p]"])
def test_partition_columns_of_odd_names_are_read(name):
    """A name is a name, whatever it looks like: nowhere is it taken for a path of names."""
    schema = {
        "type": "struct",
        "fields": [{"name": name, "type": "string", "nullable": True, "metadata": {}}],
    }
    table = TableBuilder().commit(Protocol(1, 2), Metadata("t", json.dumps(schema), (name,)))
    for value in ("x", "y", None):
        table.commit(Add(f"f{value}", 1, {name: value}, stats='{"numRecords":1}'))
    snapshot = table.log().current_snapshot
    assert [dict(item)[name] for item in snapshot.files["partition_values"].to_pylist()] == ["x", "y", None]
    assert files_matching(snapshot, pc.field(name) == "x")["path"].to_pylist() == ["fx"]
