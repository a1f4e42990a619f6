"""Paths of a tenant's files, and conflicts among them."""

from __future__ import annotations

import bisect
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from freezeframe.errors import InvalidName
from freezeframe.identifiers import FilePath, fold_path, folders_of

# A sorted index of file paths, for listing folders page by page.
#
# A state is immutable, so its paths are sorted once; the orders of the last few states are cached.

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


# Path conflicts: paths that some file systems treat as the same (pure).
#
# ``a`` and ``A`` are one file on some disks, and no path is both a file and a folder. A job's files
# must fit into its working copy on any disk. Failure mode 31.


class FileNames:
    """Index of file paths for case-insensitive conflicts; not thread-safe.

    It is kept while a job adds files, and for the next job (``SpareNames``), so that the ten-thousandth one
    costs as much as the first.
    """

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths: set[str] = set()
        self._files: dict[str, str] = {}
        self._folders: dict[str, Counter[str]] = {}
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Add a path, which ``require`` has accepted."""
        if path in self._paths:
            return
        self._paths.add(path)
        self._files[fold_path(path)] = path
        for folder in folders_of(path):
            self._folders.setdefault(fold_path(folder), Counter())[folder] += 1

    def remove(self, path: str) -> None:
        """Remove a path, and the folders that become empty."""
        if path not in self._paths:
            return
        self._paths.remove(path)
        if self._files[fold_path(path)] == path:
            del self._files[fold_path(path)]
        for folder in folders_of(path):
            spellings = self._folders[fold_path(folder)]
            spellings[folder] -= 1
            if not spellings[folder]:
                del spellings[folder]
            if not spellings:
                del self._folders[fold_path(folder)]

    def become(self, paths: AbstractSet[str]) -> None:
        """Change the index to these paths, in time proportional to the difference."""
        for path in self._paths - paths:
            self.remove(path)
        for path in paths - self._paths:
            self.add(path)

    def require(self, path: FilePath) -> None:
        """Refuse a path that conflicts with another one in the index."""
        _require_same(path, self._files.get(path.case_folded, str(path)), str(path))
        if path.case_folded in self._folders:
            raise _conflict_error(
                path, f"There is a folder of that name, {self._folder(path.case_folded)!r}."
            )
        for folder in path.folders:
            if fold_path(folder) in self._files:
                cause = f"{self._files[fold_path(folder)]!r} is a file, so it cannot be a folder."
                raise _conflict_error(path, cause)
            if fold_path(folder) in self._folders:
                _require_same(path, self._folder(fold_path(folder)), folder)

    def _folder(self, folder: str) -> str:
        return next(iter(self._folders[folder]))


class SpareNames:
    """Thread-safe pool with the path index of a tenant's last job, for reuse by the next one.

    To make them anew takes a look at each file, which a job that writes one file should not pay for.
    """

    def __init__(self) -> None:
        self._spare: list[FileNames] = []

    def take(self, paths: AbstractSet[str]) -> FileNames:
        """An index of ``paths``, for exclusive use until it is given back."""
        try:
            names = self._spare.pop()  # taken by one thread only, without a lock
        except IndexError:
            names = FileNames()
        names.become(paths)
        return names

    def give_back(self, names: FileNames) -> None:
        """Return an index to the pool, in any state."""
        self._spare[:] = [names]


def _require_same(path: FilePath, found: str, wanted: str) -> None:
    if found != wanted:
        raise _conflict_error(
            path, f"It differs from {found!r} only by case, and some file systems see no case."
        )


def _conflict_error(path: FilePath, cause: str) -> InvalidName:
    return InvalidName(
        f"The file {str(path)!r} cannot be kept.",
        cause=cause,
        remedy="Use the name that is there, or another one.",
        name=str(path),
    )
