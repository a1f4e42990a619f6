"""Groups the files of a folder by stream, oldest first.

A sync names its files ``{stream}-{time}.csv`` (``Account-20200811T121507.csv``). The stream is
the name up to the last ``-``; a stream may have several files.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from freezeframe.errors import InputNotFound


def stream_files(
    path: str | os.PathLike[str], extensions: Collection[str], ignore: Collection[str] = ()
) -> dict[str, list[Path]]:
    """The files with one of these extensions (``".csv"``) by stream, in order of the stamps in their names.

    ``path`` is a folder or a single file. Files of other extensions, hidden ones, sub-folders
    and the streams in ``ignore`` are left out. Streams are in alphabetical order.

    Raises:
        InputNotFound: there is nothing at ``path``.
    """
    place = Path(path)
    if place.is_dir():
        files = [file for file in place.iterdir() if _is_input(file, extensions)]
    elif place.is_file():
        files = [place]
    else:
        raise InputNotFound(
            f"There is no folder {str(place)!r} to read from.",
            cause="A sync that found nothing to do may have written none.",
            remedy="Check INPUT_DIR, or test for the folder before reading it.",
            path=str(place),
        )
    streams: dict[str, list[Path]] = {}
    for file in sorted(files, key=lambda file: (*_stream_and_stamp(file), file.name)):
        stream, _ = _stream_and_stamp(file)
        if stream not in ignore:
            streams.setdefault(stream, []).append(file)
    return streams


def _is_input(file: Path, extensions: Collection[str]) -> bool:
    return file.is_file() and not file.name.startswith(".") and file.suffix.casefold() in extensions


def _stream_and_stamp(file: Path) -> tuple[str, str]:
    stream, dash, stamp = file.stem.rpartition("-")
    return (stream, stamp) if dash and stream else (file.stem, "")
