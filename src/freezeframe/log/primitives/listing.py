"""Files of a log's folder: their listing, their reading, their fingerprints."""

from __future__ import annotations

import io
import itertools
import os
import re
import stat
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.primitives.arrow import Ints, to_flags
from freezeframe.log.primitives.paths import (
    HINT_NAME,
    STATE_SUFFIX,
    Kind,
    LogFile,
    commit_name,
    log_file,
    version_prefix,
)
from freezeframe.storage import FileStatus, Storage
from freezeframe.storage.base import Readable
from freezeframe.storage.read_ahead import map_concurrently

# Lists a log folder from a version on, and selects files by kind.
#
# Pure functions over listed names, except ``list_log`` and ``find_checkpoint_before``, which list the
# storage.

CHECKPOINT_WINDOW_VERSIONS = 1000
LISTINGS_MAX = 4

_AFTER_VERSIONS = ":"  # the letter after 9
_KEPT_EMPTY = frozenset({Kind.COMMIT, Kind.CHECKSUM})
_COMMIT_NAME = re.compile(r"\d{20}\.json")


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """One complete checkpoint: its files in the order of their parts."""

    version: int
    files: tuple[LogFile, ...]

    @property
    def size(self) -> int:
        """The total size in bytes."""
        return sum(file.size for file in self.files)

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """Sort key of checkpoints, best last: version, format, parts, name (section "Checkpoints")."""
        first = self.files[0]
        formats = {Kind.CHECKPOINT: 0, Kind.CHECKPOINT_PART: 1, Kind.V2_CHECKPOINT: 2}
        return (self.version, formats[first.kind], first.meaning.parts, first.name)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a log from one version on, by kind, in the order of their names."""

    commits: tuple[LogFile, ...] = ()
    compacted: tuple[LogFile, ...] = ()
    checkpoint_files: tuple[LogFile, ...] = ()
    checksums: tuple[LogFile, ...] = ()
    states: tuple[LogFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the listing has neither commits nor checkpoints."""
        return not self.commits and not self.checkpoint_files


def list_log(
    storage: Storage, folder: str, start_version: int = 0, end_version: int | None = None
) -> Iterator[FileStatus]:
    """List the files from ``start_version`` to ``end_version`` (None: all), in the order of their names.

    The listing ends after the versions' names: hint and sidecars, which sort later, are left out.

    Seed: ``listFrom``. Includes foreign names; an absent folder is empty.
    """
    start = version_prefix(max(0, start_version))
    end = _AFTER_VERSIONS if end_version is None else version_prefix(end_version + 1)

    def listed() -> list[FileStatus]:
        return list(itertools.takewhile(lambda item: item.name < end, storage.list_from(folder, start)))

    found = listed()
    for _ in range(LISTINGS_MAX - 1):
        commits = [int(status.name[:20]) for status in found if _COMMIT_NAME.fullmatch(status.name)]
        if not commits or commits[-1] - commits[0] + 1 == len(commits):
            break
        # A listing is not atomic: of two commits during it, it may include only the later one. The next
        # listing is certain to include the earlier one.
        found = listed()
    return iter(found)


def sort_listing(statuses: Iterable[FileStatus], version_to_load: int | None = None) -> Listing:
    """Return the listed files by kind, without those above ``version_to_load``.

    A compacted file counts by its last version. Empty checkpoints and compacted files are left out:
    their writer crashed or had no actions. Empty commits are included, because the version exists.
    """
    found: dict[Kind, list[LogFile]] = defaultdict(list)
    for status in statuses:
        file = log_file(status)
        if file is None:
            continue
        if version_to_load is not None and file.version > version_to_load:
            if file.meaning.start > version_to_load:
                break  # names are sorted: all following ones start later
            continue
        if file.size > 0 or file.kind in _KEPT_EMPTY:
            found[Kind.CHECKPOINT if file.kind.is_checkpoint else file.kind].append(file)
    return Listing(
        commits=tuple(found[Kind.COMMIT]),
        compacted=tuple(found[Kind.COMPACTED]),
        checkpoint_files=tuple(found[Kind.CHECKPOINT]),
        checksums=tuple(found[Kind.CHECKSUM]),
        states=tuple(found[Kind.STATE]),
    )


def complete_checkpoints(files: Iterable[LogFile]) -> list[CheckpointFiles]:
    """Return the complete checkpoints, worst first (protocol, section "Checkpoints")."""
    found: list[CheckpointFiles] = []
    parts: dict[tuple[int, int], dict[int, LogFile]] = defaultdict(dict)
    for file in files:
        if file.kind is Kind.CHECKPOINT_PART:
            parts[file.version, file.meaning.parts][file.meaning.part] = file
        elif file.kind.is_checkpoint:
            found.append(CheckpointFiles(file.version, (file,)))
    for (version, count), by_part in parts.items():
        if len(by_part) == count:
            found.append(CheckpointFiles(version, tuple(by_part[part] for part in sorted(by_part))))
    return sorted(found, key=lambda checkpoint: checkpoint.rank)


def newest_checkpoint(files: Iterable[LogFile], below: int | None = None) -> CheckpointFiles | None:
    """Return the best complete checkpoint, strictly below a version if one is given."""
    found = [
        checkpoint
        for checkpoint in complete_checkpoints(files)
        if below is None or checkpoint.version < below
    ]
    return found[-1] if found else None


def find_checkpoint_before(storage: Storage, folder: str, version: int) -> CheckpointFiles | None:
    """Return the newest complete checkpoint strictly below ``version``, or ``None``.

    The log is searched backwards in windows of a thousand versions, then of two thousand, and so on:
    a long log with a recent checkpoint costs one short listing, one without any costs few, each of which
    reads the whole folder on a disk. A negative version searches the whole log.
    """
    if version < 0:
        return newest_checkpoint(sort_listing(list_log(storage, folder)).checkpoint_files)
    end, window = version, CHECKPOINT_WINDOW_VERSIONS
    while end > 0:
        start = max(0, end - window)
        listing = sort_listing(list_log(storage, folder, start, end - 1))
        found = newest_checkpoint(listing.checkpoint_files, below=version)
        if found is not None:
            return found
        end, window = start, 2 * window
    return None


def choose_compacted(
    compacted: Iterable[LogFile], after_version: int, latest_version: int
) -> tuple[LogFile, ...]:
    """Select compacted files in place of commits, greedily in name order (section "Log Compaction Files").

    A file is selected if it starts after all selected ones and ends within the segment; among files
    with the same start the shortest comes first.
    """
    chosen: list[LogFile] = []
    highest = after_version
    for file in sorted(compacted, key=lambda item: item.name):
        if file.meaning.start > highest and file.version <= latest_version:
            chosen.append(file)
            highest = file.version
    return tuple(chosen)


# A listing kept up to date on a local disk, where listing a folder takes as long as it has names.

LOOKED_UP_COMMITS_MAX = 16
"""After so many new commits the folder is listed again, to find checkpoints that no hint names."""


class WatchedLog:
    """The files of one log from a version on; an update looks at the names that it knows.

    A commit follows the last one under a name that is known before it exists. The folder is listed where
    anything else may have changed: a known file, the hint, or the folder without a new commit. On a storage
    that is not a local disk every update lists.
    """

    def __init__(self) -> None:
        self._known: tuple[FileStatus, ...] = ()
        self._start = -1
        self._marks: tuple[object, object] | None = None
        self._looked_up = 0

    def list_from(self, storage: Storage, folder: str, start: int) -> tuple[FileStatus, ...]:
        """List the files of ``folder`` from version ``start`` on, as ``list_log`` does."""
        path = storage.local_path(folder)
        marks = None if path is None else (_mark(path), _mark(path / HINT_NAME))
        if path is not None and marks is not None and self._marks is not None and start == self._start:
            found = self._look_up(path, marks, self._marks)
            if found is not None:
                self._known = found
                return found
        self._known = tuple(list_log(storage, folder, start))
        self._start, self._marks, self._looked_up = start, marks, 0
        return self._known

    def _look_up(
        self, path: Path, marks: tuple[object, object], before: tuple[object, object]
    ) -> tuple[FileStatus, ...] | None:
        """Return the known files and the commits after them; None where the folder has to be listed."""
        commits = [status.name for status in self._known if _COMMIT_NAME.fullmatch(status.name)]
        lasting = (known for known in self._known if not known.name.endswith(STATE_SUFFIX))
        is_changed = marks[1] != before[1] or any(_status(path, known.name) != known for known in lasting)
        if not commits or is_changed:
            return None
        added: list[FileStatus] = []
        while status := _status(path, commit_name(int(commits[-1][:20]) + 1 + len(added))):
            added.append(status)
        self._looked_up += len(added)
        if self._looked_up > LOOKED_UP_COMMITS_MAX or (not added and marks[0] != before[0]):
            return None
        return tuple(sorted((*self._known, *added), key=lambda status: status.name)) if added else self._known


def _mark(path: Path) -> object:
    """Return a value that changes when the file, or the names in the folder, change; None if absent."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _status(folder: Path, name: str) -> FileStatus | None:
    try:
        found = os.lstat(f"{folder}/{name}")
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return FileStatus(name, found.st_size, found.st_mtime_ns // 1_000_000)


_READERS_MAX = 16
_GAP_BYTES_MAX = 64 << 10
_RANGE_BYTES_MAX = 8 << 20


class StoredFile(io.RawIOBase):
    """Read-only, seekable file object over a stored file of known size."""

    def __init__(self, storage: Readable, name: str, size: int) -> None:
        super().__init__()
        self._storage = storage
        self._name = name
        self._size = size
        self._at = 0
        self._held: dict[int, bytes] = {}
        self._starts: list[int] = []

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Read ranges (offset, length) side by side; later reads within them use the fetched bytes.

        Neighbours with a small gap between them are read together.
        """
        wanted = _joined(ranges)
        parts = map_concurrently(lambda item: self._storage.read(self._name, *item), wanted, _READERS_MAX)
        self._held = {offset: part for (offset, _), part in zip(wanted, parts, strict=True)}
        self._starts = sorted(self._held)

    def _read(self, offset: int, length: int) -> bytes:
        at = bisect_right(self._starts, offset) - 1
        if at >= 0:
            begin = offset - self._starts[at]
            held = self._held[self._starts[at]]
            if begin + length <= len(held):
                return held[begin : begin + length]
        return self._storage.read(self._name, offset, length)

    def readable(self) -> bool:
        """True: the file is readable."""
        return True

    def seekable(self) -> bool:
        """True: the file is seekable."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position; see ``io.IOBase.seek``."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Return the current position."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read bytes into the buffer; fewer at the end of the file."""
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._size - self._at)
        if wanted <= 0:
            return 0
        found = self._read(self._at, wanted)
        view[: len(found)] = found
        self._at += len(found)
        return len(found)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join neighbouring ranges up to the size of a request, and return them in order."""
    found: list[tuple[int, int]] = []
    for offset, length in sorted(ranges):
        if found:
            begin, held = found[-1]
            gap, whole = offset - begin - held, max(held, offset + length - begin)
            if gap <= _GAP_BYTES_MAX and whole <= _RANGE_BYTES_MAX:
                found[-1] = (begin, whole)
                continue
        found.append((offset, length))
    return found


# 64-bit fingerprints of texts, to find candidates for duplicates.
#
# A hash table of a million paths costs more time and memory than parsing them. A 64-bit hash of a
# text's last eighty bytes, first sixteen bytes and length proves nearly all of them unique.

_WORD_BYTES = 8
_WORDS_FROM_END = 10
_SIEVED_MAX = 1024
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)

Words = npt.NDArray[np.uint64]


def fingerprints(texts: pa.ChunkedArray) -> Words:
    """64 bits per text: equal for equal texts, nearly always different for others."""
    parts = [_fingerprints(chunk) for chunk in texts.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def find_repeated(marks: Words) -> Ints:
    """Return the rows that share their fingerprint with another row."""
    ordered = np.sort(marks)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    return rows_with(marks, twice)


def rows_with(marks: Words, wanted: Words) -> Ints:
    """Return the rows with a fingerprint in ``wanted``."""
    wanted = np.unique(wanted)
    if len(wanted) <= _SIEVED_MAX:
        # A look at sixteen bits of each leaves few to compare; a hash of each takes ten times as long.
        sieve = np.zeros(1 << 16, dtype=np.bool_)
        sieve[_high_bits(wanted)] = True
        near = np.flatnonzero(sieve[_high_bits(marks)])
        return near[np.isin(marks[near], wanted)]
    table, values = (
        pa.Array.from_buffers(pa.uint64(), len(item), [None, pa.py_buffer(item)])
        for item in (np.ascontiguousarray(marks), wanted)
    )
    return np.flatnonzero(to_flags(pc.is_in(table, value_set=values)))


def _high_bits(words: Words) -> npt.NDArray[np.uint16]:
    return np.ascontiguousarray(words, dtype="<u8").view("<u2")[3::4]


def _fingerprints(chunk: pa.StringArray) -> Words:
    """64 bits per text; all texts shorter than a word share one fingerprint."""
    marks = np.zeros(len(chunk), dtype=np.uint64)
    _, offsets_buffer, data = chunk.buffers()
    if data is None or len(chunk) == 0 or data.size < _WORD_BYTES:
        return marks
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32, count=len(chunk) + 1, offset=4 * chunk.offset)
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    long = ends - starts >= _WORD_BYTES
    starts, ends = starts[long], ends[long]
    # A strided view of the word at every byte position, without a copy.
    words: Words = np.ndarray(shape=(data.size - _WORD_BYTES + 1,), dtype="<u8", buffer=data, strides=(1,))
    mark = words[starts] ^ (ends - starts).astype(np.uint64)
    mark = mark * _MIX ^ words[np.minimum(starts + _WORD_BYTES, ends - _WORD_BYTES)]
    for number in range(1, _WORDS_FROM_END + 1):
        mark *= _MIX
        mark ^= mark >> _SHIFT
        mark ^= words[np.maximum(starts, ends - number * _WORD_BYTES)]
    marks[long] = mark * _MIX
    return marks
