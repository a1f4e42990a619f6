"""Columns in Delta's words: undecided marks and column mapping only where a name needs it."""

import json

import pyarrow as pa
import pytest

from freezeframe.log.format.actions import Protocol
from freezeframe.store.schema.columns import (
    arrow_columns,
    delta_columns,
    guarded_protocol,
    is_mapped,
    join_protocols,
    physical_names,
    stored_key,
    table_metadata,
    written_columns,
)
from freezeframe.store.schema.schema_evolution import UNDECIDED
from freezeframe.store.schema.type_compatibility import OPEN_TYPE, open_columns

PLAIN = pa.schema([("Id", pa.string()), ("Product/Service", pa.int64()), ("Account#", pa.string())])


def test_plain_names_need_no_mapping():
    """Slashes and hashes are ordinary: every Delta reader reads such a table."""
    schema = delta_columns(PLAIN, None)

    assert not is_mapped(schema)
    assert guarded_protocol(schema).min_reader_version == 1


@pytest.mark.parametrize("name", ["First Name", "a,b", "a;b", "{a}", "(a)", "a\nb", "a\tb", "a=b", ""])
def test_an_odd_name_turns_mapping_on(name):
    """Only the odd column gets a physical name of its own, and a reader must know the feature by name."""
    schema = delta_columns(pa.schema([("Id", pa.string()), (name, pa.string())]), None)

    names = physical_names(schema)
    assert names["Id"] == "Id"
    assert names[name].startswith("col-")
    assert guarded_protocol(schema).min_reader_version == 3
    assert guarded_protocol(schema).reader_features == ("columnMapping",)
    assert "columnMapping" in guarded_protocol(schema).writer_features
    assert table_metadata(schema, ("Id",), None, 0).configuration["delta.columnMapping.mode"] == "name"


def test_columns_keep_their_identity():
    """A column that is stored keeps its id and physical name; a new one gets the next id."""
    first = delta_columns(pa.schema([("Id", pa.string()), ("First Name", pa.string())]), None)
    then = delta_columns(
        pa.schema([("Id", pa.string()), ("First Name", pa.string()), ("b", pa.string())]), first
    )

    assert first["fields"] == then["fields"][:2]
    assert then["fields"][2]["metadata"]["delta.columnMapping.id"] == 3
    assert then["fields"][2]["metadata"]["delta.columnMapping.physicalName"].startswith("col-")
    plain = delta_columns(pa.schema([("Id", pa.string())]), None)
    joined = delta_columns(pa.schema([("Id", pa.string()), ("First Name", pa.string())]), plain)
    assert physical_names(joined)["Id"] == "Id", "files of before the mapping are read"


def test_undecided_columns_are_marked_and_not_written():
    """The mark survives the schema's JSON; the files do not have the column."""
    target = pa.schema(
        [pa.field("Id", pa.string()), pa.field("v", pa.string(), metadata={UNDECIDED: b"true"})]
    )

    schema = json.loads(json.dumps(delta_columns(target, None)))

    assert target.equals(arrow_columns(schema), check_metadata=True)
    assert [field["name"] for field in written_columns(schema)["fields"]] == ["Id"]


def test_local_times_raise_the_reader_version():
    schema = delta_columns(pa.schema([("t", pa.list_(pa.struct([("x", pa.timestamp("us"))])))]), None)

    protocol = guarded_protocol(schema)
    assert (protocol.min_reader_version, protocol.reader_features) == (3, ("timestampNtz",))


def test_a_protocol_is_never_lowered():
    mapped = guarded_protocol(delta_columns(pa.schema([("a b", pa.string())]), None))
    local = guarded_protocol(delta_columns(pa.schema([("t", pa.timestamp("us"))]), None))

    joined = join_protocols(mapped, local)

    assert joined.min_reader_version == 3
    assert joined.reader_features == ("columnMapping", "timestampNtz")
    assert set(mapped.writer_features) | set(local.writer_features) == set(joined.writer_features)
    # Reader version 2 implies column mapping; readers without it gave nulls for the mapped columns.
    assert mapped == join_protocols(Protocol(2, 7, None, mapped.writer_features), mapped)


def test_the_key_is_part_of_the_table():
    metadata = table_metadata(delta_columns(PLAIN, None), ("Id", "Account#"), None, 5)

    assert stored_key(metadata) == ("Id", "Account#")
    assert stored_key(None) is None


def test_parts_of_nested_columns_are_mapped_too():
    """Under mapping every field at any depth has an id and a physical name, and keeps them."""
    nested = pa.list_(pa.struct([("First Name", pa.string()), ("plain", pa.int64())]))
    target = pa.schema([("Id", pa.string()), ("Odd Name", pa.string()), ("v", nested)])

    first = delta_columns(target, None)
    then = delta_columns(target, first)

    parts = first["fields"][2]["type"]["elementType"]["fields"]
    assert [p["metadata"]["delta.columnMapping.physicalName"] for p in parts] == ["First Name", "plain"]
    assert [part["metadata"]["delta.columnMapping.id"] for part in parts] == [4, 5]
    assert first == then


OPEN = pa.schema(
    [
        ("Id", pa.int64()),
        ("tags", pa.list_(pa.null())),
        ("meta", pa.struct([])),
        ("lines", pa.list_(pa.struct([("sku", pa.null()), ("n", pa.int64())]))),
        ("by name", pa.map_(pa.string(), pa.null())),
    ]
)


def test_the_schema_has_no_void_and_no_struct_without_members():
    """Every Delta reader can read it; the column's own type comes back from the field's metadata."""
    schema = delta_columns(OPEN, None)

    text = json.dumps([field["type"] for field in schema["fields"]])
    assert ("void" in text, '"fields": []' in text) == (False, False)
    assert arrow_columns(schema).equals(OPEN)
    assert [OPEN_TYPE in field["metadata"] for field in schema["fields"]] == [False, *[True] * 4]


def test_a_decided_column_has_no_mark():
    decided = OPEN.set(1, pa.field("tags", pa.list_(pa.string())))

    schema = delta_columns(decided, delta_columns(OPEN, None))
    assert arrow_columns(schema).equals(decided)
    assert OPEN_TYPE not in schema["fields"][1]["metadata"]


def test_an_engine_is_told_what_is_open_under_physical_names():
    """``void`` stands where nothing has a type, names and ids of the parts stay."""
    stored = delta_columns(OPEN, None)
    stored["fields"][3]["type"]["elementType"]["fields"][1]["metadata"]["x"] = 1

    told = {field["name"]: field["type"] for field in open_columns(stored)["fields"]}
    assert (told["Id"], told["tags"]["elementType"], told["meta"]["fields"]) == ("long", "void", [])
    sku, n = told["lines"]["elementType"]["fields"]
    assert (sku["type"], n["type"], n["metadata"]["x"]) == ("void", "long", 1)
    assert told["by name"]["valueType"] == "void"
    assert "freezeframe_no_member" not in json.dumps(told)
