"""Several looks: in turn on a disk, side by side in a bucket."""

import threading

import pytest

from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.store.looks import look_together


def test_looks_at_a_disk_are_taken_in_turn(tmp_path):
    """By the thread that asks, in order, up to the first error."""
    storage, taken = LocalStorage(tmp_path), []

    def fails():
        raise FileNotFoundError("second")

    def note():
        taken.append(threading.current_thread())
        return len(taken)

    assert (1, 2) == look_together(storage, note, note)
    with pytest.raises(FileNotFoundError, match="second"):
        look_together(storage, note, fails, note)
    assert [threading.current_thread()] * 3 == taken


def test_looks_at_a_bucket_are_under_way_together():
    """Each waits until all have begun, which they could not in turn; the answers are in order."""
    begun = threading.Barrier(3, timeout=60)

    def look(answer):
        begun.wait()
        return answer

    assert ("a", "b", "c") == look_together(MemoryStorage(), *(lambda one=one: look(one) for one in "abc"))


def test_the_first_error_in_order_is_raised_when_all_looks_are_over():
    """A look that ends later is waited for, and the error is not the one that happened to come first."""
    over, second = [], threading.Event()

    def first():
        second.wait(60)
        over.append("first")
        raise FileNotFoundError("first")

    def other():
        second.set()
        raise PermissionError("other")

    with pytest.raises(FileNotFoundError, match="first"):
        look_together(MemoryStorage(), first, other)
    assert ["first"] == over
