"""Types that a Singer catalog declares."""

import json

import pyarrow as pa
import pytest

from freezeframe.errors import UnreadableInput
from freezeframe.script.types.known_types import catalog_beside, declared_type

UTC = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": ["null", "integer"]}, pa.int64()),
        ({"type": "number"}, pa.float64()),
        ({"type": ["integer", "number", "null"]}, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        ({"type": ["string", "null"], "format": "date-time"}, UTC),
        ({"type": "string", "format": "date"}, pa.date32()),
        ({"anyOf": [{"type": "string", "format": "date-time"}, {"type": ["string", "null"]}]}, UTC),
        ({"type": "string", "format": "uri"}, pa.string()),
        ({"type": ["integer", "string"]}, pa.string()),
        ({"type": ["array", "null"], "items": {"type": "integer"}}, pa.string()),
        ({"type": "object", "properties": {}}, pa.string()),
        ({"type": "null"}, None),
        ({}, None),
    ],
)
def test_a_property_declares_one_type_or_none(schema, kind):
    """Integers, numbers, booleans, instants and dates; all else is text, nothing is nothing."""
    assert kind == declared_type(schema)


def test_streams_are_found_by_both_their_names(tmp_path):
    """A file may be named for the stream or for the tap's id of it."""
    entry = {
        "stream": "Account",
        "tap_stream_id": "acc",
        "schema": {"properties": {"Id": {"type": "integer"}}},
    }
    (tmp_path / "catalog.json").write_text(json.dumps({"streams": [entry]}))
    (tmp_path / "sync-output").mkdir()
    catalog = catalog_beside(tmp_path / "sync-output")
    assert {"Id": pa.int64()} == catalog.columns("Account") == catalog.columns("acc")
    assert catalog.columns("Other") == {}


def test_no_catalog_declares_nothing(tmp_path):
    """Most folders have none."""
    assert catalog_beside(tmp_path / "sync-output").streams == {}


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"streams": [1]}', '{"streams": [{"schema": {"properties": {"a": 1}}}]}']
)
def test_a_damaged_catalog_is_named(tmp_path, content):
    """Types are not guessed when somebody declared them and the declaration is broken."""
    (tmp_path / "catalog.json").write_text(content)
    with pytest.raises(UnreadableInput, match=r"catalog\.json"):
        catalog_beside(tmp_path / "sync-output")
