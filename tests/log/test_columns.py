"""Column mapping: names for files that never change, given once and found again."""

import pyarrow as pa
import pytest

from freezeframe.errors import UnsupportedTable
from freezeframe.log.actions import Metadata, Protocol
from freezeframe.log.columns import (
    every_field,
    field_id,
    find_column,
    mapping_mode,
    need_mapping,
    physical_name,
    with_mapping,
)
from freezeframe.log.schema import arrow_to_delta

NESTED = arrow_to_delta(
    pa.schema(
        [
            ("a", pa.int64()),
            ("s", pa.struct([("x", pa.string()), ("y", pa.list_(pa.struct([("z", pa.int32())])))])),
            ("m", pa.map_(pa.string(), pa.struct([("v", pa.int32())]))),
        ]
    )
)


def test_every_field_gets_a_number_and_a_name_of_its_own():
    """At every depth a field has an id and a physical name that no other field has."""
    mapped, id_max = with_mapping(NESTED)
    fields = list(every_field(mapped))
    assert ["a", "s", "x", "y", "z", "m", "v"] == [field["name"] for field in fields]
    assert [1, 2, 3, 4, 5, 6, 7] == [field_id(field) for field in fields]
    assert id_max == len({physical_name(field) for field in fields}) == 7
    assert all(field_id(field) is None for field in every_field(NESTED))


def test_known_fields_keep_theirs_and_numbers_are_never_given_again():
    """A schema that grew keeps what its fields had; a dropped field's number stays used."""
    before, id_max = with_mapping(NESTED)
    fields = [before["fields"][0], {"name": "new", "type": "long", "nullable": True, "metadata": {}}]
    after, later_max = with_mapping({"type": "struct", "fields": fields}, before, id_max)
    assert before["fields"][0] == after["fields"][0]
    assert (8, 8) == (field_id(after["fields"][1]), later_max)


def test_a_table_that_is_mapped_later_keeps_the_names_in_its_files():
    """Files that exist hold plain names: these become the physical ones."""
    mapped, _ = with_mapping(NESTED, NESTED)
    assert [field["name"] for field in every_field(mapped)] == [physical_name(f) for f in every_field(mapped)]


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


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "{a}", "(a)", "a\nb", "a\tb", "a=b"])
def test_odd_names_need_mapping(name):
    """Names that Parquet writers refuse need mapping, nested ones too; others do not."""
    assert need_mapping(arrow_to_delta(pa.schema([("s", pa.struct([(name, pa.int64())]))])))
    assert not need_mapping(arrow_to_delta(pa.schema([("a.b-c_ü", pa.int64())])))


def test_columns_are_found_by_name_then_by_another_case():
    """The exact name wins; otherwise one in another case is the one."""
    stored = pa.schema([("ID", pa.int64()), ("id", pa.int64()), ("City", pa.string())])
    wanted = {"name": "id", "type": "long", "metadata": {}}
    assert find_column(stored, wanted, "none") == 1
    assert find_column(stored, {**wanted, "name": "Id"}, "none") == 0
    assert find_column(stored, {**wanted, "name": "city"}, "none") == 2
    assert find_column(stored, {**wanted, "name": "town"}, "none") is None
