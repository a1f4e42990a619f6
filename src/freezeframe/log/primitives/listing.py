"""Lists a log folder from a version on, and selects files by kind.

Pure functions over listed names, except ``list_log`` and ``find_checkpoint_before``, which list the
storage. Numbers in the docstrings are the behaviours of ``docs/reference/delta-compatibility.md``.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from freezeframe.log.primitives.paths import Kind, LogFile, log_file, version_prefix
from freezeframe.storage import FileStatus, Storage

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
        """Sort key of checkpoints, best last: version, format, parts, name (behaviour 8)."""
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

    @property
    def is_empty(self) -> bool:
        """Whether the listing has neither commits nor checkpoints."""
        return not self.commits and not self.checkpoint_files


def list_log(
    storage: Storage, folder: str, start_version: int = 0, end_version: int | None = None
) -> Iterator[FileStatus]:
    """The files of the folder from ``start_version`` to ``end_version`` (None: all), in order of their names.

    The listing ends after the versions' names: hint and sidecars, which sort later, are left out.

    Seed: ``listFrom``. Includes foreign names; an absent folder is empty.
    """
    start = version_prefix(max(0, start_version))
    end = _AFTER_VERSIONS if end_version is None else version_prefix(end_version + 1)

    def listed() -> list[FileStatus]:
        return list(itertools.takewhile(lambda one: one.name < end, storage.list_from(folder, start)))

    found = listed()
    for _ in range(LISTINGS_MAX - 1):
        if not _has_hole(found):
            break
        # A listing is not atomic: of two commits during it, it may include only the later one. The next
        # listing is certain to include the earlier one.
        found = listed()
    return iter(found)


def _has_hole(statuses: Iterable[FileStatus]) -> bool:
    """Whether a commit is missing between two listed ones."""
    commits = [int(status.name[:20]) for status in statuses if _COMMIT_NAME.fullmatch(status.name)]
    return bool(commits) and commits[-1] - commits[0] + 1 != len(commits)


def sort_listing(statuses: Iterable[FileStatus], version_to_load: int | None = None) -> Listing:
    """The listed files by kind, without those above ``version_to_load`` (behaviours 4 to 7).

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
    )


def complete_checkpoints(files: Iterable[LogFile]) -> list[CheckpointFiles]:
    """The complete checkpoints, worst first (behaviours 8 and 9)."""
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
    """The best complete checkpoint, strictly below a version if one is given."""
    found = [one for one in complete_checkpoints(files) if below is None or one.version < below]
    return found[-1] if found else None


def find_checkpoint_before(storage: Storage, folder: str, version: int) -> CheckpointFiles | None:
    """The newest complete checkpoint strictly below ``version``, or ``None`` (behaviour 31).

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
    """Select compacted files in place of commits, greedily in name order (behaviours 21, 23).

    A file is selected if it starts after all selected ones and ends within the segment; among files
    with the same start the shortest comes first.
    """
    taken: list[LogFile] = []
    highest = after_version
    for file in sorted(compacted, key=lambda one: one.name):
        if file.meaning.start > highest and file.version <= latest_version:
            taken.append(file)
            highest = file.version
    return tuple(taken)
