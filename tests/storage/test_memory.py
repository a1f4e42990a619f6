"""The storage that fails on purpose does so where it is told, and nowhere else."""

import time

import pytest

from freezeframe.errors import InvalidOption, OutcomeUnknown, StorageUnavailable
from freezeframe.storage import MemoryStorage
from freezeframe.storage.memory import Call, Crash, Fault, FaultyStorage, Way


def test_calls_are_logged():
    """Every call is in the log, with its verb and name."""
    storage = FaultyStorage(MemoryStorage())
    storage.put_if_absent("a", b"1")
    storage.read("a")
    list(storage.list_from("f"))
    assert (Call("put_if_absent", "a"), Call("read", "a"), Call("list_from", "f")) == storage.calls


def test_a_call_that_fails_before_has_done_nothing():
    """The planned call is refused and leaves no trace; the next one works."""
    inner = MemoryStorage()
    storage = FaultyStorage(inner, [Fault(1, Way.FAIL_BEFORE)])
    storage.put_if_absent("a", b"1")
    with pytest.raises(StorageUnavailable):
        storage.put_if_absent("b", b"2")
    with pytest.raises(FileNotFoundError):
        inner.read("b")
    storage.put_if_absent("b", b"3")
    assert inner.read("b") == b"3"


def test_a_lost_answer_has_done_its_work():
    """The planned write happens and its outcome is unknown; a lost read is only unavailable."""
    inner = MemoryStorage()
    storage = FaultyStorage(
        inner, [Fault(0, Way.FAIL_AFTER, "put_if_absent"), Fault(0, Way.FAIL_AFTER, "read")]
    )
    with pytest.raises(OutcomeUnknown):
        storage.put_if_absent("a", b"1")
    with pytest.raises(StorageUnavailable):
        storage.read("a")
    assert inner.read("a") == b"1"


@pytest.mark.parametrize(("way", "there"), [(Way.CUT_BEFORE, False), (Way.CUT_AFTER, True)])
def test_a_crash_ends_everything(way, there):
    """A cut is no error that code could handle, and nothing works after it."""
    inner = MemoryStorage()
    storage = FaultyStorage(inner, [Fault(0, way, "replace")])
    with pytest.raises(Crash):
        storage.replace("a", b"1")
    with pytest.raises(Crash):
        storage.read("a")
    assert there == (["a"] == [status.name for status in inner.list_from("")])
    assert not issubclass(Crash, Exception)


def test_a_delay_only_takes_time():
    """A delayed call answers as always, later."""
    storage = FaultyStorage(MemoryStorage(), [Fault(0, Way.DELAY, seconds=0.05)])
    started = time.monotonic()
    storage.put_if_absent("a", b"1")
    assert time.monotonic() - started >= 0.05
    assert storage.read("a") == b"1"


@pytest.mark.parametrize("wrong", [{"call": -1}, {"call": 0, "verb": "rename"}, {"call": 0, "seconds": -1.0}])
def test_a_plan_that_can_never_happen_is_refused(wrong):
    """A fault at no call, of no verb or of negative time is a mistake in the plan."""
    with pytest.raises(InvalidOption):
        Fault(way=Way.FAIL_BEFORE, **wrong)
