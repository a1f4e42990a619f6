"""A checker of strict serialisability for the recorded history of one tenant.

The tenant log orders all commits by their versions, so the check takes time in proportion to the history:
each commit has a version of its own; what ended before something else began has the lower version; and each
read is exactly what the commits up to its version come to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal


@dataclass(frozen=True, slots=True)
class Operation:
    """An acknowledged commit with its rows, or a read with the rows that it returned.

    ``began`` and ``ended`` are of a clock that all processes share. ``repeated`` counts tries that failed.
    """

    process: str
    kind: Literal["commit", "read"]
    began: float
    ended: float
    version: int
    rows: Mapping[str, object]
    repeated: int = 0


def violations(operations: Iterable[Operation]) -> Iterator[str]:
    """What is wrong with the history, one sentence each; upserts by key, from an empty tenant on."""
    history = list(operations)
    commits = sorted((one for one in history if one.kind == "commit"), key=lambda one: one.version)
    for earlier, later in pairwise(commits):
        if earlier.version == later.version:
            yield f"version {later.version} was given to {earlier.process} and to {later.process}"
        elif earlier.version + 1 != later.version:
            yield f"the versions between {earlier.version} and {later.version} are nobody's"
    yield from _out_of_order(history)
    yield from _wrong_reads([one for one in history if one.kind == "read"], commits)


def _out_of_order(history: list[Operation]) -> Iterator[str]:
    """Operations whose version is lower than one that had ended before they began."""
    by_end = iter(sorted(history, key=lambda one: one.ended))
    ended = next(by_end, None)
    newest: Operation | None = None
    for one in sorted(history, key=lambda one: one.began):
        while ended is not None and ended.ended < one.began:
            if newest is None or ended.version > newest.version:
                newest = ended
            ended = next(by_end, None)
        least = -1 if newest is None else newest.version + (one.kind == "commit")
        if one.version < least and newest is not None:
            kind = "committed as" if one.kind == "commit" else "read"
            yield f"{one.process} {kind} {one.version} after {newest.process} had seen {newest.version}"


def _wrong_reads(reads: list[Operation], commits: list[Operation]) -> Iterator[str]:
    rows: dict[str, object] = {}
    rest = iter(commits)
    upcoming = next(rest, None)
    for read in sorted(reads, key=lambda one: one.version):
        while upcoming is not None and upcoming.version <= read.version:
            rows |= upcoming.rows
            upcoming = next(rest, None)
        if dict(read.rows) != rows:
            wrong = sorted(key for key in {*rows, *read.rows} if rows.get(key) != read.rows.get(key))
            yield f"{read.process} read version {read.version} with other rows than committed: {wrong[:3]}"
