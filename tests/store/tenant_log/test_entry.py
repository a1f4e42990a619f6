"""Entries of the tenant log and the state they make."""

import hashlib
import json

import pytest

from freezeframe.errors import CorruptLog, InvalidName
from freezeframe.identifiers import StreamName
from freezeframe.store.model.receipt import Counts
from freezeframe.store.tenant_log.entry import (
    Entry,
    FileChange,
    StreamChange,
    TenantChange,
    from_signed_line,
    parse_entry,
    to_signed_line,
)
from freezeframe.store.tenant_log.state import TenantState, parse_checkpoint


def _entry(**options):
    change = StreamChange(StreamName("Account"), 3, '{"commitInfo":{}}\n', Counts(1, 2, 3, 4))
    return Entry("w1", 1_700_000_000_000, (change,), **options)


def _signed(record):
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**record, "sha256": digest}, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"kind":"commit"}', b"\xff\xfe"])
def test_a_damaged_entry_is_named(content):
    with pytest.raises(CorruptLog, match=r"00000000000000000007\.json"):
        parse_entry(content, "00000000000000000007.json")


def test_torn_entries_and_entries_of_an_unknown_kind_are_refused():
    """A file that was cut off is never half an entry, and a newer kind may mean anything."""
    for cut in (1, 40, 200):
        with pytest.raises(CorruptLog):
            parse_entry(_entry().to_bytes()[:-cut], "0.json")
    record = {**json.loads(_entry().to_bytes()), "kind": "teleport"}
    del record["sha256"]
    with pytest.raises(CorruptLog, match="teleport"):
        parse_entry(_signed(record), "0.json")


def test_a_flipped_bit_is_found():
    content = _entry(message="Sync").to_bytes()

    for place in range(len(content)):
        flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        with pytest.raises((CorruptLog, InvalidName)):
            parse_entry(flipped, "0.json")


def test_an_entry_changes_each_stream_once():
    """Two changes of one stream in an entry cannot be made, whatever the case of the names."""
    changes = [StreamChange(StreamName(name), 0, "{}\n", Counts()) for name in ("Account", "account")]

    with pytest.raises(ValueError, match="once"):
        Entry("w", 1, (*changes,))
    with pytest.raises(ValueError, match="negative"):
        Counts(inserted=-1)


def test_entries_of_the_first_format_are_still_read():
    """They know streams only, without kinds of changes beside them, and no receipt."""
    stream = {"name": "Account", "tableVersion": 0, "content": '{"commitInfo":{}}\n'}
    stream["counts"] = {"inserted": 1, "updated": 0, "unchanged": 0, "deleted": 0}
    texts = {"kind": "commit", "writeId": "w", "author": "", "message": ""}
    record = {**texts, "jobId": None, "timestamp": 5, "changes": [{"stream": stream}]}

    entry = parse_entry(_signed(record), "0.json")

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
    texts = {"job_id": "2026-11-21T04:00", "author": "ops", "message": "Sync"}
    entry = Entry("w", 1, changes, kind="external", receipt={"a": 1}, restored=0, **texts)

    assert entry == parse_entry(entry.to_bytes(), "0.json")
    assert entry.to_bytes().endswith(b"\n")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "a/../b", "a//b", ".", "a\0b"])
def test_a_file_of_an_entry_lies_below_the_tenant(path):
    with pytest.raises(ValueError, match="not a name below"):
        FileChange(path, None)
    with pytest.raises(ValueError, match="not a name below"):
        FileChange("a", path, "0" * 64)


RECORD = {"kind": "commit", "author": "Zoë", "changes": [1, {"a": None}]}


def test_what_was_written_is_read_in_any_layout():
    """Another writer may put spaces between members, or the hash before them."""
    for is_ascii in (False, True):
        record, sha256 = from_signed_line(to_signed_line(RECORD, is_ascii=is_ascii), is_ascii=is_ascii)
        assert (record, len(sha256)) == (RECORD, 64)
    record = json.loads(to_signed_line(RECORD))
    spaced = json.dumps(record).encode() + b"\n"
    first = json.dumps({"sha256": record.pop("sha256"), **record}).encode() + b"\n"
    assert from_signed_line(spaced)[0] == from_signed_line(first)[0] == RECORD


@pytest.mark.parametrize("sha256", ["", None, 0])
def test_an_empty_hash_is_none(sha256):
    line = json.dumps({**RECORD, "sha256": sha256}, separators=(",", ":")).encode() + b"\n"
    with pytest.raises(ValueError, match="SHA-256"):
        from_signed_line(line)
    with pytest.raises(KeyError):
        from_signed_line(b'{"kind":"commit"}\n')
    assert from_signed_line(b'{"kind":"commit"}\n', requires_hash=False) == ({"kind": "commit"}, "")


def _entry_of(timestamp_ms, **versions):
    changes = tuple(StreamChange(StreamName(name), v, "{}\n", Counts()) for name, v in versions.items())
    return Entry(f"w{timestamp_ms}", timestamp_ms, changes)


def test_each_entry_moves_its_streams():
    """The state has the last table version of each stream and the newest entry."""
    state = (
        TenantState()
        .after(0, _entry_of(10, Account=0))
        .after(1, _entry_of(20, Lead=0))
        .after(2, _entry_of(30, Account=1))
    )

    assert dict(state.streams) == {"Account": 1, "Lead": 0}
    assert (state.version, state.timestamp_ms) == (2, 30)
    assert state.head.write_id == "w30"
    assert state.table_version(StreamName("Nobody")) == -1


@pytest.mark.parametrize("version", [0, 2, 7])
def test_a_skipped_or_repeated_table_version_is_damage(version):
    state = TenantState().after(0, _entry_of(10, Account=0))

    with pytest.raises(CorruptLog):
        state.after(1, _entry_of(20, Account=version))


def test_commit_times_always_rise():
    """A clock that stands still or jumps back cannot make two commits of one moment."""
    state = TenantState().after(0, _entry_of(1_000, Account=0))

    assert [state.next_timestamp_ms(now) for now in (2_000, 1_000, 5)] == [2_000, 1_001, 1_001]


def test_a_checkpoint_holds_the_state():
    """A state read from a checkpoint has all but the head, which has been landed by then."""
    state = TenantState().after(0, _entry_of(10, Account=0))

    found = parse_checkpoint(state.to_checkpoint(), "0.checkpoint.json")

    assert (dict(state.streams), state.version, None) == (dict(found.streams), found.version, found.head)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"version":1,"timestamp":1,"streams":{"../x":1}}'])
def test_a_damaged_checkpoint_is_named(content):
    """What is not a checkpoint is damage; a stream name in it is checked like any other."""
    with pytest.raises((CorruptLog, InvalidName)):
        parse_checkpoint(content, "0.checkpoint.json")
