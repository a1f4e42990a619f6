"""Reading side by side changes neither the order nor the error."""

import threading

import pytest

from freezeframe.log.parallel_reads import read_all


def test_answers_keep_the_order_of_their_names():
    """Two readers that wait for each other: both read at once, and the answers are in order."""
    together = threading.Barrier(2, timeout=60)

    def read(name):
        together.wait()
        return name.upper()

    assert ["A", "B", "C", "D"] == read_all(read, ["a", "b", "c", "d"], 2)
    assert [] == read_all(read, [], 2)


def test_the_first_error_is_raised():
    """A file that cannot be read is told as if it were read alone."""

    def read(name):
        raise FileNotFoundError(name)

    with pytest.raises(FileNotFoundError, match="x"):
        read_all(read, ["x", "y"], 2)
