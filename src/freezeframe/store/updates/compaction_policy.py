"""Chooses for each file of a stream: keep, mark rows as deleted, or rewrite (pure).

Small streams are rewritten as a whole, so that any Delta reader can read them. In large streams a
changed row is marked as deleted in its file and written to a new one; a file with mostly marked rows,
or one of many small files, is rewritten without the marked rows. A read therefore opens only a few
files of each size class, and reads less than twice the live rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from freezeframe.settings import Settings
from freezeframe.store.table.data_files import LiveFile

FileAction = Literal["left", "marked", "rewritten"]

MARKED_SHARE_MAX = 0.5
"""A file of which a larger share is deleted is written anew."""

FILES_PER_SIZE_MAX = 8
"""So many files of about one size become one file of the next size."""

SMALLEST_BYTES = 16 * 1024
"""Files up to this many bytes are of one size; each further size is eight times as large."""

SETTLED_BYTES = 64 * 1024 * 1024
"""Files from this size on are never joined with others."""


@dataclass(frozen=True, slots=True)
class FileRule:
    """Rules for a stream's files; see the settings of these names."""

    vectors_from_bytes: int
    is_plain: bool
    searched_rows_max: int = 0


@dataclass(frozen=True, slots=True)
class FileChoice:
    """The action on a file, and its reason as ``stream explain`` shows it."""

    file: LiveFile
    action: FileAction
    reason: str


def rule_of(settings: Settings) -> FileRule:
    """The file rules from the settings."""
    is_plain = settings.compatibility == "plain"
    searched_rows_max = settings.searched_rows_max if settings.engine == "auto" else 0
    return FileRule(settings.vectors_from_bytes, is_plain, searched_rows_max)


def choose(files: Sequence[LiveFile], touched: Mapping[str, int], rule: FileRule) -> tuple[FileChoice, ...]:
    """The action on each file, in order; ``touched`` is the number of changed rows by path."""
    total = sum(file.size for file in files)
    if total < rule.vectors_from_bytes:
        reason = f"the whole stream is smaller than {rule.vectors_from_bytes:,} bytes"
        return tuple(FileChoice(file, "rewritten", reason) for file in files)
    alone = {file.path: _alone(file, touched.get(file.path, 0), rule) for file in files}
    crowded = _crowded_files([file for file in files if alone[file.path].action != "rewritten"])
    return tuple(
        FileChoice(file, "rewritten", "it is one of many small files that become one")
        if file.path in crowded
        else alone[file.path]
        for file in files
    )


def size_class(size: int) -> int:
    """The class of files of similar size; 0 for the smallest."""
    found, bytes_max = 0, SMALLEST_BYTES
    while size > bytes_max:  # a logarithm would be off by one at some of the bounds
        found, bytes_max = found + 1, bytes_max * FILES_PER_SIZE_MAX
    return found


def _alone(file: LiveFile, touched: int, rule: FileRule) -> FileChoice:
    gone = file.deleted + touched
    if gone > file.rows * MARKED_SHARE_MAX:
        return FileChoice(file, "rewritten", f"{gone:,} of its {file.rows:,} rows are deleted then")
    if not touched:
        return FileChoice(file, "left", "no row of it changes")
    if rule.is_plain:
        return FileChoice(file, "rewritten", f"{touched:,} rows change and deletion vectors are not allowed")
    return FileChoice(file, "marked", f"{touched:,} of its {file.rows:,} rows change")


def _crowded_files(files: Sequence[LiveFile]) -> set[str]:
    """Files to compact: all files of each crowded size class and of the smaller classes."""
    sizes: dict[int, list[LiveFile]] = {}
    for file in files:
        if file.size < SETTLED_BYTES:
            sizes.setdefault(size_class(file.size), []).append(file)
    crowded = [size for size, of_size in sizes.items() if len(of_size) >= FILES_PER_SIZE_MAX]
    if not crowded:
        return set()
    return {file.path for size, of_size in sizes.items() if size <= max(crowded) for file in of_size}
