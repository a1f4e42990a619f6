"""A step: one change of a stream that can be applied to any state of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from freezeframe.log import Snapshot
from freezeframe.store.model.row_counts import Counts
from freezeframe.store.table.commit import CommitIdentity
from freezeframe.store.table.staging import StagingFolder


@dataclass(frozen=True, slots=True)
class StepResult:
    """Result of a step: the table's next commit (empty: nothing changed) and its new files."""

    content: str
    counts: Counts
    paths: tuple[str, ...] = ()
    answer: Any = None
    """What the step knows beside that, for the receipt."""
    is_net: bool = False
    """Whether the counts are what a comparison of the table before and after it would find."""
    changed_keys: pa.Table | None = None
    """The keys of all rows that it changed, where it knows them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a stream, applicable to any state of it.

    ``carry_out`` gets the table, a folder for new files and who makes the commit. ``intake`` holds rows
    that were taken in before once; it lives as long as the step.
    """

    carry_out: Callable[[Snapshot, StagingFolder, CommitIdentity], StepResult]
    expected_version: int | None = None
    intake: StagingFolder | None = None
