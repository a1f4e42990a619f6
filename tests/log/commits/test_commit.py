"""Landing a version: who wins, and what a lost answer turns into."""

import threading

import pytest

from freezeframe.errors import InvalidOption
from freezeframe.log.commits.commit import Committed, Conflict, commit_name, write_commit
from freezeframe.storage import LocalStorage, MemoryStorage

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


def test_the_same_bytes_again_are_our_own(storage):
    """A repeated commit (a roll-forward, a request sent twice) is a commit, not a conflict."""
    write_commit(storage, "t", 3, OURS)
    assert Committed(3) == write_commit(storage, "t", 3, OURS)


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
