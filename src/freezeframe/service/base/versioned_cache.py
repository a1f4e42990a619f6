"""A cache of values derived from a tenant's state, invalidated by a newer version.

A tenant's log gives the same object as its state until it has grown, so that what was made of it is known to
be true by a look at the object, whatever happened in between: a commit, an erasure, a restore of a backup.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from freezeframe.store.tenant_log.state import TenantState

_T = TypeVar("_T")


class VersionedCache(Generic[_T]):
    """LRU cache of at most ``most`` values; safe to share between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[TenantState, _T]] = OrderedDict()

    def value(self, name: Hashable, state: TenantState, make: Callable[[_T | None], _T]) -> _T:
        """The value that ``make`` derives from the state, cached; ``make`` gets that of a state it grew from.

        ``name`` is the tenant's folder, which no other tenant ever has, with all else that the value is of.
        """
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
        if found is not None and found[0] is state:
            return found[1]
        made = make(None if found is None or not _grew(found[0], state) else found[1])
        with self._lock:
            self._kept[name] = (state, made)
            self._kept.move_to_end(name)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def _grew(before: TenantState, state: TenantState) -> bool:
    """Whether commits alone lie between the two: no erasure and no restoration of a backup."""
    return before.version <= state.version and before.erased == state.erased
