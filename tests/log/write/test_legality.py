"""Commits that the protocol forbids are refused, each by the section that forbids it."""

import json
from dataclasses import replace

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.log.format.actions import Add, DeletionVector, DomainMetadata, Protocol, Remove
from freezeframe.log.segments.commit import Committed
from freezeframe.storage import MemoryStorage

VECTOR = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 34, 1, offset=1)
STATS = '{"numRecords": 3}'


def add(path="new.parquet", **fields):
    return Add(path, size=1, modification_time=1, **{"partition_values": {"p": "a"}, **fields})


def with_type(table, kind):
    schema = json.loads(table.metadata.schema_string)
    schema["fields"].append({"name": "extra", "type": kind, "nullable": True, "metadata": {}})
    return replace(table.metadata, schema_string=json.dumps(schema))


def live(table):
    table.append([1, 2, 3])
    [path] = table.log.update().files["path"].to_pylist()
    return path


CASES = {
    "a path that climbs": ("Add File", lambda _: [add("../x.parquet")]),
    "a path that climbs in code": ("Add File", lambda _: [add("a/%2e%2e/x.parquet")]),
    "a removal that climbs": ("Add File", lambda _: [Remove("../x.parquet")]),
    "a missing partition value": ("Add File", lambda _: [add(partition_values={})]),
    "a value of no partition": ("Add File", lambda _: [add(partition_values={"p": "a", "q": "b"})]),
    "a domain twice": ("Domain Metadata", lambda _: [DomainMetadata("d"), DomainMetadata("d", '{"a":1}')]),
    "a garbage schema": ("schema", lambda t: [replace(t.metadata, schema_string="{")]),
    "a partition of no column": (
        "Change Metadata",
        lambda t: [replace(t.metadata, partition_columns=("gone",))],
    ),
    "a local time without its feature": ("Table Features", lambda t: [with_type(t, "timestamp_ntz")]),
    "a feature list under old versions": (
        "Protocol",
        lambda t: [Protocol(1, 2, None, ("appendOnly",)), replace(t.metadata, configuration={})],
    ),
    "a reader's feature that writers lack": (
        "Table Features",
        lambda _: [Protocol(3, 7, ("deletionVectors",), ("appendOnly",))],
    ),
    "a vector without numRecords": ("Deletion Vectors", lambda _: [add(deletion_vector=VECTOR)]),
    "another vector without a removal": (
        "Deletion Vectors",
        lambda t: [add(live(t), deletion_vector=VECTOR, stats=STATS)],
    ),
    "a file that is not there": ("Action Reconciliation", lambda _: [Remove("gone.parquet")]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_protocol_forbids_is_refused_by_its_section(table, case):
    """Nothing is written, and the section is named."""
    section, actions = CASES[case]
    listed = actions(table)
    before = table.log.update().version
    with pytest.raises(InvalidOption, match=section):
        table.begin().commit(listed, "WRITE")
    assert before == table.fresh().version


def test_a_protocol_is_not_lowered_under_features_in_use(table):
    """A table whose vectors are on keeps the feature; with the property off the feature can go."""
    lowered = replace(
        table.protocol,
        reader_features=tuple(f for f in table.protocol.reader_features if f != "deletionVectors"),
        writer_features=tuple(f for f in table.protocol.writer_features if f != "deletionVectors"),
    )
    with pytest.raises(Exception, match="deletionVectors"):
        table.begin().commit([lowered], "SET")
    off = replace(table.metadata, configuration={})
    assert table.begin().commit([lowered, off], "SET") == Committed(1)


def test_a_vector_and_a_domain_need_their_features(make_table):
    """A protocol without them refuses both."""
    table = make_table(MemoryStorage())
    table.protocol = Protocol(1, 2)
    table.metadata = replace(table.metadata, configuration={})
    table.create()
    for actions, name in (
        ([add(deletion_vector=VECTOR, stats=STATS)], "deletionVectors"),
        ([DomainMetadata("d")], "domainMetadata"),
    ):
        with pytest.raises(InvalidOption, match=name):
            table.begin().commit(actions, "WRITE")
    assert table.fresh().version == 0


def test_a_vector_takes_the_place_of_another_with_its_removal(table):
    """The legal form of the same commit."""
    path = live(table)
    transaction = table.begin()
    actions = table.delete(transaction, {path: [0]})
    assert transaction.commit(actions, "DELETE") == Committed(2)
