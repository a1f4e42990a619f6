"""The fold of a tenant's entries."""

import pytest

from freezeframe.errors import CorruptLog, InvalidName
from freezeframe.identifiers import StreamName
from freezeframe.store.model.receipt import Counts
from freezeframe.store.tenant_log.entry import Entry, StreamChange
from freezeframe.store.tenant_log.state import TenantState, parse_checkpoint


def _entry(timestamp_ms, **versions):
    changes = tuple(StreamChange(StreamName(name), v, "{}\n", Counts()) for name, v in versions.items())
    return Entry(f"w{timestamp_ms}", timestamp_ms, changes)


def test_each_entry_moves_its_streams():
    """The state has the last table version of each stream and the newest entry."""
    state = (
        TenantState()
        .after(0, _entry(10, Account=0))
        .after(1, _entry(20, Lead=0))
        .after(2, _entry(30, Account=1))
    )

    assert dict(state.streams) == {"Account": 1, "Lead": 0}
    assert (state.version, state.timestamp_ms) == (2, 30)
    assert state.head.write_id == "w30"
    assert state.table_version(StreamName("Nobody")) == -1


@pytest.mark.parametrize("version", [0, 2, 7])
def test_a_skipped_or_repeated_table_version_is_damage(version):
    """Entries must continue each other."""
    state = TenantState().after(0, _entry(10, Account=0))

    with pytest.raises(CorruptLog):
        state.after(1, _entry(20, Account=version))


def test_commit_times_always_rise():
    """A clock that stands still or jumps back cannot make two commits of one moment."""
    state = TenantState().after(0, _entry(1_000, Account=0))

    assert [state.next_timestamp_ms(now) for now in (2_000, 1_000, 5)] == [2_000, 1_001, 1_001]


def test_a_checkpoint_holds_the_state():
    """A state read from a checkpoint has all but the head, which has been landed by then."""
    state = TenantState().after(0, _entry(10, Account=0))

    found = parse_checkpoint(state.to_checkpoint(), "0.checkpoint.json")

    assert (dict(state.streams), state.version, None) == (dict(found.streams), found.version, found.head)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"version":1,"timestamp":1,"streams":{"../x":1}}'])
def test_a_damaged_checkpoint_is_named(content):
    """What is not a checkpoint is damage; a stream name in it is checked like any other."""
    with pytest.raises((CorruptLog, InvalidName)):
        parse_checkpoint(content, "0.checkpoint.json")
