"""Moves a folder with all files below it as one version of the tenant."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from freezeframe.errors import AlreadyExists, FileNotFound, InvalidOption
from freezeframe.identifiers import FilePath, fold_path
from freezeframe.store import Tenant
from freezeframe.store.files import Files
from freezeframe.store.model.update_options import Author


@dataclass(frozen=True, slots=True)
class FolderMove:
    """Which folder moves, and its new path; the two differ, and neither lies in the other's place."""

    source: str
    target: str

    def __post_init__(self) -> None:
        FilePath(self.source)
        FilePath(self.target)
        if self.source == self.target:
            raise InvalidOption("That is the folder's path already.", remedy="Name another path.")
        if self.target.startswith(f"{self.source}/"):
            raise InvalidOption(
                f"The folder {self.source!r} cannot be moved into itself.", remedy="Name another path."
            )

    @property
    def is_respelling(self) -> bool:
        """Whether the paths differ only by upper and lower case."""
        return fold_path(self.source) == fold_path(self.target)


def move_folder(tenant: Tenant, move: FolderMove, author: Author) -> int:
    """Move the folder with all that is below it, in one version; return how many files moved.

    Marks of empty folders move along. Sealed files are sealed anew, bound to their new paths.
    """
    with tenant.job(who=author.who, message=author.message) as job:
        below = _below(job.files, move.source)
        if not below:
            raise FileNotFound(
                f"There is no folder {move.source!r}.", remedy="Check the path.", path=move.source
            )
        if _below(job.files, move.target):
            raise AlreadyExists(
                f"There is a folder {move.target!r} already.", remedy="Use another path, or move its files."
            )
        source = move.source
        if move.is_respelling:
            # Names that differ in capitals alone cannot lie beside each other, not even half-way.
            source = f"{move.target}-{uuid.uuid4().hex}"
            _move_all(job.files, below, move.source, source)
        _move_all(job.files, below, source, move.target)
    return len(below)


def _below(files: Files, folder: str) -> list[str]:
    """The paths of all files below a folder, as seen from it."""
    return [item.path.removeprefix(f"{folder}/") for item in files.list(folder, recursive=True)]


def _move_all(files: Files, below: list[str], source: str, target: str) -> None:
    for path in below:
        files.move(f"{source}/{path}", f"{target}/{path}")
