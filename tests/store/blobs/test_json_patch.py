"""JSON merge patches do what RFC 7396 says, and what is not JSON is refused both ways."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freezeframe.errors import InvalidOption, UnreadableInput
from freezeframe.store.blobs.blob_store import from_json_bytes, merge_patch, to_json_bytes

# RFC 7396, Appendix A: original, patch, result.
CASES = [
    ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
    ('{"a":"b"}', '{"a":null}', "{}"),
    ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
    ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
    ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
    ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
    ('["a","b"]', '["c","d"]', '["c","d"]'),
    ('{"a":"b"}', '["c"]', '["c"]'),
    ('{"a":"foo"}', "null", "null"),
    ('{"a":"foo"}', '"bar"', '"bar"'),
    ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
    ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
    ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
]


@pytest.mark.parametrize(("original", "patch", "result"), CASES)
def test_the_standards_own_examples(original, patch, result):
    """Each example of the standard gives its result, and neither argument is changed."""
    before, change = json.loads(original), json.loads(patch)
    assert json.loads(result) == merge_patch(before, change)
    assert (json.loads(original), json.loads(patch)) == (before, change)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "\\ud" not in json.dumps(value))


@given(values)
def test_a_value_comes_back(value):
    """Whatever JSON can say is the same after writing and reading."""
    assert value == from_json_bytes(to_json_bytes(value), "a.json")


@pytest.mark.parametrize("content", [b"", b"{", b'{"a":1,"a":2}', b"[NaN]", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused(content):
    """Cut off, a member twice, numbers that are none, no UTF-8, and nesting without end."""
    with pytest.raises(UnreadableInput):
        from_json_bytes(content, "a.json")


@pytest.mark.parametrize("value", [float("inf"), {1: 2}, {"a": {None: 1}}, b"x", {"a": object()}, [[{2: 1}]]])
def test_what_json_cannot_say_is_refused(value):
    """Keys that are not text would come back as others, so they are refused at any depth."""
    with pytest.raises(InvalidOption):
        to_json_bytes(value)
