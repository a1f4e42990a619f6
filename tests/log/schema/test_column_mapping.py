"""Column mapping: names for files that never change, given once and found again."""

import pyarrow as pa
import pytest
from tests.log.foreign_forms import with_mapping

from freezeframe.errors import UnsupportedTable
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.format.schema import (
    arrow_to_delta,
    column_finder,
    every_field,
    field_id,
    mapping_mode,
    physical_name,
)

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
