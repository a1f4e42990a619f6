"""A line of JSON with its own hash: what was written is read, and nothing else."""

import json

import pytest

from freezeframe.store.tenant_log.entry import from_signed_line, to_signed_line

RECORD = {"kind": "commit", "author": "Zoë", "changes": [1, {"a": None}]}


@pytest.mark.parametrize("is_ascii", [False, True])
def test_what_was_written_is_read(is_ascii):
    """With its hash."""
    line = to_signed_line(RECORD, is_ascii=is_ascii)
    record, sha256 = from_signed_line(line, is_ascii=is_ascii)
    assert record == RECORD
    assert len(sha256) == 64


def test_every_changed_byte_is_found():
    """Also one in the hash itself."""
    line = to_signed_line(RECORD)
    for place in range(len(line)):
        damaged = line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]
        with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
            from_signed_line(damaged)


def test_the_same_record_in_another_layout_has_the_same_hash():
    """Another writer may put spaces between members, or the hash before them."""
    record = json.loads(to_signed_line(RECORD))
    spaced = json.dumps(record).encode() + b"\n"
    first = json.dumps({"sha256": record.pop("sha256"), **record}).encode() + b"\n"
    assert from_signed_line(spaced)[0] == from_signed_line(first)[0] == RECORD


@pytest.mark.parametrize("sha256", ["", None, 0])
def test_an_empty_hash_is_none(sha256):
    """Where one is required, the record is refused."""
    line = json.dumps({**RECORD, "sha256": sha256}, separators=(",", ":")).encode() + b"\n"
    with pytest.raises(ValueError, match="SHA-256"):
        from_signed_line(line)
    with pytest.raises(KeyError):
        from_signed_line(b'{"kind":"commit"}\n')
    assert from_signed_line(b'{"kind":"commit"}\n', requires_hash=False) == ({"kind": "commit"}, "")
