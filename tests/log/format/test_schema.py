"""Delta's schema JSON and Arrow's schema, in both directions."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.log.tables import with_mapping

from freezeframe.errors import BadInput, CorruptLog, UnsupportedTable
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.format.schema import (
    VARIANT,
    arrow_to_delta,
    column_finder,
    delta_to_arrow,
    every_field,
    field_id,
    is_widening,
    mapping_mode,
    physical_name,
    require_known_changes,
)


def struct(**kinds):
    fields = [{"name": n, "type": k, "nullable": True, "metadata": {}} for n, k in kinds.items()]
    return {"type": "struct", "fields": fields}


PRIMITIVES = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(38,18)": pa.decimal128(38, 18),
    "decimal(9,0)": pa.decimal128(9, 0),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


@pytest.mark.parametrize(("name", "arrow"), PRIMITIVES.items())
def test_a_primitive_type_is_the_same_both_ways(name, arrow):
    """Each Delta primitive has one Arrow type, which leads back to it."""
    assert pa.schema([pa.field("c", arrow)]) == delta_to_arrow(struct(c=name))
    assert struct(c=name) == arrow_to_delta(pa.schema([pa.field("c", arrow)]))


@pytest.mark.parametrize(
    ("name", "arrow"),
    [
        ("decimal", pa.decimal128(10, 0)),
        ("varchar(10)", pa.string()),
        ("char(3)", pa.string()),
        ("null", pa.null()),
        ("variant", VARIANT),
    ],
)
def test_other_spellings_are_read(name, arrow):
    """Types that only other writers write are read as what they mean."""
    assert arrow == delta_to_arrow(struct(c=name)).field("c").type


def test_nested_types_keep_what_may_be_null():
    """Arrays, maps and structs keep their inner nullability both ways."""
    inner = {**struct(x="long"), "fields": [{"name": "x", "type": "long", "nullable": False, "metadata": {}}]}
    array = {"type": "array", "elementType": inner, "containsNull": False}
    mapping = {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": True}
    schema = struct(m=mapping)
    arrow = delta_to_arrow(schema)
    assert not arrow.field("m").type.item_type.value_field.nullable
    assert not arrow.field("m").type.item_type.value_type.field("x").nullable
    assert schema == arrow_to_delta(arrow)


@pytest.mark.parametrize(
    ("arrow", "name"),
    [
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.binary(16), "binary"),
        (pa.date64(), "date"),
        (pa.timestamp("ns", "Europe/Berlin"), "timestamp"),
        (pa.timestamp("s"), "timestamp_ntz"),
        (pa.decimal256(30, 4), "decimal(30,4)"),
        (pa.float16(), "float"),
    ],
)
def test_arrow_types_without_a_twin_widen(arrow, name):
    """An Arrow type that Delta lacks becomes the narrowest Delta type that holds all its values."""
    assert struct(c=name) == arrow_to_delta(pa.schema([pa.field("c", arrow)]))


@pytest.mark.parametrize(
    "arrow",
    [
        pa.time64("us"),
        pa.duration("s"),
        pa.decimal256(60, 2),
        pa.decimal128(5, -2),
        pa.month_day_nano_interval(),
    ],
)
def test_a_type_that_would_lose_values_is_refused(arrow):
    """A type that Delta cannot keep is refused with the column's full name."""
    schema = pa.schema([pa.field("outer", pa.struct([pa.field("inner", arrow)]))])
    with pytest.raises(BadInput, match=r"outer\.inner"):
        arrow_to_delta(schema)


def test_names_that_differ_in_case_only_are_refused():
    """Delta would mix up Id and id, so both are named and refused."""
    with pytest.raises(BadInput, match="'Id', 'id'") as caught:
        arrow_to_delta(pa.schema([pa.field("Id", pa.int64()), pa.field("id", pa.int64())]))
    assert caught.value.error_code == "DELTA_DUPLICATE_COLUMNS_FOUND"


@pytest.mark.parametrize("name", ["interval day", "geometry(EPSG:4326)", "decimal(39,2)", "time(6)"])
def test_an_unknown_type_is_refused_by_name(name):
    """A Delta type of a later day is refused by its name."""
    with pytest.raises(UnsupportedTable) as caught:
        delta_to_arrow(struct(c=name))
    assert name == caught.value.details["type"]


@pytest.mark.parametrize("broken", [{}, {"type": "struct"}, {"type": "struct", "fields": [{}]}, None])
def test_what_is_no_schema_is_damage(broken):
    """JSON that is not a Delta schema is reported as a damaged log."""
    with pytest.raises(CorruptLog):
        delta_to_arrow(broken)


names = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique_by=lambda name: name.lower())
kinds = st.recursive(
    st.sampled_from(list(PRIMITIVES)),
    lambda inner: st.one_of(
        st.builds(
            lambda k, n: {"type": "array", "elementType": k, "containsNull": n or k == "void"},
            inner,
            st.booleans(),
        ),
        st.builds(
            lambda k, v, n: {
                "type": "map",
                "keyType": k,
                "valueType": v,
                "valueContainsNull": n or v == "void",
            },
            st.sampled_from(["string", "long"]),
            inner,
            st.booleans(),
        ),
        st.builds(lambda k, ns: struct(**dict.fromkeys(ns, k)), inner, names),
    ),
    max_leaves=8,
)


@given(
    names.flatmap(
        lambda ns: st.tuples(*[kinds for _ in ns]).map(lambda ks: struct(**dict(zip(ns, ks, strict=True))))
    )
)
def test_every_schema_comes_back(schema):
    """Any Delta schema, turned into Arrow and back, is the same JSON value."""
    assert schema == json.loads(json.dumps(arrow_to_delta(delta_to_arrow(schema))))


# Column mapping: names for files that never change, given once and found again.


NESTED = arrow_to_delta(
    pa.schema(
        [
            ("a", pa.int64()),
            ("s", pa.struct([("x", pa.string()), ("y", pa.list_(pa.struct([("z", pa.int32())])))])),
            ("m", pa.map_(pa.string(), pa.struct([("v", pa.int32())]))),
        ]
    )
)


def test_every_field_has_its_number_and_its_physical_name():
    """At every depth the id and the physical name of a field are found, where it has them."""
    mapped, id_max = with_mapping(NESTED)
    fields = list(every_field(mapped))
    assert [field["name"] for field in fields] == ["a", "s", "x", "y", "z", "m", "v"]
    assert [field_id(field) for field in fields] == [1, 2, 3, 4, 5, 6, 7]
    assert id_max == len({physical_name(field) for field in fields}) == 7
    assert all(field_id(field) is None for field in every_field(NESTED))
    assert [physical_name(field) for field in every_field(NESTED)] == ["a", "s", "x", "y", "z", "m", "v"]


@pytest.mark.parametrize(
    ("protocol", "configuration", "mode"),
    [
        (Protocol(1, 2), {"delta.columnMapping.mode": "name"}, "none"),
        (Protocol(2, 5), {"delta.columnMapping.mode": "name"}, "name"),
        (Protocol(2, 5), {}, "none"),
        (Protocol(3, 7, ("columnMapping",), ("columnMapping",)), {"delta.columnMapping.mode": "id"}, "id"),
        (Protocol(3, 7, (), ("columnMapping",)), {"delta.columnMapping.mode": "id"}, "none"),
    ],
)
def test_the_property_counts_only_with_the_feature(protocol, configuration, mode):
    """Without the feature in the protocol the property means nothing."""
    assert mode == mapping_mode(protocol, Metadata("id", configuration=configuration))


def test_an_unknown_mode_is_refused():
    """A mode of a later day is refused by name."""
    with pytest.raises(UnsupportedTable, match="'fuzzy'"):
        mapping_mode(Protocol(2, 5), Metadata("id", configuration={"delta.columnMapping.mode": "fuzzy"}))


def test_columns_are_found_by_name_then_by_another_case():
    """The exact name wins; otherwise one in another case is the one."""
    stored = pa.schema([("ID", pa.int64()), ("id", pa.int64()), ("City", pa.string())])
    wanted = {"name": "id", "type": "long", "metadata": {}}
    assert column_finder(stored, "none")(wanted) == 1
    assert column_finder(stored, "none")({**wanted, "name": "Id"}) == 0
    assert column_finder(stored, "none")({**wanted, "name": "city"}) == 2
    assert column_finder(stored, "none")({**wanted, "name": "town"}) is None


# Type changes that a reader may undo, and those that it must refuse.


@pytest.mark.parametrize(
    "change",
    [
        ("byte", "short"),
        ("byte", "long"),
        ("integer", "long"),
        ("float", "double"),
        ("integer", "double"),
        ("date", "timestamp_ntz"),
        ("decimal(5,2)", "decimal(7,4)"),
        ("decimal(5,2)", "decimal(10,2)"),
        ("byte", "decimal(10,0)"),
        ("integer", "decimal(12,2)"),
        ("long", "decimal(20,0)"),
    ],
)
def test_the_protocols_list_is_allowed(change):
    """Every change on the protocol's list keeps every value."""
    assert is_widening(*change)


@pytest.mark.parametrize(
    "change",
    [
        ("long", "integer"),
        ("long", "double"),
        ("byte", "decimal(4,1)"),
        ("long", "decimal(10,0)"),
        ("decimal(5,2)", "decimal(6,4)"),
        ("decimal(5,2)", "decimal(5,1)"),
        ("string", "long"),
        ("date", "timestamp"),
        ("double", "float"),
    ],
)
def test_everything_else_is_not(change):
    """A change that could lose a digit, or is not on the list, is none to undo."""
    assert not is_widening(*change)


def test_a_nested_change_is_found_and_named():
    """A change inside a struct is refused with the field's name and both types."""
    change = {"delta.typeChanges": [{"fromType": "string", "toType": "long"}]}
    inner = {"name": "deep", "type": "long", "nullable": True, "metadata": change}
    kind = {"type": "array", "elementType": {"type": "struct", "fields": [inner]}, "containsNull": True}
    outer = {"name": "o", "type": kind, "nullable": True, "metadata": {}}
    with pytest.raises(UnsupportedTable, match="'deep' was changed from string to long") as caught:
        require_known_changes({"type": "struct", "fields": [outer]})
    assert caught.value.error_code == "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA"
