"""Which paths can lie beside each other: no two that some file system takes for one (pure).

``a`` and ``A`` are one file on some disks, and nothing is both a file and a folder. What a job
writes must be able to lie in its working copy on any disk. Failure mode 31.
"""

from __future__ import annotations

from collections.abc import Iterable

from freezeframe.errors import InvalidName
from freezeframe.identifiers import FilePath, folded, folders_of


def require_place(path: FilePath, existing: Iterable[str]) -> None:
    """Refuse a path that cannot lie beside the existing ones (which may include the path itself).

    Raises:
        InvalidName: it is a file where there is a folder or the other way round, or it differs from one
            only by case.
    """
    files = {folded(name): name for name in existing if name != str(path)}
    folders = {folded(folder): folder for name in files.values() for folder in folders_of(name)}
    _require_same(path, files.get(path.folded), str(path))
    if path.folded in folders:
        raise _refused(path, f"There is a folder of that name, {folders[path.folded]!r}.")
    for folder in path.folders:
        if folded(folder) in files:
            raise _refused(path, f"{files[folded(folder)]!r} is a file, so it cannot be a folder.")
        _require_same(path, folders.get(folded(folder)), folder)


def _require_same(path: FilePath, found: str | None, wanted: str) -> None:
    if found is not None and found != wanted:
        raise _refused(path, f"It differs from {found!r} only by case, and some file systems see no case.")


def _refused(path: FilePath, cause: str) -> InvalidName:
    return InvalidName(
        f"The file {str(path)!r} cannot be kept.",
        cause=cause,
        remedy="Use the name that is there, or another one.",
        name=str(path),
    )
