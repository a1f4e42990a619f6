"""Files that are fetched side by side before they are asked for."""

import threading

import pytest

from freezeframe.errors import StorageUnavailable
from freezeframe.storage import LocalStorage, MemoryStorage, read_ahead
from freezeframe.storage.memory import FaultyStorage
from freezeframe.storage.read_ahead import ReadAhead


def reads(storage):
    return [call.name for call in storage.calls if call.verb == "read"]


def filled(storage):
    for name in "abc":
        storage.put_if_absent(name, f"content of {name}".encode())
    return FaultyStorage(storage)


def test_a_fetched_file_is_read_once():
    """The first read of all of it gives it away; a part of it does not."""
    storage = filled(MemoryStorage())
    ahead = ReadAhead(storage)
    ahead.fetch([("a", 12), ("b", 12)])
    assert sorted(reads(storage)) == ["a", "b"]
    assert ahead.read("a", 2, 3) == b"nte"
    assert ahead.read("a", 0, 100) == b"content of a"
    assert ahead.read("b") == b"content of b"
    assert sorted(reads(storage)) == ["a", "b"]
    assert ahead.read("b") == b"content of b"
    assert sorted(reads(storage)) == ["a", "b", "b"]


def test_all_are_fetched_at_once():
    """Each waits for the others: one after the other they would wait for ever."""
    barrier = threading.Barrier(3)

    class Together(MemoryStorage):
        def read(self, name, offset=0, length=None):
            barrier.wait(20)
            return super().read(name, offset, length)

    storage = Together()
    filled(storage)
    ReadAhead(storage).fetch([(name, 12) for name in "abc"])


def test_nothing_is_fetched_from_a_local_disk(tmp_path):
    """There a read is quicker than a thread."""

    class Unread(LocalStorage):
        def read(self, name, *_):
            raise AssertionError(name)

    storage = Unread(tmp_path)
    filled(storage)
    ReadAhead(storage).fetch([("a", 12), ("b", 12)])


def test_what_cannot_be_fetched_fails_where_it_is_read():
    """A missing file and a storage that fails are told to the one who needs the file."""

    class Away(MemoryStorage):
        def read(self, name, offset=0, length=None):
            if name == "b":
                raise StorageUnavailable("It is away.", remedy="Wait.")
            return super().read(name, offset, length)

    ahead = ReadAhead(filled(Away()))
    ahead.fetch([("a", 12), ("b", 12), ("z", 12)])
    assert ahead.read("a") == b"content of a"
    with pytest.raises(StorageUnavailable):
        ahead.read("b")
    with pytest.raises(FileNotFoundError):
        ahead.read("z")


def test_what_does_not_fit_is_left(monkeypatch):
    """Memory is bounded by what is held and not yet read."""
    monkeypatch.setattr(read_ahead, "HELD_BYTES_MAX", 30)
    storage = filled(MemoryStorage())
    ahead = ReadAhead(storage)
    ahead.fetch([("a", 12), ("b", 12), ("c", 12)])
    assert sorted(reads(storage)) == ["a", "b"]
    ahead.forget()
    ahead.fetch([("b", 12), ("c", 12)])
    assert sorted(reads(storage)) == ["a", "b", "b", "c"]
