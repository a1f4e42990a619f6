"""Splits input files into parts that processes can read independently."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from freezeframe.errors import StorageNotShared, UnreadableInput
from freezeframe.script.formats.csv_lines import BYTE_ORDER_MARK, find_delimiter, is_escaped
from freezeframe.storage.read_ahead import reads_of

PART_BYTES = 32 * 2**20
_BLOCK_BYTES = 8 * 2**20
_QUOTE, _NEWLINE = b'"'[0], b"\n"[0]
_Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class InputPart:
    """A half-open range of a file: bytes of text, or row groups of Parquet.

    ``end`` is where the file ends, in the same unit; ``size`` and ``modified_ns`` are the file's.
    """

    file: Path
    start: int
    stop: int
    end: int
    size: int
    modified_ns: int

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the file."""
        return self.start == 0 and self.is_last

    @property
    def is_last(self) -> bool:
        """Whether the file ends with it."""
        return self.stop == self.end

    def section(self) -> io.RawIOBase:
        """The bytes of the part, to be read once."""
        return _Section(self.file, self.start, self.stop)

    def lines_before(self, block_bytes: int = _BLOCK_BYTES) -> int:
        """How many lines of the file end before the part; it is one of a text file."""
        with self.file.open("rb") as content:
            sizes = [block_bytes] * (self.start // block_bytes) + [self.start % block_bytes]
            return sum(content.read(size).count(b"\n") for size in sizes)

    def require_unchanged(self) -> None:
        """Check that the file is still the one that was divided, also in another process."""
        try:
            found = self.file.stat()
        except FileNotFoundError as error:
            raise StorageNotShared(
                f"There is no file {str(self.file)!r} where it is to be read.",
                cause="It was removed, or a worker of Spark does not see the folder that the script reads.",
                remedy="Use a folder that the script and all workers see under the same path.",
                file=str(self.file),
            ) from error
        if (found.st_size, found.st_mtime_ns) != (self.size, self.modified_ns):
            raise self.changed()

    def changed(self) -> UnreadableInput:
        """The error for a file that was written since it was divided."""
        return UnreadableInput(
            f"{str(self.file)!r} was changed while it was read.",
            cause="Its types were found in what it held before.",
            remedy="Read the folder again when nothing writes into it any more.",
            file=str(self.file),
        )


class _Section(io.RawIOBase):
    def __init__(self, file: Path, start: int, stop: int) -> None:
        self._content = file.open("rb", buffering=0)
        self._content.seek(start)
        self._left = stop - start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._content.readinto(memoryview(buffer)[: self._left])
        self._left -= count
        return count

    def close(self) -> None:
        self._content.close()
        super().close()


def divide(file: Path, cuts: list[int], end: int | None = None) -> tuple[InputPart, ...]:
    """The file in parts that begin at ``cuts``; ``end`` is its size, unless it is counted otherwise."""
    found = file.stat()
    end = found.st_size if end is None else end
    stops = [*cuts[1:], end]
    return tuple(
        InputPart(file, start, stop, end, found.st_size, found.st_mtime_ns)
        for start, stop in zip(cuts, stops, strict=True)
    )


def line_parts(file: Path, part_bytes: int = PART_BYTES) -> tuple[InputPart, ...]:
    """A file in parts of whole lines, of about ``part_bytes``."""
    cuts = [0]
    with reads_of(str(file)), file.open("rb") as content:
        end = content.seek(0, io.SEEK_END)
        while cuts[-1] + part_bytes < end:
            content.seek(cuts[-1] + part_bytes - 1)
            content.readline()
            cuts.append(content.tell())
    return divide(file, cuts if cuts[-1] < end or len(cuts) == 1 else cuts[:-1])


def csv_parts(
    file: Path, part_bytes: int = PART_BYTES, block_bytes: int = _BLOCK_BYTES, escape: str = ""
) -> tuple[InputPart, ...]:
    """A CSV file in parts of whole rows, of about ``part_bytes``; ``block_bytes`` are read at once.

    It is one part if a quote stands within a field that is not quoted: then only who reads it from its
    beginning knows which newlines end a row. So it is if it is packed or has the escape character.
    """
    with reads_of(str(file)):
        is_one = file.stat().st_size <= part_bytes or file.suffix.casefold() == ".gz"
        is_one = is_one or is_escaped(file, escape)
        return divide(file, [0] if is_one else _csv_cuts(file, part_bytes, block_bytes))


def _csv_cuts(file: Path, part_bytes: int, block_bytes: int) -> list[int]:
    cuts, is_quoted = [0], False
    # Bytes allowed before an opening quote; a quote before a quote escapes it.
    before_quote = np.frombuffer(find_delimiter(file) + b'\r\n"', np.uint8)
    for place, block, before in _blocks(file, block_bytes):
        quotes = np.flatnonzero(block == _QUOTE)
        openings = quotes[int(is_quoted) :: 2]
        if not np.isin(np.where(openings > 0, block[openings - 1], before), before_quote).all():
            return [0]
        while (wanted := cuts[-1] + part_bytes - place) < len(block):
            cut = _row_end(block, max(0, wanted), quotes, is_quoted=is_quoted)
            if cut is None:
                break
            cuts.append(place + cut)
        is_quoted ^= len(quotes) % 2 == 1
    return cuts if cuts[-1] < file.stat().st_size or len(cuts) == 1 else cuts[:-1]


def _row_end(block: npt.NDArray[np.uint8], begin: int, quotes: _Places, *, is_quoted: bool) -> int | None:
    """Behind the first newline from ``begin`` on that is not part of a quoted field."""
    newlines = begin + np.flatnonzero(block[begin:] == _NEWLINE)
    outside = newlines[(np.searchsorted(quotes, newlines) + is_quoted) % 2 == 0]
    return int(outside[0]) + 1 if len(outside) else None


def _blocks(file: Path, block_bytes: int) -> Iterator[tuple[int, npt.NDArray[np.uint8], int]]:
    """Each block with its place in the file and the byte before it; a byte order mark counts as newlines."""
    place, before = 0, _NEWLINE
    with file.open("rb") as content:
        while block := content.read(block_bytes):
            if place == 0 and block.startswith(BYTE_ORDER_MARK):
                block = b"\n" * len(BYTE_ORDER_MARK) + block[len(BYTE_ORDER_MARK) :]
            yield place, np.frombuffer(block, np.uint8), before
            place, before = place + len(block), block[-1]
