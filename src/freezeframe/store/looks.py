"""Several looks at a storage, side by side where each request is a wait of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary

from freezeframe.storage import Storage

_LOOKS_MAX = 16
_near: WeakKeyDictionary[Storage, bool] = WeakKeyDictionary()


def look_together(storage: Storage, *looks: Callable[[], Any]) -> tuple[Any, ...]:
    """What each look gives, in order; all are over when it returns or raises.

    On a disk, where a thread costs more than a look, they are taken one after the other up to the first
    error; else all are taken, and the error is that of the first one in order that has any.
    """
    if len(looks) <= 1 or is_near(storage):
        return tuple(look() for look in looks)
    with ThreadPoolExecutor(min(_LOOKS_MAX, len(looks)), "freezeframe-look") as pool:
        taken = [pool.submit(look) for look in looks]
    return tuple(one.result() for one in taken)


def is_near(storage: Storage) -> bool:
    """Whether the storage is on a disk of this machine; it stays so, and to find out is a look itself."""
    found = _near.get(storage)
    if found is None:
        found = _near[storage] = storage.local_path("") is not None
    return found
