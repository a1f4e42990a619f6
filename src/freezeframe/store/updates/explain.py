"""Explains an update: its plan without execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freezeframe.log import Snapshot
from freezeframe.settings import Settings
from freezeframe.store.model.row_counts import Counts
from freezeframe.store.table.data_files import live_files
from freezeframe.store.updates.compaction_policy import FileChoice, FileRule, choose, rule_of, size_class
from freezeframe.store.updates.result import Route, UpdateResult


@dataclass(frozen=True, slots=True)
class Explanation:
    """Plan of an update: route, row counts, and the action on each file.

    Without a batch (``counts`` is None) it is about an update that only brings new rows.
    """

    stream: str
    stream_version: int
    route: Route
    counts: Counts | None
    rule: FileRule
    bytes_written: int

    def files(self) -> list[dict[str, Any]]:
        """One record per file: path, bytes, rows, deleted rows, size class, fate and reason."""
        return [_line(choice) for choice in self.route.choices]

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "stream": self.stream,
            "stream_version": self.stream_version,
            "route": self.route.kind,
            "engine": self.route.engine,
            "reason": self.route.reason,
            "counts": None if self.counts is None else self.counts.to_json(),
            "bytes_written": self.bytes_written,
            "vectors_from_bytes": self.rule.vectors_from_bytes,
            "plain": self.rule.is_plain,
            "files": self.files(),
        }


def explain_state(name: str, snapshot: Snapshot, settings: Settings) -> Explanation:
    """Explain an update with only new rows, by the current files."""
    rule = rule_of(settings)
    if snapshot.version < 0 or not snapshot.count:
        route = Route("load", "there are no stored rows: the batch is the whole content")
    else:
        route = Route(
            "patch", "new rows are written beside the stored ones", _untouched_files(snapshot, rule)
        )
    return Explanation(name, snapshot.version, route, None, rule, 0)


def explain_update(name: str, version: int, staged: UpdateResult, settings: Settings) -> Explanation:
    """Explain a staged update."""
    written = staged.rewrite.new_bytes if staged.rewrite else 0
    return Explanation(name, version, staged.route, staged.counts, rule_of(settings), written)


def _untouched_files(snapshot: Snapshot, rule: FileRule) -> tuple[FileChoice, ...]:
    nothing: Mapping[str, int] = {}
    return choose(live_files(snapshot.files), nothing, rule)


def _line(choice: FileChoice) -> dict[str, Any]:
    file = choice.file
    return {
        "file": file.path,
        "bytes": file.size,
        "rows": file.rows,
        "deleted": file.deleted,
        "size_class": size_class(file.size),
        "fate": choice.action,
        "reason": choice.reason,
    }
