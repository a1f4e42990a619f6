"""A stream's commits of the past, newest first, read from the tenant log as they are asked for.

Of a commit's lines those are parsed that a question is about: most commits concern other rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from freezeframe.identifiers import StreamName
from freezeframe.log.actions.actions import Action, Add, Metadata, Remove, parse_line
from freezeframe.store.tenant_log.history import HistoryEntry, history_entry
from freezeframe.store.tenant_log.roll_forward import change_content, table_snapshot
from freezeframe.store.tenant_log.state import TenantState
from freezeframe.store.transaction.scope import TenantScope


@dataclass(frozen=True)  # without slots: what was parsed is kept
class StreamCommit:
    """What one version of the tenant did to a stream's files; ``content`` is the commit of its table."""

    entry: HistoryEntry
    table_version: int
    content: str

    @cached_property
    def added_paths(self) -> set[str]:
        """The files that it adds, or names again with other deleted rows, by their paths."""
        return self._paths("add")

    @cached_property
    def removed_paths(self) -> set[str]:
        """The files that it removes, also only to name them again, by their paths."""
        return self._paths("remove")

    @property
    def new_paths(self) -> set[str]:
        """The files that it adds and that were not there before."""
        return self.added_paths - self.removed_paths

    def removal(self, path: str) -> Remove:
        """The removal of one of ``removed_paths``."""
        found = (
            item for item in self._parsed("remove", path) if isinstance(item, Remove) and item.path == path
        )
        return next(found)

    @cached_property
    def metadata(self) -> Metadata | None:
        """The table's metadata from this commit on, if it changes them."""
        return next((item for item in self._parsed("metaData") if isinstance(item, Metadata)), None)

    @property
    def only_marks(self) -> bool:
        """Whether what it names again has no fewer deleted rows than before."""
        return self.entry.kind == "commit"

    def added(self, path: str) -> Add:
        """The addition of one of ``added_paths``."""
        found = (item for item in self._parsed("add", path) if isinstance(item, Add) and item.path == path)
        return next(found)

    @cached_property
    def _lines(self) -> list[str]:
        return self.content.split("\n")

    def _paths(self, kind: str) -> set[str]:
        begin, first = f'{{"{kind}":', f'{{"{kind}":{{"path":"'
        lines = [line for line in self._lines if line.startswith(begin)]
        paths = {line[len(first) :].partition('"')[0] for line in lines if line.startswith(first)}
        if len(paths) == len(lines) and not any("\\" in path for path in paths):
            return paths
        # Fields in another order, or escapes.
        return {item.path for item in self._parsed(kind) if isinstance(item, Add | Remove)}

    def _parsed(self, kind: str, path: str = "") -> Iterator[Action | None]:
        mark, name = f'"{kind}"', json.dumps(path, ensure_ascii=False)[1:-1]
        return (parse_line(line) for line in self._lines if mark in line and name in line)


class StreamPast:
    """The commits of a stream up to a state of the tenant."""

    def __init__(self, scope: TenantScope, name: StreamName, until: TenantState) -> None:
        self._scope = scope
        self._name = name
        self._commits: list[StreamCommit] = []
        self._reading = self._read(until)
        self.is_whole = True
        """Whether nothing before what was read is known to be missing."""

    def at(self, number: int) -> StreamCommit | None:
        """The commit of a number, the newest being 0; None behind the oldest one that is kept."""
        while len(self._commits) <= number:
            commit = next(self._reading, None)
            if commit is None:
                return None
            self._commits.append(commit)
        return self._commits[number]

    def span(self, first: int, count: int) -> list[StreamCommit]:
        """At most ``count`` commits from a number on."""
        self.at(first + count - 1)
        return self._commits[first : first + count]

    def statistics(self, path: str, number: int, count: int) -> str | None:
        """The statistics of a file that is removed at a number, if ``count`` commits from there add it."""
        for commit in self.span(number, count):
            if path in commit.added_paths:
                return commit.added(path).stats
        return None

    def metadata_before(self, number: int) -> Metadata | None:
        """The table's metadata before a commit; None: there was no table."""
        while (older := self.at(number + 1)) is not None:
            number += 1
            if older.metadata is not None:
                return older.metadata
        version = self._commits[-1].table_version
        if not version:
            return None
        scope = self._scope
        return table_snapshot(scope.storage, scope.state(), self._name, version - 1).metadata

    def _read(self, until: TenantState) -> Iterator[StreamCommit]:
        newest = self._scope.log.current_state()
        is_begun = False
        for version, entry in self._scope.log.entries_down(
            newest, range(until.version, newest.floor - 1, -1)
        ):
            for change in entry.streams:
                if change.stream != self._name:
                    continue
                # Another writer's change is known by its result only; what was before the oldest is not kept.
                is_oldest = version == newest.floor and change.table_version
                if not change.lands or change.is_external or is_oldest:
                    self.is_whole = False
                    return
                content = change_content(self._scope.storage, change)
                yield StreamCommit(history_entry(version, entry), change.table_version, content)
                is_begun = True
                if not change.table_version:
                    return
        self.is_whole = not is_begun
