"""A sorted index of file paths, for listing folders page by page.

A state is immutable, so its paths are sorted once; the orders of the last few states are cached.
"""

from __future__ import annotations

import bisect
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_KEPT_MAX = 64
_AFTER_SLASH = chr(ord("/") + 1)
_lock = threading.Lock()
_kept: OrderedDict[int, tuple[Mapping[str, Any], Sequence[str]]] = OrderedDict()


def sorted_paths(files: Mapping[str, Any]) -> Sequence[str]:
    """The sorted keys of an immutable mapping; the orders of the last few mappings are cached."""
    with _lock:
        found = _kept.get(id(files))
        if found is not None and found[0] is files:
            _kept.move_to_end(id(files))
            return found[1]
    paths = sorted(files)
    with _lock:
        _kept[id(files)] = (files, paths)  # referenced, so that its id() is not reused
        while len(_kept) > _KEPT_MAX:
            _kept.popitem(last=False)
    return paths


def paths_in(files: Mapping[str, Any], within: str, after: str = "", *, recursive: bool) -> Iterator[str]:
    """The paths that begin with ``within`` (empty, or a folder and its slash) and follow ``after``, in order.

    Without ``recursive`` what lies in folders below is stepped over: a folder costs one step, however much
    is in it.
    """
    paths = sorted_paths(files)
    place = max(bisect.bisect_left(paths, within), bisect.bisect_right(paths, after))
    while place < len(paths) and paths[place].startswith(within):
        below = paths[place].find("/", len(within))
        if recursive or below < 0:
            yield paths[place]
            place += 1
        else:
            place = bisect.bisect_left(paths, paths[place][:below] + _AFTER_SLASH, place)


def folders_in(files: Mapping[str, Any], within: str, *, recursive: bool) -> Iterator[str]:
    """The distinct folders directly in ``within``, or all below it; sorted unless ``recursive``."""
    paths = sorted_paths(files)
    place, seen = bisect.bisect_left(paths, within), ""
    while place < len(paths) and paths[place].startswith(within):
        path = paths[place]
        below = path.find("/", len(within))
        if below < 0:
            place += 1
        elif recursive:
            while below >= 0:
                if not seen.startswith(path[: below + 1]):
                    yield path[:below]
                below = path.find("/", below + 1)
            seen, place = path, place + 1
        else:
            yield path[:below]
            place = bisect.bisect_left(paths, path[:below] + _AFTER_SLASH, place)
