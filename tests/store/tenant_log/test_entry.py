"""Entries of the tenant log and the state they make."""

import hashlib
import json

import pytest

from freezeframe.errors import CorruptLog, InvalidName
from freezeframe.identifiers import StreamName
from freezeframe.store.model.receipt import Counts
from freezeframe.store.tenant_log.entry import Entry, FileChange, StreamChange, TenantChange, parse_entry


def _entry(**options):
    change = StreamChange(StreamName("Account"), 3, '{"commitInfo":{}}\n', Counts(1, 2, 3, 4))
    return Entry("w1", 1_700_000_000_000, (change,), **options)


def test_an_entry_comes_back_as_it_was():
    """Bytes and value are the same thing twice."""
    entry = _entry(job_id="2026-11-21T04:00", author="ops", message="Sync", restored=0)

    assert entry == parse_entry(entry.to_bytes(), "0.json")
    assert entry.to_bytes().endswith(b"\n")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"kind":"commit"}', b"\xff\xfe"])
def test_a_damaged_entry_is_named(content):
    """What is not a whole entry is damage, never an empty entry."""
    with pytest.raises(CorruptLog, match=r"00000000000000000007\.json"):
        parse_entry(content, "00000000000000000007.json")


def test_an_entry_of_an_unknown_kind_is_refused():
    """A newer kind may mean anything, so it is not passed over."""
    record = {**json.loads(_entry().to_bytes()), "kind": "teleport"}
    del record["sha256"]
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    signed = json.dumps({**record, "sha256": hashlib.sha256(text.encode()).hexdigest()})

    with pytest.raises(CorruptLog, match="teleport"):
        parse_entry(signed.encode() + b"\n", "0.json")


def test_a_flipped_bit_is_found():
    """No byte of an entry can change unnoticed."""
    content = _entry(message="Sync").to_bytes()

    for place in range(len(content)):
        flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        with pytest.raises((CorruptLog, InvalidName)):
            parse_entry(flipped, "0.json")


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_torn_entry_is_damage(cut):
    """A file that was cut off is never half an entry."""
    with pytest.raises(CorruptLog):
        parse_entry(_entry().to_bytes()[:-cut], "0.json")


def test_an_entry_changes_each_stream_once():
    """Two changes of one stream in an entry cannot be made, whatever the case of the names."""
    one, other = (StreamChange(StreamName(name), 0, "{}\n", Counts()) for name in ("Account", "account"))

    with pytest.raises(ValueError, match="once"):
        Entry("w", 1, (one, other))


def test_counts_cannot_be_negative():
    """A negative count is a mistake of ours and never stored."""
    with pytest.raises(ValueError, match="negative"):
        Counts(inserted=-1)


def test_entries_of_the_first_format_are_still_read():
    """They know streams only, without kinds of changes beside them, and no receipt."""
    stream = {"name": "Account", "tableVersion": 0, "content": '{"commitInfo":{}}\n'}
    counts = {"inserted": 1, "updated": 0, "unchanged": 0, "deleted": 0}
    record = {
        "kind": "commit",
        "writeId": "w",
        "jobId": None,
        "timestamp": 5,
        "author": "",
        "message": "",
        "changes": [{"stream": {**stream, "counts": counts}}],
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    signed = {**record, "sha256": hashlib.sha256(text.encode()).hexdigest()}

    entry = parse_entry(json.dumps(signed, separators=(",", ":")).encode() + b"\n", "0.json")

    assert (StreamChange(StreamName("Account"), 0, stream["content"], Counts(1)),) == entry.changes
    assert (entry.receipt, entry.files, entry.restored, entry.author) == (None, (), None, "")


def test_every_kind_of_change_comes_back_as_it_was():
    """Streams held elsewhere, files there and gone, and all that belongs to the tenant."""
    changes = (
        StreamChange(StreamName("Account"), 3, "", Counts(), sha256="0" * 64),
        StreamChange(StreamName("Lead"), 7, "", Counts(), is_external=True),
        FileChange("a/b.json", "w/1", "f" * 64, 3, sealed=True),
        FileChange("gone", None),
        TenantChange({"t": 1, "u": None}, {"keepDays": 1}, ("R",), ("D",), ("w2",), 4, ("j/1",)),
    )
    entry = Entry("w", 1, changes, kind="external", receipt={"a": 1})

    assert entry == parse_entry(entry.to_bytes(), "0.json")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "a/../b", "a//b", ".", "a\0b"])
def test_a_file_of_an_entry_lies_below_the_tenant(path):
    """A forged entry cannot name anything else."""
    with pytest.raises(ValueError, match="not a name below"):
        FileChange(path, None)
    with pytest.raises(ValueError, match="not a name below"):
        FileChange("a", path, "0" * 64)
