"""The files of an input folder by stream."""

import os
import re
from collections.abc import Collection
from pathlib import Path

from freezeframe.errors import InputNotFound
from freezeframe.progress import remark
from freezeframe.storage.location import path_text

# A sync names its files ``{stream}-{time}.csv`` (``Account-20200811T121507.csv``). The stream is
# the name up to the last ``-``, if a stamp follows it; a stream may have several files.

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
    """Return the files with these extensions (``".csv"``) by stream, ordered by the stamps in their names.

    ``path`` is a folder or a single file. Files of other extensions, hidden ones, schema files, a
    catalog, sub-folders and the streams in ``ignore`` are left out. Streams are in alphabetical order.
    Numbers in stamps are compared as numbers, times as times. Files that no reader of folders takes are
    named in a remark.
    """
    # Absolute: a lazy frame is read by other processes, and when the script may have left its folder.
    location = Path(path_text(path)).absolute()
    if location.is_dir():
        visible = [file for file in location.iterdir() if file.is_file() and file.name[0] not in "._"]
        visible = [file for file in visible if not file.name.endswith(_DESCRIPTIONS)]
        files = [file for file in visible if file_extension(file) in extensions]
        others = sorted(file.name for file in visible if file_extension(file) not in _READ_SOMEHOW)
        if others:
            more = f" and {len(others) - _NAMED_MAX} more" if len(others) > _NAMED_MAX else ""
            remark(
                f"Passed over in {str(location)!r}, as no reader of folders takes such files:"
                f" {', '.join(others[:_NAMED_MAX])}{more}."
            )
    elif location.is_file():
        files = [location]
    else:
        raise InputNotFound(
            f"There is no folder {str(path)!r} to read from.",
            cause="A sync that found nothing to do may have written none.",
            remedy="Check INPUT_DIR, or test for the folder before reading it.",
            path=str(path),
        )
    streams: dict[str, list[Path]] = {}
    for file in sorted(files, key=lambda file: (stream_of(file), _moment(file), file.name)):
        stream = stream_of(file)
        if stream not in ignore:
            streams.setdefault(stream, []).append(file)
    return streams


def file_extension(file: Path) -> str:
    """Return what the name ends with, in lower case; of a packed file with what it holds (``.csv.gz``)."""
    inner, outer = Path(file.stem).suffix, file.suffix
    return f"{inner}{outer}".casefold() if outer.casefold() == ".gz" else outer.casefold()


def stream_of(file: Path) -> str:
    """Return the stream that a file's name means."""
    stream, stamp = _stream_and_stamp(file)
    return stream if stamp else _stem(file)


def _stem(file: Path) -> str:
    extension = file_extension(file)
    return file.name[: -len(extension)] if extension and extension != file.name.casefold() else file.name


def _stream_and_stamp(file: Path) -> tuple[str, str]:
    stream, _, stamp = _stem(file).rpartition("-")
    return (stream, stamp) if stream and _STAMP.fullmatch(stamp) else ("", "")


def _moment(file: Path) -> tuple[tuple[int, ...], str]:
    """Return what orders the files of a stream: numbers, and a time of day as text."""
    numbers, _, time = _stream_and_stamp(file)[1].partition("T")
    return tuple(map(int, re.findall(r"\d+", numbers))), time.rstrip("Z")
