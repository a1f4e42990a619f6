"""Input files in parts that processes can read independently, and limits on what a file unpacks to.

Compressed or dictionary-encoded bytes can expand a lot. A reader first checks what the file's own metadata
announce (``expect``), then what it really finds, a part at a time (``count``): metadata may lie.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.errors import StorageNotShared, TooLarge, UnreadableInput
from freezeframe.nested_types import inner, parts
from freezeframe.settings import Settings
from freezeframe.storage.read_ahead import reads_of

# Below this size a high ratio is harmless.
RATIO_FREE_BYTES = 64 * 1024 * 1024
BYTES_LIMIT = "unpacked_bytes_max"
UNPACKED_PART_BYTES = 16 * 1024 * 1024
_ALL = 2**62
_OFFSET_BYTES = 4


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Limits on rows, bytes in memory and bytes per byte of the file; without arguments none.

    The ratio does not count below ``ratio_free_bytes``.
    """

    rows_max: int = _ALL
    bytes_max: int = _ALL
    ratio_max: float = math.inf
    ratio_free_bytes: int = RATIO_FREE_BYTES

    @classmethod
    def of(cls, settings: Settings, bytes_max: int | None = None) -> UnpackLimits:
        """Return the limits of files from outside; ``bytes_max`` where all of one is held in memory."""
        return cls(
            settings.unpacked_rows_max,
            min(settings.unpacked_bytes_max, _ALL if bytes_max is None else bytes_max),
            settings.unpacked_ratio_max,
        )


UNLIMITED = UnpackLimits()


class Unpacking:
    """What one file of ``size`` bytes has unpacked to so far; ``name`` is for messages."""

    def __init__(self, name: str, size: int, limits: UnpackLimits) -> None:
        self._name, self._size, self._limits = name, size, limits
        self._rows = self._bytes = 0

    def expect(self, rows: int, size: int) -> None:
        """Refuse a file whose metadata announce more than the limits."""
        limits = self._limits
        if rows > limits.rows_max:
            raise self._refusal(f"{rows:,} rows", f"{limits.rows_max:,} rows", "unpacked_rows_max")
        if size > limits.bytes_max:
            raise self._refusal(f"{size:,} bytes", f"{limits.bytes_max:,} bytes", BYTES_LIMIT)
        if size > max(limits.ratio_free_bytes, limits.ratio_max * self._size):
            found, most = f"{size / self._size:,.0f} times its size", f"{limits.ratio_max:g} times"
            raise self._refusal(found, most, "unpacked_ratio_max")

    def count(self, rows: int, size: int) -> None:
        """Count bytes that were unpacked or are about to be."""
        self._rows += rows
        self._bytes += size
        self.expect(self._rows, self._bytes)

    def decode(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows, counted by what they take without encodings, in parts of bounded size."""
        size = sum(decoded_bytes(column) for column in batch.columns)
        self.count(len(batch), size)
        rows = max(1, len(batch) * UNPACKED_PART_BYTES // max(size, UNPACKED_PART_BYTES))
        for start in range(0, len(batch), rows):
            yield batch.slice(start, rows)

    def _refusal(self, found: str, most: str, limit: str) -> TooLarge:
        return TooLarge(
            f"{self._name!r} is too large when unpacked: {found}.",
            cause=f"At most {most} are ({limit}).",
            remedy="Send the rows in several files, or ask the operator to raise the limit.",
            code="UNPACKS_TOO_LARGE",
            limit=limit,
            limit_value=getattr(self._limits, limit.removeprefix("unpacked_")),
        )


def decoded_bytes(column: pa.Array) -> int:
    """Return about how many bytes the values take once dictionaries, views and runs are undone."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        values, positions = column.dictionary, column.indices  # each value may be there many times
        try:
            lengths = pc.binary_length(values)
        except pa.ArrowNotImplementedError:  # fixed width or nested: at most all values each time
            is_plain = pa.types.is_primitive(values.type)
            return len(positions) * (values.type.bit_width // 8 if is_plain else int(values.nbytes))
        return int(pc.sum(lengths.take(positions)).as_py() or 0) + _OFFSET_BYTES * len(positions)
    if pa.types.is_run_end_encoded(kind):
        return len(column) * (decoded_bytes(column.values) if len(column) else 0)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        # A view is sixteen bytes, of which the first four are the value's length.
        lengths = np.frombuffer(column.buffers()[1], np.int32)[::4]
        return int(lengths[column.offset : column.offset + len(column)].sum(dtype=np.int64))
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        each = decoded_bytes(column.values) / max(1, len(column.values))
        return math.ceil((pc.sum(pc.list_value_length(column)).as_py() or 0) * each)
    if pa.types.is_map(kind):
        return decoded_bytes(column.keys) + decoded_bytes(column.items)
    return sum(map(decoded_bytes, inner(column))) if parts(kind) else int(column.nbytes)


PART_BYTES = 32 * 2**20
_BLOCK_BYTES = 8 * 2**20


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
        """Return the bytes of the part, to be read once."""
        return _Section(self.file, self.start, self.stop)

    def lines_before(self, block_bytes: int = _BLOCK_BYTES) -> int:
        """Return how many lines of the file end before the part; it is one of a text file."""
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
        """Return the error for a file that was written since it was divided."""
        return UnreadableInput(
            f"{str(self.file)!r} was changed while it was read.",
            cause="Its types were determined from its earlier content.",
            remedy="Read the folder again when no program writes to it.",
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
    """Divide a file into parts that begin at ``cuts``; ``end`` is its size, unless counted otherwise."""
    found = file.stat()
    end = found.st_size if end is None else end
    stops = [*cuts[1:], end]
    return tuple(
        InputPart(file, start, stop, end, found.st_size, found.st_mtime_ns)
        for start, stop in zip(cuts, stops, strict=True)
    )


def line_parts(file: Path, part_bytes: int = PART_BYTES) -> tuple[InputPart, ...]:
    """Return a file in parts of whole lines, of about ``part_bytes``."""
    cuts = [0]
    with reads_of(str(file)), file.open("rb") as content:
        end = content.seek(0, io.SEEK_END)
        while cuts[-1] + part_bytes < end:
            content.seek(cuts[-1] + part_bytes - 1)
            content.readline()
            cuts.append(content.tell())
    return divide(file, cuts if cuts[-1] < end or len(cuts) == 1 else cuts[:-1])
