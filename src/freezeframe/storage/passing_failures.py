"""Distinguishes transient read failures from damaged data.

An operating system error has a number: a disk, limit or permission stopped the read, and the same
call may succeed later. An error without a number comes from a parser that has read the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from freezeframe.errors import FreezeframeError
from freezeframe.storage.local import failure


def passing_failure(name: str, error: BaseException) -> FreezeframeError | None:
    """The typed error for a transient failure to read ``name``; None for damage or a missing file."""
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return None
    if isinstance(error, OSError) and error.errno is not None:
        return failure("read", name, error)
    return None


@contextmanager
def reads_of(name: str) -> Iterator[None]:
    """Convert read failures in the block to typed errors."""
    try:
        yield
    except OSError as error:
        passing = passing_failure(name, error)
        if passing is None:
            raise
        raise passing from error
