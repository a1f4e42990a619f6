"""What a process has just added to a log is taken from its memory, once."""

import pytest

from freezeframe.log.primitives.paths import log_file
from freezeframe.log.segments.commit import KEPT_BYTES_MAX, OwnCommit
from freezeframe.storage import FileStatus


def listed(version, size, name=None):
    """The log's file as a listing tells it."""
    return log_file(FileStatus(name or f"{version:020d}.json", size, 1))


def test_a_noted_commit_is_given_once():
    """The update that finds it listed takes it; nothing is kept after that."""
    own = OwnCommit()
    own.note(3, b"{}\n")
    assert own.take(listed(3, 3)) == b"{}\n"
    assert own.take(listed(3, 3)) is None


@pytest.mark.parametrize(
    "file",
    [listed(2, 3), listed(4, 3), listed(3, 4), listed(3, 3, f"{3:020d}.crc")],
    ids=["before", "after", "other size", "checksum"],
)
def test_another_file_is_read(file):
    """Another version, another size under the version, or what is not a commit at all."""
    own = OwnCommit()
    own.note(3, b"{}\n")
    assert own.take(file) is None


def test_a_long_commit_is_not_kept():
    """Many logs may be open; what is long is read back when it is needed."""
    own = OwnCommit()
    own.note(3, b" " * (KEPT_BYTES_MAX + 1))
    assert own.take(listed(3, KEPT_BYTES_MAX + 1)) is None
