"""Deletes several files and folders as one version of the tenant."""

from __future__ import annotations

from collections.abc import Sequence

from freezeframe.errors import FileNotFound, InvalidOption
from freezeframe.identifiers import FilePath
from freezeframe.store import Tenant
from freezeframe.store.files import Files
from freezeframe.store.model.author import Author


def select_paths(files: Files, paths: Sequence[str], folders: Sequence[str]) -> list[str]:
    """The named paths and those of all files in the folders now; unknown ones are left out.

    Raises:
        InvalidName: no file can have such a path.
    """
    found = {str(FilePath(path)) for path in paths}
    for folder in folders:
        found.update(one.path for one in files.list(folder, recursive=True))
    return sorted(found)


def delete_files(tenant: Tenant, paths: Sequence[str], folders: Sequence[str], author: Author) -> list[str]:
    """Remove files, and folders with all below them; return the removed paths, folder marks included.

    Raises:
        InvalidPath: no file can have such a path.
        InvalidOption: nothing is named.
        FileNotFound: there is no such file or folder; nothing was removed.
        ConflictError: somebody changed one of the files meanwhile; nothing was removed.
    """
    known = {str(FilePath(path)) for path in paths}
    below_of = [str(FilePath(folder)) for folder in folders]
    if not (paths or folders):
        raise InvalidOption("Nothing is named.", remedy="Name at least one file or folder.")
    with tenant.job(who=author.who, message=author.message) as job:
        gone = set(known)
        for folder in below_of:
            below = [one.path for one in job.files.list(folder, recursive=True)]
            if not below:
                raise FileNotFound(f"There is no folder {folder!r}.", remedy="Check the path.", path=folder)
            gone.update(below)
        for path in sorted(gone):
            job.files.delete(path)
    return sorted(gone)
