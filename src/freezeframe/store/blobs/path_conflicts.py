"""Path conflicts: paths that some file systems treat as the same (pure).

``a`` and ``A`` are one file on some disks, and no path is both a file and a folder. A job's files
must fit into its working copy on any disk. Failure mode 31.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from freezeframe.errors import InvalidName
from freezeframe.identifiers import FilePath, fold_path, folders_of


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
        """Refuse a path that conflicts with another one in the index.

        Raises:
            InvalidName: it is a file where there is a folder or the other way round, or it differs from
                one only by case.
        """
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
