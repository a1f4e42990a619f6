"""Delta's schema JSON and Arrow's schema, in both directions."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.errors import BadInput, CorruptLog, UnsupportedTable
from freezeframe.log.format.schema import VARIANT, arrow_to_delta, delta_to_arrow


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
