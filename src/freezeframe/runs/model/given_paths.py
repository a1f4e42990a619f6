"""Checks that files and folders named by the caller exist."""

from __future__ import annotations

from pathlib import Path

from freezeframe.errors import InputNotFound


def given_file(path: Path, what: str) -> Path:
    """The file's absolute path; ``what`` is what a message calls it.

    Raises:
        InputNotFound: there is no such file.
    """
    if not path.is_file():
        raise _absent(path, "file", what)
    return path.absolute()


def given_folder(path: Path, what: str) -> Path:
    """The folder's absolute path; ``what`` is what a message calls it.

    Raises:
        InputNotFound: there is no such folder.
    """
    if not path.is_dir():
        raise _absent(path, "folder", what)
    return path.absolute()


def _absent(path: Path, kind: str, what: str) -> InputNotFound:
    seen = "It is something else." if path.exists() else f"It was looked for from {Path.cwd()}."
    return InputNotFound(
        f"There is no {kind} {path}, which is named as the {what}.",
        cause=seen,
        remedy=f"Name a {kind} that is there.",
        path=str(path),
    )
