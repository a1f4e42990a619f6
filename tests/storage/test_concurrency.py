"""Storage calls run in sequence on a disk and concurrently in a bucket."""

import threading

import pytest

from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.read_ahead import map_concurrently, run_concurrently


def test_calls_on_a_disk_run_in_sequence(tmp_path):
    """By the thread that asks, in order, up to the first error."""
    storage, taken = LocalStorage(tmp_path), []

    def fails():
        raise FileNotFoundError("second")

    def note():
        taken.append(threading.current_thread())
        return len(taken)

    assert run_concurrently(storage, note, note) == (1, 2)
    with pytest.raises(FileNotFoundError, match="second"):
        run_concurrently(storage, note, fails, note)
    assert [threading.current_thread()] * 3 == taken


def test_calls_on_a_bucket_run_concurrently():
    """Each waits until all have begun, which they could not in turn; the answers are in order."""
    begun = threading.Barrier(3, timeout=60)

    def look(answer):
        begun.wait()
        return answer

    assert run_concurrently(MemoryStorage(), *(lambda item=item: look(item) for item in "abc")) == (
        "a",
        "b",
        "c",
    )


def test_the_first_error_in_order_is_raised_when_all_calls_have_ended():
    """A call that ends later is waited for, and the error is not the one that happened to come first."""
    over, second = [], threading.Event()

    def first():
        second.wait(60)
        over.append("first")
        raise FileNotFoundError("first")

    def other():
        second.set()
        raise PermissionError("other")

    with pytest.raises(FileNotFoundError, match="first"):
        run_concurrently(MemoryStorage(), first, other)
    assert over == ["first"]


def test_answers_keep_the_order_of_their_names():
    """Two readers that wait for each other: both read at once, and the answers are in order."""
    together = threading.Barrier(2, timeout=60)

    def read(name):
        together.wait()
        return name.upper()

    assert map_concurrently(read, ["a", "b", "c", "d"], 2) == ["A", "B", "C", "D"]
    assert map_concurrently(read, [], 2) == []


def test_the_first_error_of_a_map_is_raised():
    """A file that cannot be read is told as if it were read alone."""

    def read(name):
        raise FileNotFoundError(name)

    with pytest.raises(FileNotFoundError, match="x"):
        map_concurrently(read, ["x", "y"], 2)
