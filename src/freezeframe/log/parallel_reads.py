"""Several files read side by side: on an object store each one is a wait of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


def read_all(read: Callable[[str], _T], names: Sequence[str], readers_max: int) -> list[_T]:
    """What ``read`` gives for each name, in order, by up to ``readers_max`` threads; or its first error."""
    if len(names) <= 1:
        return [read(name) for name in names]
    with ThreadPoolExecutor(min(readers_max, len(names)), "freezeframe-read") as pool:
        return list(pool.map(read, names))
