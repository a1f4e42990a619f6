"""Actions as values and as lines of JSON."""

import json

import pytest

from freezeframe.errors import CorruptLog
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
