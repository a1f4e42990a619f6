"""What a writer or caller can get wrong is a typed error, or read as Spark reads it."""

import json
from datetime import UTC, datetime

import pyarrow.compute as pc
import pytest
from tests.log.tables import TableBuilder

from freezeframe.errors import CorruptLog, FreezeframeError, InvalidOption
from freezeframe.log.primitives.paths import commit_name
from freezeframe.log.scan.rows import files_matching
from freezeframe.log.segments.hint import GarbledHint, parse_checksum, parse_hint

DEEP = '{"a":' * 100_000


def table_with(line):
    table = TableBuilder().create()
    return table.raw(commit_name(1), (json.dumps(line) + "\n").encode())


def add(**fields):
    return {"add": {"path": "f", "partitionValues": {"p": "a"}, "size": 1, "modificationTime": 1, **fields}}


def test_statistics_as_an_object_count():
    """Spark takes an object where the JSON text must be; it skips files alike."""
    snapshot = table_with(add(stats={"numRecords": 1, "minValues": {"id": 7}})).log().current_snapshot
    found = [files_matching(snapshot, pc.field("id") == value).num_rows for value in (7, 6)]
    assert found == [1, 0]


def test_partition_values_that_are_no_texts_are_their_json():
    """As Spark reads them: 5 is "5", true is "true"."""
    files = table_with(add(partitionValues={"p": 5, "q": True})).log().current_snapshot.files
    assert [dict(item) for item in files["partition_values"].to_pylist()] == [{"p": "5", "q": "true"}]


@pytest.mark.parametrize(
    "line",
    [
        add(path="\ud800"),
        add(size=2**70),
        add(size=[]),
        add(tags=5),
        add(deletionVector={"storageType": "u"}),
        {"txn": {"appId": [], "version": 1}},
        {"txn": {"appId": "a", "version": 1, "lastUpdated": "x"}},
        {"domainMetadata": {"domain": {}}},
        {
            "metaData": {
                "id": "i",
                "schemaString": '{"type":"struct","fields":[{"name":"a","type":"long","metadata":5}]}',
            }
        },
        {"metaData": {"id": "i", "schemaString": DEEP}},
        {
            "metaData": {
                "id": "i",
                "schemaString": '{"type":"struct","fields":[{"name":"\\ud800","type":"long","metadata":{}}]}',
            }
        },
    ],
    ids=lambda line: json.dumps(line)[:60],
)
def test_garbled_fields_are_damage_of_the_log(line):
    """A field of another type than the protocol's, at any depth, is an error that names the file."""
    with pytest.raises(CorruptLog):
        table_with(line).log().current_snapshot.to_arrow()


def test_bytes_of_a_path_that_are_no_text_are_damage_in_large_commits_too():
    """Arrow takes them for text until somebody looks."""
    lines = [json.dumps(add(path=f"{n}.parquet"), separators=(",", ":")).encode() for n in range(200)]
    lines[100] = lines[100].replace(b"100.parquet", b"\xfd.parquet")
    table = TableBuilder().create().raw(commit_name(1), b"\n".join(lines) + b"\n")
    with pytest.raises(CorruptLog, match=r"Line 101 of 0+1\.json"):
        table.log().current_snapshot.files  # noqa: B018 - it is what refuses


def test_a_property_that_is_null_is_not_set():
    """An interval that is null is the default one."""
    table = TableBuilder().create(**{"delta.deletedFileRetentionDuration": None, "delta.appendOnly": "true"})
    snapshot = table.log().current_snapshot
    assert snapshot.tombstones.num_rows == 0
    assert snapshot.metadata.configuration == {"delta.appendOnly": "true"}


def test_a_bound_that_utf_8_cannot_encode_is_no_bound():
    """The file is read then, whatever is asked for."""
    stats = json.dumps({"numRecords": 1, "minValues": {"id": "\ud800"}, "maxValues": {"id": "\ud800"}})
    snapshot = table_with(add(stats=stats)).log().current_snapshot
    assert files_matching(snapshot, pc.field("id") == 7).num_rows == 1


def test_a_garbled_enablement_version_is_damage():
    """Since when commits carry their own time must be a number."""
    keys = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "soon"}
    with pytest.raises(CorruptLog, match="not a whole number"):
        TableBuilder().create(**keys).log().current_snapshot.timestamp  # noqa: B018 - it is what refuses


def test_deep_nesting_is_garbled_and_no_recursion_error():
    """Hint, checksum and commit of very deep JSON: each is what a garbled one is."""
    with pytest.raises(GarbledHint):
        parse_hint(('{"version":1,"x":' + DEEP).encode())
    with pytest.raises(GarbledHint):
        parse_hint(('{"version":1,"x":' + "[" * 700 + "]" * 700 + "}").encode() + b"}")
    assert parse_checksum(DEEP.encode()) is None
    with pytest.raises(CorruptLog):
        TableBuilder().create().raw(commit_name(1), (DEEP + "}").encode()).log()


@pytest.mark.parametrize(
    "moment",
    [
        {"version": "5"},
        {"version": 1.0},
        {"version": True},
        {"version": -1},
        {"timestamp": "yesterday"},
        {"timestamp": 1.5},
    ],
    ids=str,
)
def test_versions_and_moments_of_other_types_are_refused(moment):
    """A version is a whole number, a moment is a datetime, ISO text or milliseconds."""
    log = TableBuilder().commits(2).log()
    with pytest.raises(InvalidOption):
        log.snapshot_at(**moment)
    with pytest.raises(FreezeframeError):
        log.snapshot_at(timestamp=datetime(1970, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: log.history("3"),
        lambda log: log.history(-1),
        lambda log: log.history(True),
        lambda log: log.history(start=None),
        lambda log: log.history(end="2"),
        lambda log: log.changes("a", 2),
        lambda log: log.changes(0, -1),
        lambda log: log.changes(2, 1),
    ],
)
def test_ranges_of_other_values_are_refused(ask):
    """Limits and versions are whole numbers from 0 on."""
    with pytest.raises(InvalidOption):
        ask(TableBuilder().commits(2).log())


def test_a_text_is_not_a_predicate():
    """The message says so, in place of what PyArrow makes of its letters."""
    log = TableBuilder().commits(1).log()
    with pytest.raises(InvalidOption, match=r"'i >' is not a predicate(.|\n)*as SQL at character 3"):
        log.current_snapshot.to_arrow(where="i >")
