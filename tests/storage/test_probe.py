"""The probe lets good storage pass and names what is wrong with bad storage."""

import errno
import os
import threading

import pytest
from obstore.store import MemoryStore

from freezeframe.errors import StorageUnavailable, StorageUnsuitable
from freezeframe.storage import LocalStorage, MemoryStorage
from freezeframe.storage.faulty import Fault, FaultyStorage, Way
from freezeframe.storage.objects import ObjectStorage
from freezeframe.storage.probe import require_atomic_create, require_atomic_create_daily


class Overwriting(MemoryStorage):
    """As object stores without conditional writes, and ``rename``, do it: the last writer wins."""

    def put_if_absent(self, name, content):
        self.replace(name, content)


class CheckThenWrite(MemoryStorage):
    """As a lock in one process does it: look first, then write; the two are not one step."""

    def __init__(self):
        super().__init__()
        self.both = threading.Barrier(2, timeout=60)

    def put_if_absent(self, name, content):
        try:
            self.read(name)
        except FileNotFoundError:
            self.both.wait()
            self.replace(name, content)
            return
        raise FileExistsError(name)


class Forgetful(MemoryStorage):
    """It acknowledges and keeps nothing of what it was given."""

    def put_if_absent(self, name, content):  # noqa: ARG002 - the protocol's signature
        super().put_if_absent(name, b"")


class WithoutLinks(MemoryStorage):
    """As a file system without hard links answers."""

    def put_if_absent(self, name, content):  # noqa: ARG002 - the protocol's signature
        raise StorageUnavailable("refused") from OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("kind", ["local", "memory", "objects", "lost answer"])
def test_good_storage_passes_and_is_left_clean(kind, tmp_path):
    """Storage with an atomic create passes, also if an answer is lost, and nothing stays behind."""
    storage = {
        "local": lambda: LocalStorage(tmp_path),
        "memory": MemoryStorage,
        "objects": lambda: ObjectStorage(MemoryStore(), "memory://bucket"),
        "lost answer": lambda: FaultyStorage(MemoryStorage(), [Fault(0, Way.FAIL_AFTER, "put_if_absent")]),
    }[kind]()
    require_atomic_create(storage, "_freezeframe")
    assert list(storage.list_from("_freezeframe")) == []


@pytest.mark.parametrize(
    ("storage", "writers", "seen"),
    [
        (Overwriting(), 8, "8 succeeded"),
        (CheckThenWrite(), 2, "2 succeeded"),
        (Forgetful(), 8, "are gone"),
        (WithoutLinks(), 8, "no hard links"),
    ],
)
def test_bad_storage_is_refused_with_what_was_seen(storage, writers, seen):
    """Storage that would lose commits is refused, and the message says what happened in the race."""
    with pytest.raises(StorageUnsuitable, match=seen):
        require_atomic_create(storage, "probe", writers=writers)


def test_a_store_is_asked_once_a_day(tmp_path):
    """A good one is remembered, a bad one is refused each time, one that cannot be written is let pass."""
    good = FaultyStorage(MemoryStorage())
    require_atomic_create_daily(good, "probe", tmp_path)
    asked = len(good.calls)
    require_atomic_create_daily(good, "probe", tmp_path)
    assert (True, asked) == (asked > 0, len(good.calls))
    (remembered,) = tmp_path.iterdir()
    os.utime(remembered, (0, 0))
    require_atomic_create_daily(good, "probe", tmp_path)
    assert len(good.calls) > asked

    for _ in range(2):
        with pytest.raises(StorageUnsuitable, match="8 succeeded"):
            require_atomic_create_daily(Overwriting(), "probe", tmp_path / "bad")
    closed = FaultyStorage(MemoryStorage(), [Fault(0, Way.FAIL_BEFORE, "put_if_absent")])
    require_atomic_create_daily(closed, "probe", tmp_path / "closed")
    assert not (tmp_path / "closed").exists()


def test_storage_that_cannot_be_written_is_unavailable():
    """A refusal for any other reason is not a verdict on the storage."""
    storage = FaultyStorage(MemoryStorage(), [Fault(0, Way.FAIL_BEFORE, "put_if_absent")])
    with pytest.raises(StorageUnavailable):
        require_atomic_create(storage, "")
