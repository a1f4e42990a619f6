"""A row's trail through the commits of its stream: where it was after and before each of them.

A commit whose filter of changed keys excludes the row's key is passed over; the next older one that does
not has the row in a file that it added. Without filters the row is followed backwards from file to file: a
commit matters only if it brought the file that holds the row, or, while there is no row, removed a file
that may hold its key. Files whose statistics exclude the key are not read, and the key is looked for once
in each of the others.
"""

from __future__ import annotations

from dataclasses import replace

from freezeframe.log.actions.actions import Add, Metadata
from freezeframe.store.versions.row_finder import Held, RowFinder
from freezeframe.store.versions.stream_past import StreamCommit, StreamPast

AHEAD = 32
"""The files of so many versions are read side by side; of versions with filters, so many files."""


class RowTrail:
    """Where a row is, going back from the newest commit; ``metadata`` are the table's there."""

    def __init__(self, past: StreamPast, finder: RowFinder) -> None:
        self._past = past
        self._finder = finder
        self._ahead = 0
        """The first commit whose files were not read ahead."""

    def newest(self, metadata: Metadata) -> Held | None:
        """The row after the newest commit."""
        return self._left_by(0, metadata) or self._finder.current_row()

    def after(self, commit: StreamCommit, held: Held | None, metadata: Metadata | None) -> Held | None:
        """The row after a commit, with its file if known; ``held`` is it before the next one."""
        if held is None or metadata is None:
            return held
        if self._finder.is_excluded(metadata, commit.key_filter):
            # A file that it adds has the row from an older one.
            return replace(held, path=None) if held.path in commit.added_paths else held
        if held.path is not None:
            return held
        # Rows that a commit inserts or updates are in its new files; a restoration names old ones again.
        paths = commit.new_paths if commit.only_marks else commit.added_paths
        return self._finder.live_row(metadata, map(commit.added, paths)) or held

    def may_touch(self, commit: StreamCommit, held: Held | None, metadata: Metadata | None) -> bool:
        """Whether a commit may have changed the row, which is ``held`` after it."""
        if metadata is not None and self._finder.is_excluded(metadata, commit.key_filter):
            return False
        if held is None:
            return bool(commit.removed_paths)
        if held.path not in commit.added_paths:
            return False
        if held.path not in commit.removed_paths:
            return True
        # Named again: where rows were only marked, one that is there now was there before.
        return not (commit.only_marks or self._finder.was_there(held, commit.removal(held.path)))

    def before(self, number: int, held: Held | None, metadata: Metadata) -> Held | None:
        """The row before the commit of a number, after which it is ``held``."""
        if held is not None and number >= self._ahead:
            self._read_ahead(held, number, metadata)
        before = self._left_by(number + 1, metadata)
        if before is not None:
            return before
        (commit,) = self._past.span(number, 1)
        return self._finder.live_row(metadata, self._removed(number, commit.removed_paths, metadata))

    def _left_by(self, number: int, metadata: Metadata) -> Held | None:
        """The row after a commit, from the new files of the last one up to it that changed the row.

        None if the filters do not tell which one that is.
        """
        place = number
        while (commit := self._past.at(place)) is not None and (commit.key_filter or place > number):
            if not self._finder.is_excluded(metadata, commit.key_filter):
                held = self._finder.live_row(metadata, map(commit.added, commit.new_paths))
                if held is not None or not commit.key_filter:
                    return held
            place += 1
        return None

    def _removed(self, number: int, paths: set[str], metadata: Metadata) -> list[Add]:
        """Those of the files that a commit removed which may hold the row, as they were before it."""
        (commit,) = self._past.span(number, 1)
        found = []
        for path in sorted(paths):
            known = self._finder.holds(metadata, path)
            if known is not False:
                statistics = self._past.statistics(path, number, AHEAD) if known is None else None
                one = commit.removal(path)
                values, vector = one.partition_values or {}, one.deletion_vector
                found.append(Add(path, one.size or 0, values, stats=statistics, deletion_vector=vector))
        return found

    def _read_ahead(self, held: Held, number: int, metadata: Metadata) -> None:
        """Look for the row where it may come from, in files of one schema."""
        paths, found, place = {held.path}, list[Add](), number
        while (commit := self._past.at(place)) is not None and len(found) < AHEAD:
            if place > number and commit.metadata is not None:
                break
            is_line = bool(paths & commit.new_paths)
            gone = commit.removed_paths - commit.added_paths
            if commit.key_filter:
                if place > number and not self._finder.is_excluded(metadata, commit.key_filter):
                    found += map(commit.added, commit.new_paths)
            elif place >= number + AHEAD:
                break
            elif is_line:
                found += self._removed(place, gone, metadata)
            if is_line:
                paths |= gone
            place += 1
        self._finder.read_ahead(metadata, found)
        self._ahead = place
