"""Distinguishes transient read failures from damaged data.

The operating system gives an error number: the disk, a limit or a permission stopped the read, and the
same call may succeed later. An error without a number is a parser's: it has read the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from freezeframe.errors import FreezeframeError
from freezeframe.storage.local import failure


def passing_failure(name: str, error: BaseException) -> FreezeframeError | None:
    """The typed error for a read of ``name`` that failed; None for damage, or no file."""
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return None
    if isinstance(error, OSError) and error.errno is not None:
        return failure("read", name, error)
    return None


@contextmanager
def reads_of(name: str) -> Iterator[None]:
    """Make what stops the reads in the block a typed error.

    Raises:
        StorageUnavailable: a read failed.
    """
    try:
        yield
    except OSError as error:
        passing = passing_failure(name, error)
        if passing is None:
            raise
        raise passing from error
