"""Lines that are not messages of a tap are refused, each with its number."""

import pytest
from tests.given import fails
from tests.singer.taps import activate, lines, record, run, schema

import freezeframe
from freezeframe.errors import FreezeframeError, MissingColumn, NullKeyError, UnreadableInput
from freezeframe.singer.messages import StateMessage, read_messages

DEEP = (
    '{"type": "RECORD", "stream": "Account", "record": {"Id": "1", "Deep": '
    + "[" * 20_000
    + "]" * 20_000
    + "}}"
)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"type": "STATE", "value": NaN}', "NaN is not JSON"),
        ('{"type": "STATE", "value": "\\ud800"}', "surrogates not allowed"),
        ("7", "not a JSON object"),
        ('{"stream": "a"}', "type is None"),
        ('{"type": ["RECORD"]}', "type is"),
        ('{"type": "BATCH", "stream": "a"}', "is a BATCH message"),
        ('{"type": "STATE"}', "no 'value'"),
        ('{"type": "RECORD", "record": {}}', "'stream' of a RECORD message is missing"),
        ('{"type": "RECORD", "stream": "a"}', "'record' of a RECORD message is missing"),
        ('{"type": "RECORD", "stream": "a", "record": []}', "wrong type"),
        ('{"type": "RECORD", "stream": "a", "record": {}, "version": 1.5}', "not an integer"),
        ('{"type": "RECORD", "stream": "a", "record": {}, "version": "1"}', "wrong type"),
        ('{"type": "SCHEMA", "stream": "a"}', "'schema' of a SCHEMA message is missing"),
        ('{"type": "SCHEMA", "stream": "a", "schema": {"properties": [1]}}', "not objects"),
        ('{"type": "SCHEMA", "stream": "a", "schema": {"properties": {}}}', "no properties"),
        ('{"type": "SCHEMA", "stream": "a", "schema": {"type": "object"}}', "no properties"),
        (
            '{"type": "SCHEMA", "stream": "a", "schema": {"properties": {"b": {}}}, "key_properties": "b"}',
            "not a list of names",
        ),
        ('{"type": "RECORD", "stream": "a", "record": {"b": [{"c": 1, "c": 1}]}}', "'c' is given twice"),
        ('{"type": "ACTIVATE_VERSION", "stream": "a"}', "'version' of a ACTIVATE_VERSION message is missing"),
        (f'{{"type": "ACTIVATE_VERSION", "stream": "a", "version": {"9" * 5000}}}', "integer of 64 bits"),
    ],
)
def test_a_malformed_line_is_refused(line, cause):
    """The error names the line, counted from 1 with the empty ones, and what is wrong with it."""
    with fails(UnreadableInput, "Line 3 of the tap's output", cause=cause):
        list(read_messages(lines("", '{"type": "STATE", "value": 1}', line)))


def test_a_byte_that_is_no_text_is_refused():
    """A line must be UTF-8."""
    with pytest.raises(UnreadableInput, match="Line 1"):
        list(read_messages([b'{"type": "STATE", "value": "\xff"}']))


def test_numbers_of_a_state_keep_their_letters(tmp_path):
    """A state is stored and told with every digit that the tap wrote."""
    text = '{"at": 1.10, "id": 123456789012345678901234567890, "name": "ü", "none": null, "on": true}'
    _, told = run(tmp_path, schema(), f'{{"type": "STATE", "value": {text}}}')
    stored = freezeframe.open(tmp_path).tenant("acme").files.read_text("singer/state.json")
    assert (text, text + "\n") == (told, stored)
    assert isinstance(next(read_messages([b'{"type": "STATE", "value": 1}'])), StateMessage)


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        (UnreadableInput, [record(Id="1")]),
        (UnreadableInput, [schema("Other"), activate(1)]),
        (MissingColumn, [schema(key=("Code",))]),
        (NullKeyError, [schema(), record(Name="x")]),
        (NullKeyError, [schema(), record(Id=None)]),
        (UnreadableInput, [schema(Deep={}), DEEP]),
    ],
)
def test_a_message_that_does_not_fit_the_ones_before_it_is_refused(tmp_path, kind, messages):
    """A record without SCHEMA, a key that no schema or record has, a value nested beyond all measure."""
    with pytest.raises(FreezeframeError) as caught:
        run(tmp_path, *messages)
    assert kind is type(caught.value)
    assert "line" in caught.value.details
    assert freezeframe.open(tmp_path).tenants() == ()
