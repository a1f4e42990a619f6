"""Who must not wait is told so, and nothing has happened by then."""

import os
import threading

import pytest

from freezeframe.storage import LocalStorage
from freezeframe.storage.promptness import WouldWait, about_to_wait, at_once, held, is_at_once

CALLS = {
    "list": lambda storage: storage.list_from(""),
    "list below": lambda storage: storage.list_below(""),
    "create": lambda storage: storage.put_if_absent("b", b"1"),
    "replace": lambda storage: storage.replace("a", b"2"),
    "delete": lambda storage: storage.delete("a"),
    "prune": lambda storage: storage.prune("c"),
    "read much": lambda storage: storage.read("large"),
}


@pytest.fixture
def storage(tmp_path):
    """A disk with a small and a large file."""
    made = LocalStorage(tmp_path)
    made.put_if_absent("a", b"content")
    made.put_if_absent("large", b" " * (65 * 1024))
    return made


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_disk_is_not_waited_for(storage, call):
    """Every call that may take its time is refused, and has changed nothing."""
    with pytest.raises(WouldWait), at_once():
        call(storage)
    assert not is_at_once()
    assert ["a", "large"] == [one.name for one in storage.list_from("")]
    assert b"content" == storage.read("a")


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="this system cannot read without waiting")
def test_a_small_file_in_memory_is_read_at_once_or_not_at_all(storage):
    """The same bytes as when it is waited for; where the file system cannot tell, it is refused."""
    with pytest.raises(FileNotFoundError), at_once():
        storage.read("none")
    for arguments in ((), (3,), (0, 4), (3, 100), (100,)):
        expected = storage.read("a", *arguments)
        try:
            with at_once():
                assert expected == storage.read("a", *arguments)
        except WouldWait:
            continue


def test_a_lock_that_somebody_holds_is_not_waited_for():
    """A free one is held and let go; of another thread's the attempt is given up."""
    lock = threading.Lock()
    with at_once(), held(lock):
        assert lock.locked()
    assert not lock.locked()
    with lock, pytest.raises(WouldWait), at_once(), held(lock):
        pass


def test_other_threads_may_wait():
    """It is a matter of one thread, and over when its block is left."""
    told = []
    with at_once():
        thread = threading.Thread(target=lambda: told.append(about_to_wait()))
        thread.start()
        thread.join()
    about_to_wait()
    assert [None] == told
