"""Columns of which a part has no type yet, in Delta's words."""

import json

import pyarrow as pa

from freezeframe.store.schema.columns import arrow_columns, delta_columns
from freezeframe.store.schema.type_compatibility import OPEN_TYPE, open_columns

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
    """Nor has one that is dropped and comes again."""
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
