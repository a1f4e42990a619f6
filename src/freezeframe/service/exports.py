"""Downloads: all rows of a stream as a file, and a zip of files, folders and streams.

Few batches are in memory at a time. Rows are in the order of the key, those of a large stream in the order of
its files, as in a file that the command exports.
"""

import itertools
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, cast

from freezeframe.errors import FileNotFound, InvalidOption
from freezeframe.identifiers import FilePath, StreamName
from freezeframe.log.scan import rows
from freezeframe.script.inputs.transfer import stream_pieces
from freezeframe.service.files import FOLDER_MARK
from freezeframe.service.rows.streams import Moment, snapshot_name
from freezeframe.store import Stream
from freezeframe.store.model.json_fields import FileEntry
from freezeframe.store.table.written_rows import FileKind, StreamingBuffer
from freezeframe.store.tenant import Tenant


def export(stream: Stream, kind: FileKind, moment: Moment) -> Iterator[bytes]:
    """Return all rows as a file; errors that can be known at once are raised before the first chunk."""
    chunks = _chunks(stream, kind, moment)
    first = next(chunks, b"")
    return itertools.chain([first], chunks)


def _chunks(stream: Stream, kind: FileKind, moment: Moment) -> Iterator[bytes]:
    snapshot = stream.snapshot(**moment.arguments())
    rows.require_files(snapshot)
    return stream_pieces(snapshot, kind)


_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Selection:
    """Content of a bundle: files and folders by path, streams by name (as CSV)."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for path in (*self.files, *self.folders):
            FilePath(path)
        for name in self.streams:
            StreamName(name)
        if not (self.files or self.folders or self.streams):
            raise InvalidOption("Nothing is selected.", remedy="Name at least one file, folder or stream.")


def selected_files(view: Tenant, selection: Selection) -> tuple[FileEntry, ...]:
    """Return the files of a selection by path, those in its folders included."""
    found = {path: view.files.entry(path) for path in selection.files}
    for folder in selection.folders:
        below = view.files.list(folder, recursive=True)
        if not below:
            raise FileNotFound(f"There is no folder {folder!r}.", remedy="Check the path.", path=folder)
        found.update({item.path: item for item in below})
    return tuple(entry for path, entry in sorted(found.items()) if path.rpartition("/")[2] != FOLDER_MARK)


def bundle(view: Tenant, entries: Sequence[FileEntry], streams: Sequence[str]) -> Iterator[bytes]:
    """Return the zip in pieces; only one piece of it and of one member is in memory at a time."""
    members = [(entry.path, view.files.chunks(entry.path)) for entry in entries]
    members += [(snapshot_name(name, "csv"), _chunks(view.stream(name), "csv", Moment())) for name in streams]
    return _zip(members)


def _zip(members: Sequence[tuple[str, Iterator[bytes]]]) -> Iterator[bytes]:
    sink = StreamingBuffer()
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, chunks in members:
            with bundle.open(name, "w", force_zip64=True) as member:
                for chunk in chunks:
                    member.write(chunk)
                    if sink.size >= _PIECE_BYTES:
                        yield sink.drain()
    yield sink.drain()
