"""Download of pinned jars: only missing ones, each complete and verified."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from freezeframe import progress
from freezeframe.engine.jars import repository
from freezeframe.engine.jars.jar import Jar
from freezeframe.errors import SetupError, StorageUnavailable

_DOWNLOADS = ".downloads"
_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Fetched:
    """Names of jars that were downloaded, and of those that were present."""

    folder: Path
    fetched: tuple[str, ...]
    kept: tuple[str, ...]
    bytes_fetched: int


def fetch(jars: Sequence[Jar], folder: Path, mirror: str = "") -> Fetched:
    """Download missing jars into the folder, from Maven Central or the repository at ``mirror``.

    A run that was cut off is taken up where it was. One run at a time works in a folder.

    Raises:
        SetupError: a file is not the one that was pinned; or Maven Central is to be asked without Java.
        StorageUnavailable: the repository could not be reached, or the folder could not be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            kept = tuple(jar for jar in jars if _is_right(folder / jar.file_name, jar))
            missing = [jar for jar in jars if jar not in kept]
            progress.begin("fetching", "bytes", sum(jar.size for jar in missing))
            left = [jar for jar in missing if not _take_over(jar, folder)]
            for jar, file in repository.download(left, folder / _DOWNLOADS, mirror):
                _place(jar, file, folder)
            shutil.rmtree(folder / _DOWNLOADS, ignore_errors=True)
    except OSError as error:
        raise StorageUnavailable(
            f"The jars could not be brought to {folder}.",
            cause=str(error),
            remedy="Run the call again; what came already is kept. A mirror is named by "
            "FREEZEFRAME_MAVEN_REPOSITORY, and `freezeframe spark jars --pom` is for Maven.",
        ) from error
    return Fetched(
        folder,
        tuple(jar.file_name for jar in missing),
        tuple(jar.file_name for jar in kept),
        sum(jar.size for jar in missing),
    )


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / _LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_right(file: Path, jar: Jar) -> bool:
    if not file.is_file() or file.stat().st_size != jar.size:
        return False
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == jar.sha256


def _take_over(jar: Jar, folder: Path) -> bool:
    """Move a jar of an interrupted run into place; whether there was one."""
    for file in (folder / _DOWNLOADS).rglob(jar.file_name):
        if _is_right(file, jar):
            _place(jar, file, folder)
            return True
    return False


def _place(jar: Jar, file: Path, folder: Path) -> None:
    if not _is_right(file, jar):
        file.unlink()
        raise SetupError(
            f"{jar.file_name} is not the file that was pinned; it was not kept.",
            cause=f"Its bytes have another SHA-256 than {jar.sha256}: the repository holds something else.",
            remedy="Fetch from another repository, and inform the operator of this one.",
            file=jar.file_name,
        )
    target = folder / jar.file_name
    target.unlink(missing_ok=True)
    file.replace(target)
    progress.advance(jar.size)
