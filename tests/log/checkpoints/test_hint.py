"""``_last_checkpoint``: read, checked, distrusted, and written canonically."""

import json

import pytest
from tests.log.tables import TableBuilder

from freezeframe.log.segments.hint import (
    GarbledHint,
    Hint,
    canonical_checksum,
    hint_text,
    parse_hint,
    read_hint,
)
from freezeframe.storage import MemoryStorage

GARBLED = [b"", b"{", b"[]", b"{}", b'{"version":-1}', b'{"version":"9"}', b"\xff\xfe"]
SAMPLE = (
    '{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", '
    '"k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}'
)


def test_b026_a_missing_hint_is_none_and_the_log_is_listed_from_zero():
    """Without a hint the newest checkpoint is found by listing."""
    assert read_hint(MemoryStorage(), "t/_delta_log") == (None, False)
    table = TableBuilder().commits(12).checkpoint(10)
    assert table.log().current_snapshot.segment.checkpoint_version == 10


@pytest.mark.parametrize("content", GARBLED)
def test_b027_a_garbled_hint_is_read_three_times_and_then_the_log_is_searched(content):
    """Whatever stands in the hint, the answer is the same; only time is lost."""
    table = TableBuilder().commits(12).checkpoint(10).raw("_last_checkpoint", content)
    waits = []
    log = table.log(sleep=waits.append)
    assert waits == [1.0, 1.0]
    assert log.current_snapshot.segment.checkpoint_version == 10
    assert table.live() == sorted(log.current_snapshot.files["path"].to_pylist())


def test_b028_the_checksum_of_the_protocols_sample():
    """The sample of the Delta protocol has the MD5 that it says."""
    assert canonical_checksum(json.loads(SAMPLE)) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_b028_texts_are_url_encoded_in_utf8():
    """Octets outside the unreserved ones become %XX; the order of keys does not matter."""
    left = canonical_checksum({"a": "€+~ ", "b": True, "c": None})
    assert left == canonical_checksum({"c": None, "b": True, "a": "€+~ "})
    assert left != canonical_checksum({"c": None, "b": True, "a": "€+~"})


def test_b028_a_wrong_checksum_or_a_repeated_key_is_no_hint_and_no_checksum_is_fine():
    """The checksum catches a half-overwritten hint."""
    good = hint_text(Hint(version=10, size=3))
    assert parse_hint(good.encode()).version == 10
    assert parse_hint(b'{"version":10,"size":3}').version == 10
    for bad in (good.replace('"size":3', '"size":4'), '{"version":1,"version":2}'):
        with pytest.raises(GarbledHint):
            parse_hint(bad.encode())
    assert parse_hint(good.replace('"size":3', '"size":4').encode(), verify=False).size == 4


def test_b029_version_size_and_parts_come_first_and_absent_fields_are_left_out():
    """Old readers scan for the first fields; nulls are not written."""
    text = hint_text(Hint(version=10, size=3, parts=2, tags={"a": "b"}))
    assert list(json.loads(text)) == ["version", "size", "parts", "tags", "checksum"]
    assert hint_text(Hint(version=10), with_checksum=False) == '{"version":10}'


def test_b030_long_lists_of_a_v2_checkpoint_are_left_out():
    """More than thirty sidecars or other actions do not go into the hint."""
    few, many = [{}] * 30, [{}] * 31
    hint = Hint(version=1, v2_checkpoint={"path": "x", "sidecarFiles": many, "nonFileActions": few})
    assert {"path": "x", "nonFileActions": few} == json.loads(hint_text(hint))["v2Checkpoint"]
