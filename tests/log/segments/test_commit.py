"""Landing a version: who wins, and what a lost answer turns into."""

import os
import threading

import pytest

from freezeframe.errors import InvalidOption, OutcomeUnknown
from freezeframe.log.primitives.paths import log_file
from freezeframe.log.segments.commit import (
    KEPT_BYTES_MAX,
    Committed,
    Conflict,
    OwnCommit,
    Unknown,
    commit_name,
    write_commit,
)
from freezeframe.storage import FileStatus, LocalStorage, MemoryStorage

OURS = b'{"commitInfo":{"writeId":"ours"}}\n'
THEIRS = b'{"commitInfo":{"writeId":"theirs"}}\n'


@pytest.fixture(params=["local", "memory"])
def storage(request, tmp_path):
    return LocalStorage(tmp_path) if request.param == "local" else MemoryStorage()


def test_the_name_has_twenty_digits():
    """The file's name is the protocol's."""
    assert commit_name("A.snapshot", 12) == "A.snapshot/_delta_log/00000000000000000012.json"
    assert commit_name("", 0) == "_delta_log/00000000000000000000.json"


def test_the_first_wins_and_the_second_gets_the_winner(storage):
    """One writer commits; the other is handed the winning bytes, which stay as they are."""
    assert Committed(0) == write_commit(storage, "t", 0, OURS)
    assert Conflict(0, OURS) == write_commit(storage, "t", 0, THEIRS)
    assert storage.read(commit_name("t", 0)) == OURS
    assert Committed(0) == write_commit(storage, "t", 0, OURS), "as by a roll-forward, or a repeated request"


@pytest.mark.parametrize("content", [b"", b"\n", b'{"a":1}', b'{"a":\n', b"[1]\n", b"\xff\n"])
def test_a_torn_commit_never_lands(storage, content):
    """Content that readers could not parse is refused before anything is written."""
    with pytest.raises(InvalidOption):
        write_commit(storage, "t", 0, content)
    assert list(storage.list_from("t/_delta_log")) == []


def test_of_many_threads_one_wins_each_version(tmp_path):
    """Eight writers race for each of twenty versions: one acknowledgement each, and its bytes are there."""
    storage = LocalStorage(tmp_path)
    won: dict[int, list[bytes]] = {version: [] for version in range(20)}

    def write(writer):
        for version, acknowledged in won.items():
            content = b'{"commitInfo":{"writeId":"%d-%d"}}\n' % (writer, version)
            if isinstance(write_commit(storage, "t", version, content), Committed):
                acknowledged.append(content)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {version: [storage.read(commit_name("t", version))] for version in won} == won


class Forgetful(MemoryStorage):
    """It loses so many requests to create a file, and cannot say that it did."""

    def __init__(self, lost):
        super().__init__()
        self._lost = lost

    def put_if_absent(self, name, content):
        self._lost -= 1
        if self._lost >= 0:
            raise OutcomeUnknown("No answer came.")
        super().put_if_absent(name, content)


@pytest.mark.parametrize(("lost", "outcome"), [(2, Committed), (3, Unknown)])
def test_a_request_that_was_lost_is_sent_again(lost, outcome):
    """Twice; whoever knows no more then is told so."""
    storage = Forgetful(lost)
    assert isinstance(write_commit(storage, "t", 0, OURS), outcome)
    assert (lost < 3) == bool(list(storage.list_from("t/_delta_log")))


def test_a_commit_that_is_found_again_is_made_durable(tmp_path, monkeypatch):
    """Its writer may have died before it was: bytes and name are on disk when it is acknowledged."""
    storage = LocalStorage(tmp_path)
    write_commit(storage, "t", 0, OURS)
    path, synced, fsync = tmp_path / commit_name("t", 0), set(), os.fsync

    def note(handle):
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    # The second attempt finds the name taken, and writes nothing of its own that stays.
    monkeypatch.setattr(os, "fsync", note)
    assert Committed(0) == write_commit(storage, "t", 0, OURS)
    assert {path.stat().st_ino, path.parent.stat().st_ino} <= synced


# What a process has just added to a log is taken from its memory, once.


def listed(version, size, name=None):
    """The log's file as a listing tells it."""
    return log_file(FileStatus(name or f"{version:020d}.json", size, 1))


def test_a_noted_commit_is_given_once():
    """To the update that finds it listed; another version, size or kind of file is read, and a long one."""
    own = OwnCommit()
    own.note(3, b"{}\n")
    for other in (listed(2, 3), listed(4, 3), listed(3, 4), listed(3, 3, f"{3:020d}.crc")):
        assert own.take(other) is None
        own.note(3, b"{}\n")
    assert own.take(listed(3, 3)) == b"{}\n"
    assert own.take(listed(3, 3)) is None
    own.note(3, b" " * (KEPT_BYTES_MAX + 1))
    assert own.take(listed(3, KEPT_BYTES_MAX + 1)) is None
