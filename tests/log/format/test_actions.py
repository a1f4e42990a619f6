"""Actions as values and as lines of JSON."""

import json

import pytest
from tests.log.tables import TableBuilder

from freezeframe.errors import CorruptLog, UnsupportedTable
from freezeframe.log.format.actions import (
    Add,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    Remove,
    Sidecar,
    Txn,
    parse_line,
    to_json_line,
)
from freezeframe.log.format.protocol import READER_FEATURES, mismatched_features, require_readable

VECTOR = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4)


@pytest.mark.parametrize(
    "action",
    [
        Protocol(3, 7, ("deletionVectors",), ("appendOnly", "deletionVectors")),
        Protocol(1, 2),
        Metadata(
            "m", '{"type":"struct","fields":[]}', ("p",), {"k": "v"}, "n", "d", 5, Format("parquet", {})
        ),
        Add("a%20b", 10, {"p": None, "q": "é"}, 5, False, '{"numRecords":1}', {"t": "1"}, VECTOR, 3, 4, "c"),
        Remove("a", 7, True, True, {"p": "1"}, 10, None, {"t": "1"}, VECTOR, 3, 4),
        Txn("app", 5, 6),
        DomainMetadata("d", "{}", True),
        CommitInfo({"operation": "WRITE", "anything": [1, {"a": None}]}),
        Sidecar("s.parquet", 4, 5),
    ],
)
def test_an_action_survives_its_line(action):
    """What is written is read back equal, without a newline inside."""
    line = to_json_line(action)
    assert action == parse_line(line)
    assert "\n" not in line


def test_a_schema_belongs_to_whoever_asks_for_it():
    """At any depth: what one of two tables of one schema changes in its own, the other does not see."""
    inner = {"type": "struct", "fields": [{"name": "b", "type": "long", "metadata": {"c": ["d"]}}]}
    text = json.dumps({"type": "struct", "fields": [{"name": "a", "type": inner, "metadata": {}}]})
    one, other = (Metadata(name, text).schema["fields"] for name in "12")
    one[0]["metadata"]["x"] = "y"
    one[0]["type"]["fields"][0]["metadata"]["c"].append("e")
    one[0]["type"]["fields"].append({})
    one.append({})
    assert [{"name": "a", "type": inner, "metadata": {}}] == other
    assert other == Metadata("3", text).schema["fields"]


def test_b056_unknown_actions_and_fields_are_ignored():
    """A reader must not stumble over what a newer writer adds, nor over missing or null fields."""
    assert parse_line('{"newAction":{"a":1}}') is None
    assert Txn("a", 1) == parse_line('{"txn":{"appId":"a","version":1,"new":{"x":1},"lastUpdated":null}}')
    assert Add("p", 0, {}, 0) == parse_line('{"add":{"path":"p","partitionValues":null}}')


@pytest.mark.parametrize(
    "line",
    ['{"add":', "[1]", '"text"', '{"txn":{"appId":"a"}}', '{"add":{"size":1}}', '{"protocol":[]}', "nul\x00"],
)
def test_b056_a_malformed_line_fails(line):
    """A torn line, no object, or an action without what it cannot be without is damage."""
    with pytest.raises(CorruptLog) as caught:
        parse_line(line)
    assert caught.value.error_code == "DELTA_LOG_MALFORMED_JSON"


def test_the_unique_id_of_a_vector_has_its_offset_only_if_there_is_one():
    """storageType + pathOrInlineDv, then @offset: Delta's own key."""
    assert VECTOR.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
    assert DeletionVector("i", "x", 1, 1).unique_id == "ix"


def test_nulls_are_left_out_of_a_line():
    """Delta writes no null fields."""
    assert json.loads(to_json_line(Remove("a"))) == {"remove": {"path": "a", "dataChange": True}}


# Which tables are read, and which are refused by name.


@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        (Protocol(99, 7), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(1, 99), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(2, 7, ("deletionVectors",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 7, None, ("appendOnly",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 6, ()), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 7, ("adaptiveMetadata-preview",)), "DELTA_UNSUPPORTED_FEATURES_FOR_READ"),
        (Protocol(3, 7, ("catalogManaged",)), "DELTA_UNSUPPORTED_FEATURES_FOR_READ"),
        (Protocol(3, 7, ("geospatial",)), "DELTA_GEOSPATIAL_NOT_SUPPORTED"),
    ],
)
def test_b058_what_is_not_known_is_refused_with_deltas_error_class(protocol, code):
    """A version or reader feature that is not known would give wrong rows."""
    with pytest.raises(UnsupportedTable) as caught:
        TableBuilder().create(protocol).log()
    assert code == caught.value.error_code


def test_b058_every_known_reader_feature_and_any_writer_feature_is_read():
    """A feature that concerns writers only never stops a reader."""
    known = tuple(sorted(READER_FEATURES))
    require_readable(Protocol(3, 7, known, (*known, "fromTheFuture")), "t")
    assert (
        TableBuilder().create(Protocol(1, 7, None, ("unknownWriterFeature",))).log().current_snapshot.exists
    )


def test_b059_a_property_whose_feature_is_not_listed_is_noticed():
    """The table was written by a faulty writer; readers must not honour the property."""
    metadata = Metadata("m", configuration={"delta.enableDeletionVectors": "true"})
    assert mismatched_features(Protocol(1, 2), metadata) == ["deletionVectors"]
    assert mismatched_features(Protocol(3, 7, ("deletionVectors",)), metadata) == []
    mapped = Metadata("m", configuration={"delta.columnMapping.mode": "name"})
    assert mismatched_features(Protocol(2, 5), mapped) == []
