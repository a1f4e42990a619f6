"""Groups the files of a folder by stream, oldest first.

A sync names its files ``{stream}-{time}.csv`` (``Account-20200811T121507.csv``). The stream is
the name up to the last ``-``, if a stamp follows it; a stream may have several files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from freezeframe.errors import InputNotFound
from freezeframe.progress import remark

CSV_EXTENSIONS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
JSON_EXTENSIONS = (".jsonl", ".ndjson", ".json")
PARQUET_EXTENSIONS = (".parquet",)

_READ_SOMEHOW = frozenset((*CSV_EXTENSIONS, *JSON_EXTENSIONS, *PARQUET_EXTENSIONS, ".arrow"))
# Files that say something of others, and have no rows.
_DESCRIPTIONS = (".snapshot.schema.json", "catalog.json")
_STAMP = re.compile(r"(?=.*[0-9])[0-9TZ_]+")
_NAMED_MAX = 5


def stream_files(
    path: str | os.PathLike[str], extensions: Collection[str], ignore: Collection[str] = ()
) -> dict[str, list[Path]]:
    """The files with one of these extensions (``".csv"``) by stream, in order of the stamps in their names.

    ``path`` is a folder or a single file. Files of other extensions, hidden ones, schema files, a
    catalog, sub-folders and the streams in ``ignore`` are left out. Streams are in alphabetical order.
    Numbers in stamps are compared as numbers, times as times. Files that no reader of folders takes are
    named in a remark.

    Raises:
        InputNotFound: there is nothing at ``path``.
    """
    place = Path(path)
    if place.is_dir():
        visible = [file for file in place.iterdir() if file.is_file() and file.name[0] not in "._"]
        visible = [file for file in visible if not file.name.endswith(_DESCRIPTIONS)]
        files = [file for file in visible if file_extension(file) in extensions]
        _remark_on_others(place, visible)
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
    for file in sorted(files, key=lambda file: (stream_of(file), _moment(file), file.name)):
        stream = stream_of(file)
        if stream not in ignore:
            streams.setdefault(stream, []).append(file)
    return streams


def file_extension(file: Path) -> str:
    """What the name ends with, in lower case; of a packed file with what it holds (``.csv.gz``)."""
    inner, outer = Path(file.stem).suffix, file.suffix
    return f"{inner}{outer}".casefold() if outer.casefold() == ".gz" else outer.casefold()


def stream_of(file: Path) -> str:
    """The stream that a file's name means."""
    stream, stamp = _stream_and_stamp(file)
    return stream if stamp else _stem(file)


def _stem(file: Path) -> str:
    extension = file_extension(file)
    return file.name[: -len(extension)] if extension and extension != file.name.casefold() else file.name


def _stream_and_stamp(file: Path) -> tuple[str, str]:
    stream, _, stamp = _stem(file).rpartition("-")
    return (stream, stamp) if stream and _STAMP.fullmatch(stamp) else ("", "")


def _moment(file: Path) -> tuple[tuple[int, ...], str]:
    """What orders the files of a stream: numbers, and a time of day as text."""
    numbers, _, time = _stream_and_stamp(file)[1].partition("T")
    return tuple(map(int, re.findall(r"\d+", numbers))), time.rstrip("Z")


def _remark_on_others(folder: Path, files: Collection[Path]) -> None:
    others = sorted(file.name for file in files if file_extension(file) not in {*_READ_SOMEHOW, ".arrow"})
    if others:
        more = f" and {len(others) - _NAMED_MAX} more" if len(others) > _NAMED_MAX else ""
        remark(
            f"Passed over in {str(folder)!r}, as no reader of folders takes such files:"
            f" {', '.join(others[:_NAMED_MAX])}{more}."
        )
