"""Arrow's memory while large log files are read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

_lock = threading.Lock()
_replaced: list[pa.MemoryPool] = []
"""Arrow's default allocator as each block found it; the first one is the process's."""


@contextmanager
def system_memory() -> Iterator[None]:
    """Within the block Arrow allocates from the system, in all threads, and gives back what is left over.

    Its default allocator retains most of what a reader's growing buffers release: for a checkpoint of a
    million files some hundred megabytes. A buffer knows its allocator, so both may be in use.
    """
    with _lock:
        _replaced.append(pa.default_memory_pool())
        pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        release_memory()
        with _lock:
            first = _replaced[0]
            _replaced.pop()
            if not _replaced:
                pa.set_memory_pool(first)


def release_memory() -> None:
    """Give back to the system what Arrow allocated from it and released."""
    pa.system_memory_pool().release_unused()
